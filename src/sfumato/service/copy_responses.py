"""Copies as answers: made while they are sent, in any format, whole or from a byte on, while somebody listens."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from sfumato.service.context import ServiceContext
from sfumato.service.problems import Refused
from sfumato.service.worker_pool import Changed, Described, Maker, Wanted

MEDIA = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
    "csv.gz": "application/gzip",
    "arrows": "application/vnd.apache.arrow.stream",
}

_TURNS = 3
"""How often a copy is begun anew that changes while it is begun."""

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


@dataclass(frozen=True)
class Answering:
    """A copy that somebody asks for."""

    desk: ServiceContext
    maker: Maker
    wanted: Wanted
    found: Described

    @classmethod
    async def of(cls, desk: ServiceContext, wanted: Wanted) -> Answering:
        """The copy, in the hands of the maker that has least to do; refused if it may not be had."""
        maker = desk.maker()
        return cls(desk, maker, wanted, await maker.ask("describe", wanted))

    @classmethod
    async def reply(cls, request: Request, desk: ServiceContext, wanted: Wanted) -> Response:
        """The answer; begun anew if the dataset or the grant changes while it is begun."""
        for _ in range(_TURNS):
            with contextlib.suppress(Changed):
                return await (await cls.of(desk, wanted)).answer(request)
        raise Refused(503, "The dataset changes too often to be sent; ask again.", Retry_After="5")

    async def made(self) -> int:
        """Make the copy to its end, step by step between the steps of others, and count its bytes."""
        size = 0
        with self.desk.place(self.wanted.actor):
            async with self.maker.stream(self.wanted, self.found.tag, 0, None) as following:
                while (chunk := await following()) is not None:
                    size += len(chunk)
        return size

    async def answer(self, request: Request) -> Response:
        """The copy, a part of it, or the word that the client has it already."""
        tag, size = f'"{self.found.tag}"', self.found.size
        if self.found.tag in _tags(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=self._headers())
        if request.method == "HEAD":
            answer = Response(status_code=200, headers=self._headers(), media_type=MEDIA[self.wanted.form])
            del answer.headers["content-length"]  # of the empty body
            return answer if size is None else _sized(answer, size)
        part = _RANGE.fullmatch(request.headers.get("range", "").strip())
        if part is None or not any(part.groups()) or request.headers.get("if-range", tag).strip() != tag:
            return await self._stream(200, 0, None, {} if size is None else {"Content-Length": str(size)})
        if size is None:  # nobody has fetched it to its end yet, so it is made once to be counted
            size = await self.made()
        first, last = _bounds(part, size)
        if first > last:
            raise Refused(416, f"The copy has {size:,} bytes, and none in that range.", Content_Range=f"bytes */{size}")
        headers = {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Length": str(last - first + 1)}
        return await self._stream(206, first, last, headers)

    async def _stream(self, status: int, first: int, last: int | None, more: dict[str, str]) -> Response:
        stack = AsyncExitStack()
        stack.enter_context(self.desk.place(self.wanted.actor))
        try:
            stream = self.maker.stream(self.wanted, self.found.tag, first, last)
            following = await stack.enter_async_context(stream)
            start = await following()  # before the first header, so that a refusal is an answer of its own
        except BaseException:
            await stack.aclose()
            raise
        flow = self._flow(stack, following, start, whole=last is None)
        return StreamingResponse(flow, status, self._headers() | more, MEDIA[self.wanted.form])

    async def _flow(
        self, stack: AsyncExitStack, following: Any, chunk: bytes | None, *, whole: bool
    ) -> AsyncIterator[bytes]:
        sent, size = 0, self.found.size
        async with stack:
            while chunk is not None:
                sent += len(chunk)
                self.desk.metrics.sent.inc(len(chunk))
                if whole and sent == size:  # who knows the size hangs up after the last byte, and the rest is not run
                    self.desk.metrics.copies.labels(self.wanted.form).inc()
                yield chunk
                chunk = await following()
            if whole and size is None:
                self.desk.metrics.copies.labels(self.wanted.form).inc()

    def _headers(self) -> dict[str, str]:
        name = f"{self.wanted.dataset}.v{self.found.version}.{self.wanted.form}"
        return {
            "ETag": f'"{self.found.tag}"',
            "Accept-Ranges": "bytes",
            "Vary": "Accept, Authorization, Cookie",
            "Cache-Control": "private, no-cache",
            "Content-Disposition": f'attachment; filename="{name}"',
        }


def _sized(answer: Response, size: int) -> Response:
    answer.headers["content-length"] = str(size)
    return answer


def _tags(said: str) -> set[str]:
    return {one.strip().removeprefix("W/").strip('"') for one in said.split(",")}


def _bounds(part: re.Match[str], size: int) -> tuple[int, int]:
    """The first and last byte of a range (RFC 9110, section 14.1.2)."""
    first, last = part.groups()
    if first is None:
        return max(size - int(last), 0) if int(last) else size, size - 1
    return int(first), size - 1 if last is None else min(int(last), size - 1)
