"""Service context: the vault, and all objects that the requests of one server worker share."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Iterator

from fastapi import Request

from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Origin
from sfumato.service.answer_queue import AnswerQueue
from sfumato.service.cache import LedgerCache, RecentCache
from sfumato.service.jobs import JobRunner, Runs
from sfumato.service.metrics import Metrics
from sfumato.service.openid import SignInThere
from sfumato.service.problems import HTTPProblem
from sfumato.service.questions import Questions
from sfumato.service.rate_limiter import RateLimiter
from sfumato.service.settings import Settings
from sfumato.service.state import State
from sfumato.service.worker_pool import WorkerPool
from sfumato.survey.surveys import RegisteredSurvey, Surveys
from sfumato.vault import Vault
from sfumato.vault.grants import Grant, active_grant
from sfumato.vault.tokens import Token

_USE_INTERVAL = 600
"""Seconds after which the next use of a token or session is recorded again."""

_MAX_USES = 100_000
"""The most callers and addresses whose last recorded use is remembered."""


class ServiceContext:
    """The objects that all requests to one server worker share."""

    def __init__(self, vault: Vault, settings: Settings, pool: WorkerPool, jobs: Runs) -> None:
        self.vault, self.settings, self.pool = vault, settings, pool
        self.state = State(vault)
        self.openid = None if settings.openid is None else SignInThere(settings.openid)
        self.metrics = Metrics()
        self.limiter = RateLimiter(settings)
        self._streams: Counter[str] = Counter()
        self._uses: dict[Origin, float] = {}
        self.questions = Questions()
        self.jobs = JobRunner(self.state, settings.max_queued_jobs, jobs)
        self.token_cache: LedgerCache[Token | None] = LedgerCache(vault)
        self._grants: LedgerCache[tuple[Grant, Entry]] = LedgerCache(vault)
        self.surveys, surveys = Surveys(vault), LedgerCache[RegisteredSurvey](vault)
        self.survey_cache = RecentCache(surveys, settings.survey_cache_seconds)
        self.answer_queue = AnswerQueue(self.surveys, surveys)

    @contextlib.contextmanager
    def stream_slot(self, caller: str) -> Iterator[None]:
        """Count one more concurrent download of a caller; refused if the caller has too many already."""
        if self._streams[caller] >= self.settings.max_streams:
            raise HTTPProblem(
                429,
                f"At most {self.settings.max_streams} copies can be downloaded at the same time; wait for one to end.",
                Retry_After="10",
            )
        self._streams[caller] += 1
        try:
            yield
        finally:
            self._streams[caller] -= 1
            if not self._streams[caller]:
                del self._streams[caller]

    def record_use(self, actor: str, origin: Origin) -> None:
        """Record in the access log that a caller was admitted, unless that was recorded in the last ten minutes."""
        now = time.monotonic()
        if now - self._uses.get(origin, -math.inf) < _USE_INTERVAL:
            return
        if len(self._uses) >= _MAX_USES:
            self._uses.clear()
        self.vault.acting_as(actor, origin).record_access("used", {})
        self._uses[origin] = now

    def granted(self, recipient: str, dataset: str) -> int:
        """The number of the ledger entry of a grant; raises `GrantError` if none is in force now."""

        def find() -> tuple[Grant, Entry]:
            with self.vault.ledger.reading(self.vault.keys()) as reading:
                return active_grant(reading, recipient, dataset, self.vault.now())

        grant, entry = self._grants.get((recipient, dataset), find)
        if grant.is_over(self.vault.now()):  # a grant expires without an entry in the ledger
            find()
        return entry.number

    def close(self) -> None:
        """Stop the copy workers and the job runner, and write all queued survey answers."""
        self.pool.close()
        self.questions.close()
        self.jobs.close()
        self.answer_queue.close()


def context_of(request: Request) -> ServiceContext:
    """The context of the server worker that handles a request."""
    context: ServiceContext = request.app.state.context
    return context
