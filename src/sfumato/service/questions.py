"""Questions of recipients about their copies, in SQL and others, each answered by a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from typing import Any, Protocol

from sfumato.service.problems import HTTPProblem

_MOST_BYTES = 256 << 20
"""The largest copy that questions are answered from."""

_MOST_ANSWER = 4 << 20
"""Bytes that a process may say, whatever it runs; an answer has fewer characters."""

_SECONDS = 90
"""Seconds until a process is ended, with what it waits for."""

_AT_ONCE = 2
"""Questions that a server worker answers at the same time, of different callers."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_DOWNLOAD = "download the copy, and use `sfumato mine` or `sfumato check`"


_Task = tuple[str, Any]
"""The name of what is to be done with a copy, and what it needs to know."""


class _Copy(Protocol):
    """A copy that is generated in chunks."""

    def chunks(self) -> AsyncGenerator[bytes]:
        """The whole copy."""


class Questions:
    """The processes of one server worker."""

    def __init__(self) -> None:
        self._asking: set[str] = set()
        self._cache: tempfile.TemporaryDirectory[str] | None = None

    async def answer(self, caller: str, question: str, copy: _Copy) -> dict[str, Any]:
        """The answer to a question about a copy; refused with the reason if there is none."""
        return await self._done(caller, ("answer", question), copy)

    async def profile(self, caller: str, copy: _Copy) -> str:
        """A page about what a copy tells of the original."""
        return str((await self._done(caller, ("profile", None), copy))["page"])

    async def check(self, caller: str, signers: list[str], copy: _Copy) -> dict[str, Any]:
        """What the certificate of a copy says; refused if it is not as one of these keys signed it."""
        return await self._done(caller, ("check", signers), copy)

    async def _done(self, caller: str, task: _Task, copy: _Copy) -> dict[str, Any]:
        if caller in self._asking:
            raise HTTPProblem(429, "Your last question is still being answered; wait for it.", Retry_After="5")
        if len(self._asking) >= _AT_ONCE:
            raise HTTPProblem(503, "Other questions are being answered; ask again in a moment.", Retry_After="5")
        self._asking.add(caller)
        try:
            found = await self._answered(task, copy)
        finally:
            self._asking.discard(caller)
        if "refused" in found:
            raise HTTPProblem(422, found["refused"])
        return found

    def close(self) -> None:
        """Delete the compiled code."""
        if self._cache is not None:
            self._cache.cleanup()

    async def _answered(self, task: _Task, copy: _Copy) -> dict[str, Any]:
        """What a new process says, which is ended when it takes too long."""
        process = await self._started()
        try:
            told = await asyncio.wait_for(_conversation(process, task, copy), _SECONDS)
        except TimeoutError:
            raise HTTPProblem(422, f"This takes too long to be done here; {_DOWNLOAD}.") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            return dict(json.loads(told))
        except ValueError:  # its time or its memory ended
            detail = f"This takes too much time or memory to be done here; {_DOWNLOAD}."
            raise HTTPProblem(422, detail) from None

    async def _started(self) -> Process:
        """A new process, with nothing of the service's environment but where Python finds its packages."""
        if self._cache is None:  # compiled code is not shared with the service, which trusts its own
            self._cache = tempfile.TemporaryDirectory(prefix="sfumato-questions-")
        own = {"PATH": os.defpath, "HOME": self._cache.name, "NUMBA_CACHE_DIR": self._cache.name}
        kept = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "sfumato.service.question_process"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**own, **kept, **dict.fromkeys(_THREADS, "1")},
            cwd=self._cache.name,
        )


async def _conversation(process: Process, task: _Task, copy: _Copy) -> bytes:
    """Hand a process the task and the copy, and read what it says."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process must have pipes")
    total = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it ended before it had read all
        process.stdin.write(json.dumps(task).encode() + b"\n")
        async with contextlib.aclosing(copy.chunks()) as chunks:
            async for chunk in chunks:
                total += len(chunk)
                if total > _MOST_BYTES:
                    most = f"{_MOST_BYTES >> 20} MiB"
                    raise HTTPProblem(413, f"Questions are answered here about copies of at most {most}; {_DOWNLOAD}.")
                process.stdin.write(chunk)
                await process.stdin.drain()
        process.stdin.close()
    told = b""
    while len(told) <= _MOST_ANSWER and (part := await process.stdout.read(1 << 16)):
        told += part
    return told[:_MOST_ANSWER]
