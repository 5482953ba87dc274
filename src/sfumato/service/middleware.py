"""The edge, which every request passes: limits on the way in, headers on the way out, and a line in the log."""

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
from sfumato.service.problems import Refused, refusal

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

PART = "/api/v1/uploads/"

_PUBLIC = ("/api/v1/respond/", "/survey/")
"""What pages of any site may use, without cookies: surveys can be answered anywhere."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Edge:
    """Wraps the application."""

    def __init__(self, app: App, desk: ServiceContext) -> None:
        self._app, self._desk = app, desk

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, request = time.perf_counter(), Request(scope, receive)
        scope["request_id"] = secrets.token_hex(8)
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._dress(MutableHeaders(raw=message["headers"]), scope)
            await asyncio.wait_for(send(message), self._desk.settings.patience)

        try:
            try:
                self._desk.gate.enter(request)
                limited = self._limited(request, receive)
            except Refused as error:
                await refusal(request, error)(scope, receive, sending)
            else:
                await self._app(scope, limited, sending)
        finally:
            self._note(scope, status, time.perf_counter() - begun)

    def _limited(self, request: Request, receive: Receive) -> Receive:
        """The request's body, refused where it is too long."""
        settings = self._desk.settings
        most = settings.part if request.url.path.startswith(PART) else settings.body
        too_long = Refused(413, f"The body of this request may have {most:,} bytes; send less.")
        said = request.headers.get("content-length", "0")
        if not said.isdigit() or int(said) > most:
            raise too_long
        got = 0

        async def receiving() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > most:
                raise too_long
            return message

        return receiving

    def _dress(self, headers: MutableHeaders, scope: MutableMapping[str, Any]) -> None:
        headers["X-Request-Id"] = scope["request_id"]
        if scope["path"].startswith(_PUBLIC):
            headers["Access-Control-Allow-Origin"] = "*"
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        if self._desk.settings.secure:
            headers["Strict-Transport-Security"] = "max-age=31536000"

    def _note(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """One line, without anything that the request held."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "other"
        who = scope.get("caller")
        self._desk.metrics.seconds.labels(route, method, str(status)).observe(seconds)
        structlog.get_logger().info(
            "request",
            id=scope["request_id"],
            process=os.getpid(),
            route=route,
            method=method,
            status=status,
            seconds=round(seconds, 4),
            caller=who.actor if who else "nobody",
        )
