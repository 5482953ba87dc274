"""The gate: how often somebody may ask, and how often an address may fail to say who it is."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict

from starlette.requests import HTTPConnection

from sfumato.service.problems import Refused
from sfumato.service.settings import Settings

_TOGETHER = 10
"""How many callers' worth of requests may come from one address, behind which there may be many."""

_REMEMBERED = 100_000
"""Callers that are kept in mind; the longest silent one is forgotten first."""


class Buckets:
    """One bucket of permissions a caller, which fills steadily."""

    def __init__(self, a_minute: int) -> None:
        self._size, self._speed = float(a_minute), a_minute / 60
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, who: str, count: float = 1.0) -> float:
        """Take a permission; returns the seconds to wait if there is none. Nothing is taken with a count of 0."""
        with self._lock:
            now = time.monotonic()
            left, then = self._held.pop(who, (self._size, now))
            left = min(self._size, left + (now - then) * self._speed)
            enough = left >= 1
            self._held[who] = (left - count if enough else left, now)
            if len(self._held) > _REMEMBERED:
                self._held.popitem(last=False)
            return 0.0 if enough else (1 - left) / self._speed


class Gate:
    """The buckets of a worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._callers, self._failures = Buckets(settings.rate), Buckets(settings.tries)
        self._addresses = Buckets(_TOGETHER * settings.rate)

    def address(self, request: HTTPConnection) -> str:
        """Where a request comes from; the last proxy's word counts, if there is one."""
        said = request.headers.get("x-forwarded-for", "") if self._settings.proxied else ""
        return said.rpartition(",")[2].strip() or (request.client.host if request.client else "")

    def enter(self, request: HTTPConnection) -> None:
        """Refuse an address from which too much is asked, whoever asks."""
        _refuse(self._addresses.take(self.address(request)))

    def admit(self, caller: str) -> None:
        """Refuse whoever asks too often, once it is known who that is."""
        _refuse(self._callers.take(caller))

    def failed(self, request: HTTPConnection) -> None:
        """Remember that an address showed nothing, or something wrong; who does so too often is told to wait."""
        _refuse(self._failures.take(self.address(request)))

    def knock(self, request: HTTPConnection) -> None:
        """Refuse an address that failed too often, before its password is even looked at."""
        _refuse(self._failures.take(self.address(request), 0))


def _refuse(wait: float) -> None:
    if wait:
        raise Refused(429, "Too many requests; wait a little.", Retry_After=str(math.ceil(wait)))
