"""Pool of worker processes that generate copies, so that small requests are answered while large copies are made.

Perturbing a table keeps the interpreter of its process busy. So each server worker leaves it to copy workers: processes
with a lower scheduling priority, each of which generates many copies at once, one chunk of each in turn. Copy workers
end with their server worker; a server worker whose copy worker dies ends too, and is replaced by the supervisor.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import pickle
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.service.cache import LedgerCache
from sfumato.service.state import State
from sfumato.vault import Vault
from sfumato.vault.delivery import Delivery
from sfumato.vault.grants import RequestedLevel

_NICENESS = 10
"""Increment of the nice value of copy workers: they get the cores that nothing else wants."""

_CHUNK_BYTES = 1 << 20
"""Maximum size of a chunk that a copy worker returns."""


@dataclass(frozen=True)
class CopyRequest:
    """A request for a copy."""

    actor: str
    recipient: str
    dataset: str
    level: RequestedLevel
    format: str
    since: int | None = None


class CopyChanged(SfumatoError):
    """The dataset or the grant changed between two calls for the same copy."""


@dataclass(frozen=True)
class CopyDescription:
    """What is known about a copy before it is generated."""

    tag: str
    """Identifies the bytes of the copy (its ETag)."""
    version: int
    access: dict[str, Any]
    """What the access log says about its delivery."""
    grant: int
    """The number of the ledger entry of the grant under which it is released."""
    size: int | None
    """Bytes of the copy, if it has been generated completely before."""


@dataclass(order=True)
class _Call:
    """A queued method call; short calls come before the next chunk of any copy, otherwise first come, first served."""

    is_long: bool
    number: int
    method: str = field(compare=False)
    arguments: tuple[Any, ...] = field(compare=False)
    answer: Future[Any] = field(default_factory=Future, compare=False)


class CopyWorker:
    """A copy worker process as its server worker sees it: it executes one call at a time."""

    def __init__(self, open_vault: Callable[[], Vault]) -> None:
        forking = multiprocessing.get_context("fork")
        self._connection, child_end = forking.Pipe()
        self._process = forking.Process(target=_run, args=(child_end, self._connection, open_vault), daemon=True)
        self._process.start()
        child_end.close()
        self._queue: queue.PriorityQueue[_Call] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self.active_streams = 0
        threading.Thread(target=self._dispatch, daemon=True, name="copy-worker").start()

    async def call(self, method: str, *arguments: Any) -> Any:
        """The result of a method of `_CopyStreams` in the process; its exceptions are raised here."""
        call = _Call(method == "read", next(self._numbers), method, arguments)
        call.answer.set_running_or_notify_cancel()  # executed even if the client disconnects: it may close a stream
        self._queue.put(call)
        return await asyncio.wrap_future(call.answer)

    @contextlib.asynccontextmanager
    async def stream(self, wanted: CopyRequest, tag: str, first: int, last: int | None) -> Any:
        """A function that returns the next chunk of a copy, and None at its end."""
        stream = next(self._numbers)
        self.active_streams += 1
        try:
            await self.call("open", stream, wanted, tag, first, last)
            yield lambda: self.call("read", stream)
        finally:
            self.active_streams -= 1
            await self.call("close", stream)

    def close(self) -> None:
        """Let the process end."""
        self._connection.close()

    def _dispatch(self) -> None:
        while True:
            call = self._queue.get()
            try:
                self._connection.send((call.method, call.arguments))
                succeeded, answer = self._connection.recv()
            except (EOFError, OSError):
                os._exit(70)  # the copy worker died and its copies are lost: the whole server worker is replaced
            call.answer.set_result(answer) if succeeded else call.answer.set_exception(answer)


class WorkerPool:
    """The copy workers of one server worker."""

    def __init__(self, open_vault: Callable[[], Vault], size: int) -> None:
        self._workers = [CopyWorker(open_vault) for _ in range(size)]

    def least_busy(self) -> CopyWorker:
        """The copy worker with the fewest active streams."""
        return min(self._workers, key=lambda worker: worker.active_streams)

    def close(self) -> None:
        """Let all processes end."""
        for worker in self._workers:
            worker.close()


class _CopyStreams:
    """The copies that one copy worker process is generating."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._state = vault, State(vault)
        self._streams: dict[int, Iterator[bytes]] = {}
        self._cache: LedgerCache[Delivery] = LedgerCache(vault)

    def describe(self, wanted: CopyRequest) -> CopyDescription:
        """The tag, the version and, if known, the size of a copy."""
        delivery = self._delivery(wanted)
        tag, request = delivery.tag(wanted.format), delivery.request
        size, access = self._state.size(tag), request.access(wanted.format)
        return CopyDescription(tag, request.dataset.version, access, request.entry.number, size)

    def open(self, stream: int, wanted: CopyRequest, tag: str, first: int, last: int | None) -> None:
        """Open a stream of a range of a copy's bytes; refused if the copy no longer has this tag."""
        delivery = self._delivery(wanted)
        if delivery.tag(wanted.format) != tag:
            raise CopyChanged("the dataset or the grant has changed in the meantime; send the request again")
        chunks = delivery.chunks(wanted.format)
        self._streams[stream] = byte_range(chunks, first, last, lambda size: self._state.store_size(tag, size))

    def read(self, stream: int) -> bytes | None:
        """The next chunk of a stream, or None at its end."""
        return next(self._streams[stream], None)

    def close(self, stream: int) -> None:
        """Close a stream."""
        chunks: Any = self._streams.pop(stream, None)
        if chunks is not None:
            chunks.close()

    def _delivery(self, wanted: CopyRequest) -> Delivery:
        key = wanted.recipient, wanted.dataset, wanted.level, wanted.since
        delivery = self._cache.get(key, lambda: Delivery.of(self._vault, *key))
        if delivery.request.grant.is_over(self._vault.now()):  # a grant expires without an entry in the ledger
            delivery = Delivery.of(self._vault, *key)
        return delivery.by(wanted.actor)


def byte_range(
    chunks: Iterator[bytes], first: int, last: int | None, on_complete: Callable[[int], None]
) -> Iterator[bytes]:
    """The bytes from `first` to `last`, in chunks; `on_complete` gets the total size if the end was reached."""
    offset = 0
    for chunk in chunks:
        begin, end = max(first - offset, 0), len(chunk) if last is None else min(last + 1 - offset, len(chunk))
        offset += len(chunk)
        for start in range(begin, end, _CHUNK_BYTES):
            yield chunk[start : min(start + _CHUNK_BYTES, end)]
        if last is not None and offset > last:
            return
    on_complete(offset)


def _run(connection: Connection, parent_end: Connection, open_vault: Callable[[], Vault]) -> None:
    """Main loop of a copy worker process."""
    parent_end.close()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # it ends when its server worker closes the connection
    os.nice(_NICENESS)
    streams = _CopyStreams(open_vault())
    while True:
        try:
            method, arguments = connection.recv()
        except (EOFError, OSError):
            os._exit(0)
        try:
            answer: tuple[bool, Any] = True, getattr(streams, method)(*arguments)
        except Exception as error:
            answer = False, _picklable(error)
        with contextlib.suppress(OSError):
            connection.send(answer)


def _picklable(error: Exception) -> Exception:
    """The same error if it can be sent to another process, else one with its type and message."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own object
    except Exception:
        return SfumatoError(f"{type(error).__name__}: {error}")
    return error
