"""Questions of recipients in SQL about their copies, each answered by a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from sfumato.service.problems import HTTPProblem

_MOST_BYTES = 256 << 20
"""The largest copy that questions are answered from, in memory."""

_SECONDS = 90
"""Seconds until a process is ended, with what it waits for."""

_AT_ONCE = 2
"""Questions that a server worker answers at the same time."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_DOWNLOAD = "download the copy, and use `sfumato mine COPY QUESTION`"


class _Copy(Protocol):
    """A copy that is generated in chunks."""

    def chunks(self) -> AsyncGenerator[bytes]:
        """The whole copy."""


class Questions:
    """The processes of one server worker."""

    def __init__(self) -> None:
        self._running = 0

    async def answer(self, question: str, copy: _Copy) -> dict[str, Any]:
        """The answer to a question about a copy; refused with the reason if there is none."""
        if self._running >= _AT_ONCE:
            raise HTTPProblem(503, "Other questions are being answered; ask again in a moment.", Retry_After="5")
        self._running += 1
        try:
            found = await _run(question, await _content(copy))
        finally:
            self._running -= 1
        if "refused" in found:
            raise HTTPProblem(422, found["refused"])
        return found


async def _content(copy: _Copy) -> bytes:
    """A whole copy, unless it is too large."""
    content = bytearray()
    async with contextlib.aclosing(copy.chunks()) as chunks:
        async for chunk in chunks:
            content += chunk
            if len(content) > _MOST_BYTES:
                most = f"{_MOST_BYTES >> 20} MiB"
                raise HTTPProblem(413, f"Questions are answered here about copies of at most {most}; {_DOWNLOAD}.")
    return bytes(content)


async def _run(question: str, content: bytes) -> dict[str, Any]:
    """The answer of a new process, which is ended when it takes too long."""
    with tempfile.TemporaryDirectory() as empty:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "sfumato.service.question_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PATH": os.defpath, "HOME": empty, **dict.fromkeys(_THREADS, "1")},
            cwd=empty,
        )
        try:
            told, _ = await asyncio.wait_for(
                process.communicate(json.dumps(question).encode() + b"\n" + content), _SECONDS
            )
        except TimeoutError:
            raise HTTPProblem(422, f"This question takes too long to be answered here; {_DOWNLOAD}.") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode != 0:  # its time or its memory ended
        raise HTTPProblem(422, f"This question takes too much time or memory to be answered here; {_DOWNLOAD}.")
    return dict(json.loads(told))
