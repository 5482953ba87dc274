"""Makers: processes that make copies, so that a service answers small requests while large ones are under way.

Blurring a table keeps Python busy, and a process has one Python. So a worker of the service leaves copies to processes
of their own, which step back behind everything else that wants a core, and take many copies forward in turns, a step at
a time. They end when their worker does; a worker whose maker dies ends too, and is begun anew.
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
from sfumato.service.cache import Memory
from sfumato.service.state import State
from sfumato.vault import Vault
from sfumato.vault.delivery import Delivery
from sfumato.vault.grants import Asked

_STEP_BACK = 10
"""How far makers step back in the queue for a core."""

_PIECE = 1 << 20
"""Bytes that are handed over at once."""


@dataclass(frozen=True)
class Wanted:
    """A copy, and who asks for it."""

    actor: str
    recipient: str
    dataset: str
    level: Asked
    form: str


class Changed(SfumatoError):
    """A copy that became another one between two questions."""


@dataclass(frozen=True)
class Described:
    """What is known of a copy before it is made."""

    tag: str
    version: int
    size: int | None


@dataclass(order=True)
class _Asking:
    """Something that a maker is asked. Short questions come before the next step of any copy, else first come first."""

    long: bool
    number: int
    what: str = field(compare=False)
    words: tuple[Any, ...] = field(compare=False)
    answer: Future[Any] = field(default_factory=Future, compare=False)


class Maker:
    """A maker, as its worker sees it: one thing is asked of it at a time."""

    def __init__(self, opener: Callable[[], Vault]) -> None:
        forking = multiprocessing.get_context("fork")
        self._wire, theirs = forking.Pipe()
        self._process = forking.Process(target=_work, args=(theirs, self._wire, opener), daemon=True)
        self._process.start()
        theirs.close()
        self._queue: queue.PriorityQueue[_Asking] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self.under_way = 0
        threading.Thread(target=self._hand_over, daemon=True, name="maker").start()

    async def ask(self, what: str, *words: Any) -> Any:
        """The answer; its refusals are raised here."""
        asking = _Asking(what == "go_on", next(self._numbers), what, words)
        asking.answer.set_running_or_notify_cancel()  # it is answered even if whoever asked hangs up: it may be an end
        self._queue.put(asking)
        return await asyncio.wrap_future(asking.answer)

    @contextlib.asynccontextmanager
    async def stream(self, wanted: Wanted, tag: str, first: int, last: int | None) -> Any:
        """A function that gives the next bytes of a copy, and nothing at the end."""
        name = next(self._numbers)
        self.under_way += 1
        try:
            await self.ask("begin", name, wanted, tag, first, last)
            yield lambda: self.ask("go_on", name)
        finally:
            self.under_way -= 1
            await self.ask("end", name)

    def close(self) -> None:
        """Let it go."""
        self._wire.close()

    def _hand_over(self) -> None:
        while True:
            asking = self._queue.get()
            try:
                self._wire.send((asking.what, asking.words))
                right, answer = self._wire.recv()
            except (EOFError, OSError):
                os._exit(70)  # the maker is dead, and what it was making is lost: the whole worker is begun anew
            asking.answer.set_result(answer) if right else asking.answer.set_exception(answer)


class _Bench:
    """What a maker has in hand."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._state = vault, State(vault)
        self._streams: dict[int, Iterator[bytes]] = {}
        self._known: Memory[Delivery] = Memory(vault)

    def describe(self, wanted: Wanted) -> Described:
        """The name of the copy's bytes, and how many there are if they were counted."""
        sending = self._sending(wanted)
        tag = sending.tag(wanted.form)
        return Described(tag, sending.request.dataset.version, self._state.size(tag))

    def begin(self, name: int, wanted: Wanted, tag: str, first: int, last: int | None) -> None:
        """Have a copy in hand, from one byte to another; refused if its bytes are no longer those of that name."""
        sending = self._sending(wanted)
        if sending.tag(wanted.form) != tag:
            raise Changed("the dataset or the grant changed meanwhile; ask again")
        chunks = sending.chunks(wanted.form)
        self._streams[name] = window(chunks, first, last, lambda size: self._state.keep_size(tag, size))

    def go_on(self, name: int) -> bytes | None:
        """The next bytes."""
        return next(self._streams[name], None)

    def end(self, name: int) -> None:
        """Have a copy in hand no more."""
        stream: Any = self._streams.pop(name, None)
        if stream is not None:
            stream.close()

    def _sending(self, wanted: Wanted) -> Delivery:
        place = wanted.recipient, wanted.dataset, wanted.level
        found = self._known.ask(place, lambda: Delivery.of(self._vault, *place))
        if found.request.grant.is_over(self._vault.now()):  # the ledger does not move when a grant ends
            found = Delivery.of(self._vault, *place)
        return found.by(wanted.actor)


def window(chunks: Iterator[bytes], first: int, last: int | None, whole: Callable[[int], None]) -> Iterator[bytes]:
    """The bytes from one place to another, in pieces; `whole` is told how many there are, if the end was reached."""
    at = 0
    for chunk in chunks:
        begin, end = max(first - at, 0), len(chunk) if last is None else min(last + 1 - at, len(chunk))
        at += len(chunk)
        for start in range(begin, end, _PIECE):
            yield chunk[start : min(start + _PIECE, end)]
        if last is not None and at > last:
            return
    whole(at)


def _work(wire: Connection, others: Connection, opener: Callable[[], Vault]) -> None:
    """A maker's life."""
    others.close()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # it ends when its worker lets go of the wire
    os.nice(_STEP_BACK)
    bench = _Bench(opener())
    while True:
        try:
            what, words = wire.recv()
        except (EOFError, OSError):
            os._exit(0)
        try:
            answer: tuple[bool, Any] = True, getattr(bench, what)(*words)
        except Exception as error:
            answer = False, _portable(error)
        with contextlib.suppress(OSError):
            wire.send(answer)


def _portable(error: Exception) -> Exception:
    """An error that can travel."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:
        return SfumatoError(f"{type(error).__name__}: {error}")
    return error
