"""Rate limiter: token buckets for requests per caller, requests per address and failed sign-ins per address."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict

from starlette.requests import HTTPConnection

from sfumato.service.problems import HTTPProblem
from sfumato.service.settings import Settings

_CALLERS_PER_ADDRESS = 10
"""How many callers' worth of requests one address may send: many callers can share one address behind a proxy."""

_MAX_BUCKETS = 100_000
"""Maximum number of buckets in memory; the least recently used one is dropped first."""


class TokenBuckets:
    """One token bucket per key, refilled at a constant rate."""

    def __init__(self, per_minute: int) -> None:
        self._capacity, self._refill_rate = float(per_minute), per_minute / 60
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str, count: float = 1.0) -> float:
        """Take tokens, or none with a count of 0; returns the seconds to wait if the bucket is empty."""
        with self._lock:
            now = time.monotonic()
            level, updated = self._buckets.pop(key, (self._capacity, now))
            level = min(self._capacity, level + (now - updated) * self._refill_rate)
            allowed = level >= 1
            self._buckets[key] = (level - count if allowed else level, now)
            if len(self._buckets) > _MAX_BUCKETS:
                self._buckets.popitem(last=False)
            return 0.0 if allowed else (1 - level) / self._refill_rate


class RateLimiter:
    """The rate limits of one server worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._callers = TokenBuckets(settings.requests_per_minute)
        self._failures = TokenBuckets(settings.failures_per_minute)
        self._addresses = TokenBuckets(_CALLERS_PER_ADDRESS * settings.requests_per_minute)

    def client_address(self, request: HTTPConnection) -> str:
        """The address that a request comes from, as reported by the last proxy if there is one."""
        forwarded = request.headers.get("x-forwarded-for", "") if self._settings.proxied else ""
        return forwarded.rpartition(",")[2].strip() or (request.client.host if request.client else "")

    def check_address(self, request: HTTPConnection) -> None:
        """Refuse an address that sends too many requests, whether authenticated or not."""
        _refuse_if(self._addresses.take(self.client_address(request)))

    def check_caller(self, caller: str) -> None:
        """Refuse an authenticated caller that sends too many requests."""
        _refuse_if(self._callers.take(caller))

    def record_failure(self, request: HTTPConnection) -> None:
        """Count a failed sign-in or a missing or invalid token; refused if the address has too many of them."""
        _refuse_if(self._failures.take(self.client_address(request)))

    def check_failures(self, request: HTTPConnection) -> None:
        """Refuse an address with too many failed sign-ins, before its password is checked."""
        _refuse_if(self._failures.take(self.client_address(request), 0))


def _refuse_if(wait: float) -> None:
    if wait:
        seconds = math.ceil(wait)
        raise HTTPProblem(429, f"Too many requests; wait {seconds} s and try again.", Retry_After=str(seconds))
