"""Copies as answers: made while they are sent, in any format, whole or from a byte on, while somebody listens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from sfumato.service.desk import Desk
from sfumato.service.problems import Refused
from sfumato.vault.sending import Sending

MEDIA = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
    "csv.gz": "application/gzip",
    "arrows": "application/vnd.apache.arrow.stream",
}

_RANGE = re.compile(r"bytes=(\d{1,18})?-(\d{1,18})?")


def negotiated(accept: str, asked: str | None) -> str:
    """The format that is asked for by name, else the one that the client likes best, else Parquet."""
    if asked is not None:
        return asked
    liked: list[tuple[float, int, int, str]] = []
    for place, part in enumerate(accept.split(",")):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        if re.fullmatch(r"[01](\.\d{0,3})?", weight) and float(weight) > 0:
            fitting = [(i, f) for i, (f, kind) in enumerate(MEDIA.items()) if _fits(media.lower(), kind)]
            liked += [(-float(weight), place, i, f) for i, f in fitting]
    if not liked and accept.strip():
        raise Refused(406, f"A copy is one of {', '.join(MEDIA.values())}; accept one of them, or name a format.")
    return min(liked)[-1] if liked else "parquet"


def _fits(asked: str, kind: str) -> bool:
    return asked in ("*/*", kind) or asked == kind.partition("/")[0] + "/*"


class Steps:
    """A generator that is advanced in another thread, one step at a time, and closed when nobody listens any more."""

    def __init__(self, pool: Executor, chunks: Iterator[bytes]) -> None:
        self._pool, self._chunks = pool, chunks
        self._step: asyncio.Future[bytes | None] | None = None

    async def next(self) -> bytes | None:
        """The next bytes; nothing at the end."""
        loop = asyncio.get_running_loop()
        self._step = asyncio.ensure_future(loop.run_in_executor(self._pool, next, self._chunks, None))
        return await asyncio.shield(self._step)

    async def close(self) -> None:
        """Stop the work; a step under way is the last one."""
        if self._step is not None:
            await asyncio.wait([self._step])
        close = getattr(self._chunks, "close", None)
        if close is not None:
            await asyncio.get_running_loop().run_in_executor(self._pool, close)


def window(chunks: Iterator[bytes], first: int, last: int | None, whole: Callable[[int], None]) -> Iterator[bytes]:
    """The bytes from one place to another; `whole` is told how many there are, if the end was reached."""
    at = 0
    for chunk in chunks:
        begin, end = max(first - at, 0), len(chunk) if last is None else min(last + 1 - at, len(chunk))
        at += len(chunk)
        if begin < end:
            yield chunk[begin:end]
        if last is not None and at > last:
            return
    whole(at)


@dataclass(frozen=True)
class Asked:
    """What part of which bytes is asked for."""

    sending: Sending
    form: str
    tag: str
    headers: dict[str, str]

    @classmethod
    def of(cls, sending: Sending, form: str) -> Asked:
        """The whole copy in a format."""
        tag, dataset = sending.tag(form), sending.request.dataset
        name = f"{dataset.name}.v{dataset.version}.{form}"
        headers = {
            "ETag": f'"{tag}"',
            "Accept-Ranges": "bytes",
            "Vary": "Accept, Authorization, Cookie",
            "Cache-Control": "private, no-cache",
            "Content-Disposition": f'attachment; filename="{name}"',
        }
        return cls(sending, form, tag, headers)

    async def answer(self, request: Request, desk: Desk) -> Response:
        """The copy, a part of it, or the word that the client has it already."""
        if self.tag in _tags(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=self.headers)
        loop = asyncio.get_running_loop()
        size = await loop.run_in_executor(None, desk.state.size, self.tag)
        part = _RANGE.fullmatch(request.headers.get("range", "").strip())
        wanted = part is not None and any(part.groups())
        if request.method == "HEAD":
            length = {} if size is None else {"Content-Length": str(size)}
            return Response(status_code=200, headers=self.headers | length, media_type=MEDIA[self.form])
        if not wanted or part is None or request.headers.get("if-range", f'"{self.tag}"').strip() != f'"{self.tag}"':
            return await self._stream(desk, 200, 0, None, size)
        if size is None:  # nobody has fetched it to its end yet, so it is made once to be counted
            size = await loop.run_in_executor(desk.makers, self._counted, desk)
        first, last = _bounds(part, size)
        if first > last:
            raise Refused(416, f"The copy has {size:,} bytes, and none in that range.", Content_Range=f"bytes */{size}")
        return await self._stream(desk, 206, first, last, size)

    def _counted(self, desk: Desk) -> int:
        size = sum(len(chunk) for chunk in self.sending.chunks(self.form))
        desk.state.keep_size(self.tag, size)
        return size

    async def _stream(self, desk: Desk, status: int, first: int, last: int | None, size: int | None) -> Response:
        def whole(size: int) -> None:
            desk.state.keep_size(self.tag, size)
            desk.metrics.copies.labels(self.form).inc()

        steps = Steps(desk.makers, window(self.sending.chunks(self.form), first, last, whole))
        start = await steps.next()  # before the first header, so that a refusal is an answer of its own
        headers = dict(self.headers)
        if status == 206 and last is not None:
            headers |= {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Length": str(last - first + 1)}
        elif size is not None:
            headers["Content-Length"] = str(size)
        return StreamingResponse(_flow(steps, start, desk), status, headers, MEDIA[self.form])


async def _flow(steps: Steps, start: bytes | None, desk: Desk) -> AsyncIterator[bytes]:
    try:
        chunk = start
        while chunk is not None:
            desk.metrics.sent.inc(len(chunk))
            yield chunk
            chunk = await steps.next()
    finally:
        await asyncio.shield(steps.close())


def _tags(said: str) -> set[str]:
    return {one.strip().removeprefix("W/").strip('"') for one in said.split(",")}


def _bounds(part: re.Match[str], size: int) -> tuple[int, int]:
    """The first and last byte of a range (RFC 9110, section 14.1.2)."""
    first, last = part.groups()
    if first is None:
        return max(size - int(last), 0) if int(last) else size, size - 1
    return int(first), size - 1 if last is None else min(int(last), size - 1)
