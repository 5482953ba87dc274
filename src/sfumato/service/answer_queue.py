"""Queue that writes survey answers to the database in batches, and confirms each one when it is on disk."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from sfumato.service.cache import LedgerCache
from sfumato.service.problems import HTTPProblem
from sfumato.survey.invitations import Counted
from sfumato.survey.rows import Submission
from sfumato.survey.surveys import RegisteredSurvey, Surveys

_BATCH_SIZE = 500
"""Maximum number of answers in one transaction."""

_MAX_QUEUED = 5000
"""Maximum number of answers that wait to be written."""

_TIMEOUT = 30
"""Seconds to wait for the database."""

CLOSED = "This survey is closed and accepts no more answers. Nothing was stored."

_OVERLOADED = "Too many answers are waiting to be written; send this one again. Each ticket counts once."


@dataclass
class _Pending:
    """An answer that waits to be written, and the future that reports whether it counts."""

    survey: RegisteredSurvey
    submission: Submission
    done: Future[Counted] = field(default_factory=Future)


class AnswerQueue:
    """One writer thread per server worker: all answers that arrive during a write share the next transaction."""

    def __init__(self, surveys: Surveys, cache: LedgerCache[RegisteredSurvey]) -> None:
        self._surveys, self._cache = surveys, cache
        self._queue: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock, self._closed = threading.Lock(), False

    async def submit(self, survey: RegisteredSurvey, submission: Submission) -> Counted:
        """Store an answer; returns, once it is on disk, whether it counts (see `Collector.store`)."""
        if self._closed or self._queue.qsize() > _MAX_QUEUED:
            raise HTTPProblem(503, _OVERLOADED, Retry_After="2")
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="answer-queue", daemon=True)
                self._thread.start()
        pending = _Pending(survey, submission)
        self._queue.put(pending)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(pending.done), _TIMEOUT)
        except TimeoutError:
            raise HTTPProblem(503, _OVERLOADED, Retry_After="5") from None

    def close(self) -> None:
        """Write all queued answers, and accept no more."""
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(_TIMEOUT)

    def _run(self) -> None:
        last = False
        while not last and (first := self._queue.get()) is not None:
            batch = [first]
            with contextlib.suppress(queue.Empty):
                while len(batch) < _BATCH_SIZE and not last:
                    following = self._queue.get_nowait()
                    last = following is None
                    batch += [following] if following is not None else []
            batch.sort(key=lambda pending: pending.survey.name)
            for _, group in itertools.groupby(batch, key=lambda pending: pending.survey.name):
                self._write(list(group))

    def _write(self, batch: list[_Pending]) -> None:
        """Write the answers to one survey in one transaction."""
        survey = batch[0].survey
        try:
            current = self._cache.get(survey.name, lambda: self._surveys.get(survey.name))
            if self._surveys.state(current) != "open":
                raise HTTPProblem(409, CLOSED)
            submissions = [pending.submission for pending in batch]
            counted = self._surveys.collector.store(survey.name, survey.survey, submissions, invited=survey.invited)
        except Exception as error:
            for pending in batch:
                if pending.done.set_running_or_notify_cancel():
                    pending.done.set_exception(error)
        else:
            for pending, counts in zip(batch, counted, strict=True):
                if pending.done.set_running_or_notify_cancel():  # false if the client disconnected; it will retry
                    pending.done.set_result(counts)
