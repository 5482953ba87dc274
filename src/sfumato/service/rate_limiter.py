"""Rate limiter: token buckets for requests per caller and address, invalid tokens per address, and failed sign-ins."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

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

    def take(self, key: str) -> float:
        """Take a token; returns the seconds to wait if the bucket is empty."""
        with self._lock:
            now = time.monotonic()
            level, updated = self._buckets.pop(key, (self._capacity, now))
            level = min(self._capacity, level + (now - updated) * self._refill_rate)
            allowed = level >= 1
            self._buckets[key] = (level - 1 if allowed else level, now)
            if len(self._buckets) > _MAX_BUCKETS:
                self._buckets.popitem(last=False)
            return 0.0 if allowed else (1 - level) / self._refill_rate

    def put_back(self, key: str) -> None:
        """Put back a token that was taken."""
        with self._lock:
            if key in self._buckets:
                level, updated = self._buckets[key]
                self._buckets[key] = min(self._capacity, level + 1), updated


class RateLimiter:
    """The rate limits of one server worker."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._callers = TokenBuckets(settings.requests_per_minute)
        self._invalid_tokens = TokenBuckets(settings.failures_per_minute)
        self._sign_ins = TokenBuckets(settings.failures_per_minute)
        self._known_addresses: OrderedDict[str, None] = OrderedDict()
        """The accounts with the addresses from which somebody signed in to them."""
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

    def record_invalid_token(self, request: HTTPConnection) -> None:
        """Count a request without a valid token or session; refused if the address sends too many of them."""
        _refuse_if(self._invalid_tokens.take(self.client_address(request)))

    @contextlib.contextmanager
    def sign_in(self, request: HTTPConnection, account: str) -> Iterator[Callable[[], None]]:
        """Count a sign-in as failed until the function that this yields is called.

        Refused, before the password is checked, if too many failed from this address, or to this account from addresses
        that never signed in to it: guesses from elsewhere do not lock out its owner.
        """
        address = self.client_address(request)
        known = f"{account} from {address}"
        keys = [f"address {address}"]
        if account:
            keys.append(f"account {known if known in self._known_addresses else account}")
        for key in keys:
            _refuse_if(self._sign_ins.take(key))

        def succeeded() -> None:
            for key in keys:
                self._sign_ins.put_back(key)
            if account:
                self._known_addresses[known] = None
                while len(self._known_addresses) > _MAX_BUCKETS:
                    self._known_addresses.popitem(last=False)

        yield succeeded


def _refuse_if(wait: float) -> None:
    if wait:
        seconds = math.ceil(wait)
        raise HTTPProblem(429, f"Too many requests; wait {seconds} s and try again.", Retry_After=str(seconds))
