"""HTTP responses that stream a copy while it is generated, with content negotiation, ETags and byte ranges."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import structlog
from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from sfumato.errors import GrantError, SfumatoError
from sfumato.service.authentication import Caller
from sfumato.service.context import ServiceContext
from sfumato.service.problems import HTTPProblem
from sfumato.service.worker_pool import CopyChanged, CopyDescription, CopyRequest, CopyWorker

MEDIA_TYPES = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
    "csv.gz": "application/gzip",
    "arrows": "application/vnd.apache.arrow.stream",
}

_ATTEMPTS = 3
"""How often a response is started again because its copy changed in the meantime."""

_WATCH_INTERVAL = 0.4
"""Seconds between two checks that the caller of a running download may still have it."""

_ABORT_TIMEOUT = 10
"""Seconds to wait for a connection to end that was aborted."""

_RANGE = re.compile(r"bytes=(\d{1,18})?-(\d{1,18})?")


def negotiate_format(accept: str, requested: str | None) -> str:
    """The format requested by name, else the client's preferred one (RFC 9110, section 12.5.1), else Parquet."""
    if requested is not None:
        return requested
    preferences = sorted(_preferences(accept))
    if not preferences and accept.strip():
        raise HTTPProblem(
            406,
            f"A copy is available as {', '.join(MEDIA_TYPES.values())}, and the Accept header allows none of them; "
            "change it, or add ?format= to the address.",
        )
    return preferences[0][-1] if preferences else "parquet"


def _preferences(accept: str) -> Iterator[tuple[float, int, int, str]]:
    """The available formats that an Accept header allows; the smallest tuple is the most preferred one."""
    for position, part in enumerate(accept.split(",")):
        media_range, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        if re.fullmatch(r"[01](\.\d{0,3})?", weight) and float(weight) > 0:
            for i, (name, media_type) in enumerate(MEDIA_TYPES.items()):
                if _matches(media_range.lower(), media_type):
                    yield -float(weight), position, i, name


def _matches(media_range: str, media_type: str) -> bool:
    return media_range in ("*/*", media_type) or media_range == media_type.partition("/")[0] + "/*"


@dataclass(frozen=True)
class CopyResponder:
    """Answers one request for a copy, with the help of one copy worker."""

    context: ServiceContext
    worker: CopyWorker
    wanted: CopyRequest
    description: CopyDescription

    @classmethod
    async def prepare(cls, context: ServiceContext, wanted: CopyRequest) -> CopyResponder:
        """Describe the copy in the least busy copy worker; refused if the recipient may not have it."""
        worker = context.pool.least_busy()
        return cls(context, worker, wanted, await worker.call("describe", wanted))

    @classmethod
    async def respond(cls, request: Request, context: ServiceContext, wanted: CopyRequest) -> Response:
        """The response to a request; started again if the dataset or the grant changes in the meantime."""
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(CopyChanged):
                return await (await cls.prepare(context, wanted)).response(request)
        raise HTTPProblem(503, "The dataset or the grant keeps changing; send the request again.", Retry_After="5")

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The whole copy, generated here and interleaved with other copies."""
        with self.context.stream_slot(self.wanted.actor):
            async with self.worker.stream(self.wanted, self.description.tag, 0, None) as read:
                while (chunk := await read()) is not None:
                    yield chunk

    async def generate(self) -> int:
        """Generate the whole copy without sending it, and count its bytes."""
        return sum([len(chunk) async for chunk in self.chunks()])

    async def response(self, request: Request) -> Response:
        """The whole copy (200), a byte range (206), or that the client's cached copy is current (304)."""
        tag, size = f'"{self.description.tag}"', self.description.size
        if _matches_etag(self.description.tag, request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=self._headers())
        if request.method == "HEAD":
            response = Response(status_code=200, headers=self._headers(), media_type=MEDIA_TYPES[self.wanted.format])
            del response.headers["content-length"]  # that of the empty body
            return response if size is None else _with_length(response, size)
        requested = _RANGE.fullmatch(request.headers.get("range", "").strip())
        if requested is None or not any(requested.groups()) or request.headers.get("if-range", tag).strip() != tag:
            return await self._stream(request, 200, 0, None, {} if size is None else {"Content-Length": str(size)})
        if size is None:  # nobody has downloaded it completely, so its size is not known yet
            size = await self.generate()
        first, last = _bounds(requested, size)
        if first > last:
            raise HTTPProblem(
                416,
                f"A range must begin within the copy's {size:,} bytes, and this one does not; change it.",
                Content_Range=f"bytes */{size}",
            )
        headers = {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Length": str(last - first + 1)}
        return await self._stream(request, 206, first, last, headers)

    async def _stream(
        self, request: Request, status: int, first: int, last: int | None, more: dict[str, str]
    ) -> Response:
        stack = AsyncExitStack()
        stack.enter_context(self.context.stream_slot(self.wanted.actor))
        try:
            stream = self.worker.stream(self.wanted, self.description.tag, first, last)
            read = await stack.enter_async_context(stream)
            first_chunk = await read()  # before the headers are sent, so that a refusal has its own status
            sent = None if last is None else (first, last)
            await asyncio.to_thread(self.record, request.scope["caller"], "delivered", sent)
        except BaseException:
            await stack.aclose()
            raise
        body = self._or_abort(request, self._body(stack, read, first_chunk, complete=last is None))
        return StreamingResponse(body, status, self._headers() | more, MEDIA_TYPES[self.wanted.format])

    def record(self, caller: Caller, action: str, part: tuple[int, int] | None = None) -> None:
        """Record in the access log what is sent, or answered from, before the first byte of it."""
        vault, wanted = caller.acting(self.context.vault), self.wanted
        body = {**self.description.access, "bytes": part}
        vault.record_access(action, body, dataset=wanted.dataset, recipient=wanted.recipient)

    async def _or_abort(self, request: Request, body: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
        """The same body, whose connection is aborted when its caller may not have the copy any more, or it fails.

        The status was sent before, so a truncated response is the only way to tell the client.
        """
        watch = asyncio.create_task(self._watch(request))
        try:
            async with contextlib.aclosing(body):
                async for chunk in body:
                    yield chunk
        except Exception as error:
            await self._abort(request, error)
        finally:
            watch.cancel()

    async def _watch(self, request: Request) -> None:
        """Abort the connection as soon as the caller or the grant is no longer in force."""
        while True:
            await asyncio.sleep(_WATCH_INTERVAL)
            try:
                await asyncio.to_thread(self.check_access, request)
            except Exception as error:
                await self._abort(request, error)

    def check_access(self, request: Request) -> None:
        """Refuse a caller whose token or session has ended, or whose grant was changed."""
        if request.scope["identify"]() is None:
            raise GrantError("the token or session of the caller is no longer in force")
        if self.context.granted(self.wanted.recipient, self.wanted.dataset) != self.description.grant:
            raise GrantError("the grant was changed while its copy was sent")

    async def _abort(self, request: Request, error: Exception) -> None:
        expected = isinstance(error, SfumatoError)
        structlog.get_logger().log(
            logging.WARNING if expected else logging.ERROR,
            "download aborted",
            request=request.scope["request_id"],
            reason=str(error),
            exc_info=None if expected else error,
        )
        request.scope["abort"]()
        await asyncio.sleep(_ABORT_TIMEOUT)  # until the disconnection cancels this response

    async def _body(
        self, stack: AsyncExitStack, read: Any, chunk: bytes | None, *, complete: bool
    ) -> AsyncGenerator[bytes]:
        sent, size = 0, self.description.size
        async with stack:
            while chunk is not None:
                sent += len(chunk)
                self.context.metrics.sent.inc(len(chunk))
                if complete and sent == size:  # a client that knows the size may disconnect after the last byte
                    self.context.metrics.copies.labels(self.wanted.format).inc()
                yield chunk
                chunk = await read()
            if complete and size is None:
                self.context.metrics.copies.labels(self.wanted.format).inc()

    def _headers(self) -> dict[str, str]:
        name = f"{self.wanted.dataset}.v{self.description.version}.{self.wanted.format}"
        return {
            "ETag": f'"{self.description.tag}"',
            "Accept-Ranges": "bytes",
            "Vary": "Accept, Authorization, Cookie",
            "Cache-Control": "private, no-cache",
            "Content-Disposition": f'attachment; filename="{name}"',
        }


def _with_length(response: Response, size: int) -> Response:
    response.headers["content-length"] = str(size)
    return response


def _matches_etag(tag: str, header: str) -> bool:
    """Whether an If-None-Match header names a tag, or any tag at all (RFC 9110, section 13.1.2)."""
    tags = {one.strip().removeprefix("W/").strip('"') for one in header.split(",")}
    return header.strip() == "*" or tag in tags


def _bounds(requested: re.Match[str], size: int) -> tuple[int, int]:
    """The first and last byte of a range (RFC 9110, section 14.1.2)."""
    first, last = requested.groups()
    if first is None:
        return max(size - int(last), 0) if int(last) else size, size - 1
    return int(first), size - 1 if last is None else min(int(last), size - 1)
