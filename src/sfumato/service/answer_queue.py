"""The intake: answers to surveys that come in together are written together, and confirmed when they are on disk."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from sfumato.service.cache import Memory
from sfumato.service.problems import Refused
from sfumato.survey.rows import Submission
from sfumato.survey.surveys import Known, Surveys

_TOGETHER = 500
"""Answers in one transaction."""

CLOSED = "This survey is closed: it takes no answers any more. Nothing was stored."

_BUSY = "Too many answers are waiting to be written; send this one again. A ticket counts once."

_PATIENCE = 30
"""Seconds to wait for the database."""

_WAITING = 5000
"""Answers that may wait to be written."""


@dataclass
class _Waiting:
    known: Known
    sent: Submission
    done: Future[bool | None] = field(default_factory=Future)


class Intake:
    """One writer a worker: whatever comes in while it writes is written next, in one transaction."""

    def __init__(self, surveys: Surveys, memory: Memory[Known]) -> None:
        self._surveys, self._memory = surveys, memory
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock, self._closed = threading.Lock(), False

    async def put(self, known: Known, sent: Submission) -> bool | None:
        """Keep an answer; returns when it is on disk whether it counts (see `Collector.take`)."""
        if self._closed or self._queue.qsize() > _WAITING:
            raise Refused(503, _BUSY, Retry_After="2")
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="intake", daemon=True)
                self._thread.start()
        waiting = _Waiting(known, sent)
        self._queue.put(waiting)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(waiting.done), _PATIENCE)
        except TimeoutError:
            raise Refused(503, _BUSY, Retry_After="5") from None

    def close(self) -> None:
        """Write what is there, and take no more."""
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(_PATIENCE)

    def _work(self) -> None:
        last = False
        while not last and (first := self._queue.get()) is not None:
            batch = [first]
            with contextlib.suppress(queue.Empty):
                while len(batch) < _TOGETHER and not last:
                    more = self._queue.get_nowait()
                    last = more is None
                    batch += [more] if more is not None else []
            batch.sort(key=lambda one: one.known.name)
            for _, group in itertools.groupby(batch, key=lambda one: one.known.name):
                self._write(list(group))

    def _write(self, batch: list[_Waiting]) -> None:
        known = batch[0].known
        try:
            now = self._memory.ask(known.name, lambda: self._surveys.known(known.name))
            if self._surveys.state(now) != "open":
                raise Refused(409, CLOSED)
            sent = [one.sent for one in batch]
            found = self._surveys.collector.take(known.name, known.survey, sent, invited=known.invited)
        except Exception as error:
            for one in batch:
                if one.done.set_running_or_notify_cancel():
                    one.done.set_exception(error)
        else:
            for one, counts in zip(batch, found, strict=True):
                if one.done.set_running_or_notify_cancel():  # whoever hung up meanwhile tries again
                    one.done.set_result(counts)
