"""ASGI middleware around all requests: rate and body limits, security headers, metrics and a log line for each."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog
from fastapi import Request
from starlette.datastructures import MutableHeaders

from sfumato.service.context import ServiceContext
from sfumato.service.problems import HTTPProblem, problem_from_exception

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_FILE_PATHS = ("/api/v1/uploads/", "/api/v1/checks")
"""Paths to which callers with a token send files, the first in many parts."""

_FILE_TIMES = 4
"""How many times as long as other bodies a file may take to arrive."""

_PUBLIC_PATHS = ("/api/v1/respond/", "/survey/")
"""Paths that pages of any origin may request, without cookies: a survey can be embedded in any site."""

_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class ServiceMiddleware:
    """Limits each request, adds security headers to its response, and logs and counts it."""

    def __init__(self, app: App, context: ServiceContext) -> None:
        self._app, self._context = app, context

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, request = time.perf_counter(), Request(scope, receive)
        scope["request_id"] = secrets.token_hex(8)
        status = 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(raw=message["headers"]), scope)
            await asyncio.wait_for(send(message), self._context.settings.send_timeout)

        try:
            try:
                self._context.limiter.check_address(request)
                limited = self._limit_body(request, receive)
            except HTTPProblem as error:
                await problem_from_exception(request, error)(scope, receive, send_with_headers)
            else:
                await self._app(scope, limited, send_with_headers)
        finally:
            self._log(scope, status, time.perf_counter() - started)

    def _limit_body(self, request: Request, receive: Receive) -> Receive:
        """A `receive` that refuses a request body above the maximum size, or one that does not arrive in time."""
        settings = self._context.settings
        path = request.scope["path"]  # `request.url` fails on a query that is not UTF-8
        is_file, is_upload = path.startswith(_FILE_PATHS), path.startswith(_FILE_PATHS[0])
        limit = settings.max_part_bytes if is_file else settings.max_body_bytes
        too_large = HTTPProblem(413, f"The body of this request may have at most {limit:,} bytes; send a smaller one.")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > limit:
            raise too_large
        received, complete = 0, False
        deadline = time.monotonic() + settings.receive_timeout * (_FILE_TIMES if is_file else 1)

        async def receive_limited() -> Message:
            nonlocal received, complete, deadline
            if complete:  # what remains to be received is the disconnection, whenever it comes
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), deadline - time.monotonic())
            except TimeoutError:
                raise HTTPProblem(408, "The body of this request did not arrive in time; send it again.") from None
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > limit:
                raise too_large
            if is_upload:  # only callers with a token upload, and parts are large
                deadline = time.monotonic() + settings.receive_timeout
            return message

        return receive_limited

    def _add_headers(self, headers: MutableHeaders, scope: MutableMapping[str, Any]) -> None:
        headers["X-Request-Id"] = scope["request_id"]
        if scope["path"].startswith(_PUBLIC_PATHS):
            headers["Access-Control-Allow-Origin"] = "*"
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        if self._context.settings.secure:
            headers["Strict-Transport-Security"] = "max-age=31536000"

    def _log(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Write one access-log line, without any contents of the request."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "other"
        caller = scope.get("caller")
        self._context.metrics.seconds.labels(route, method, str(status)).observe(seconds)
        structlog.get_logger().info(
            "request",
            id=scope["request_id"],
            process=os.getpid(),
            route=route,
            method=method,
            status=status,
            seconds=round(seconds, 4),
            caller=caller.actor if caller else "anonymous",
        )
