"""The desk: the vault as a service uses it, with what belongs to the running service beside it."""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from fastapi import Request

from sfumato.service.gate import Gate
from sfumato.service.jobs import Jobs
from sfumato.service.metrics import Metrics
from sfumato.service.settings import Settings
from sfumato.service.state import State
from sfumato.vault import Vault


class Desk:
    """All that requests share in one worker."""

    def __init__(self, vault: Vault, settings: Settings) -> None:
        self.vault, self.settings = vault, settings
        self.state = State(vault.ledger.database)
        self.metrics = Metrics()
        self.gate = Gate(settings)
        self.jobs = Jobs(self.state, settings.waiting)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.makers = ThreadPoolExecutor(cores, "copies", initializer=_step_back)

    def close(self) -> None:
        """Take no more work."""
        self.makers.shutdown(wait=False, cancel_futures=True)
        self.jobs.close()


def _step_back() -> None:
    """Let small requests go first: on Linux a thread has its own place in the queue for a core."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def desk_of(request: Request) -> Desk:
    """The desk of the worker that answers."""
    desk: Desk = request.app.state.desk
    return desk
