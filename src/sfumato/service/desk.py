"""The desk: the vault as a service uses it, with what belongs to the running service beside it."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import Request

from sfumato.service.gate import Gate
from sfumato.service.jobs import Jobs
from sfumato.service.makers import Maker
from sfumato.service.memory import Memory
from sfumato.service.metrics import Metrics
from sfumato.service.settings import Settings
from sfumato.service.state import State
from sfumato.vault import Vault
from sfumato.vault.tokens import Token


class Desk:
    """All that requests share in one worker."""

    def __init__(self, vault: Vault, settings: Settings, makers: Sequence[Maker]) -> None:
        self.vault, self.settings, self.makers = vault, settings, makers
        self.state = State(vault.ledger.database)
        self.metrics = Metrics()
        self.gate = Gate(settings)
        self.jobs = Jobs(self.state, settings.waiting)
        self.bearers: Memory[Token | None] = Memory(vault)

    def maker(self) -> Maker:
        """The maker that has least to do."""
        return min(self.makers, key=lambda one: one.under_way)

    def close(self) -> None:
        """Take no more work."""
        for maker in self.makers:
            maker.close()
        self.jobs.close()


def desk_of(request: Request) -> Desk:
    """The desk of the worker that answers."""
    desk: Desk = request.app.state.desk
    return desk
