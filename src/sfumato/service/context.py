"""The desk: the vault as a service uses it, with what belongs to the running service beside it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence

from fastapi import Request

from sfumato.service.answer_queue import Intake
from sfumato.service.cache import Memory, Recent
from sfumato.service.jobs import Jobs
from sfumato.service.metrics import Metrics
from sfumato.service.problems import Refused
from sfumato.service.rate_limiter import Gate
from sfumato.service.settings import Settings
from sfumato.service.state import State
from sfumato.service.worker_pool import Maker
from sfumato.survey.surveys import Known, Surveys
from sfumato.vault import Vault
from sfumato.vault.tokens import Token


class ServiceContext:
    """All that requests share in one worker."""

    def __init__(self, vault: Vault, settings: Settings, makers: Sequence[Maker]) -> None:
        self.vault, self.settings, self.makers = vault, settings, makers
        self.state = State(vault)
        self.metrics = Metrics()
        self.gate = Gate(settings)
        self._on_the_way: Counter[str] = Counter()
        self.jobs = Jobs(self.state, settings.waiting)
        self.bearers: Memory[Token | None] = Memory(vault)
        self.surveys, known = Surveys(vault), Memory[Known](vault)
        self.known_surveys = Recent(known, settings.recent)
        self.intake = Intake(self.surveys, known)

    @contextlib.contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """A place for one more copy on the way to somebody; refused where there are too many."""
        if self._on_the_way[caller] >= self.settings.streams:
            raise Refused(429, "Too many copies are on their way to you; wait for one.", Retry_After="10")
        self._on_the_way[caller] += 1
        try:
            yield
        finally:
            self._on_the_way[caller] -= 1
            if not self._on_the_way[caller]:
                del self._on_the_way[caller]

    def maker(self) -> Maker:
        """The maker that has least to do."""
        return min(self.makers, key=lambda one: one.under_way)

    def close(self) -> None:
        """Take no more work."""
        for maker in self.makers:
            maker.close()
        self.jobs.close()
        self.intake.close()


def desk_of(request: Request) -> ServiceContext:
    """The desk of the worker that answers."""
    desk: ServiceContext = request.app.state.desk
    return desk
