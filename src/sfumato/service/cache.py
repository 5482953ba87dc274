"""Caches for values read from the ledger, which are valid until the ledger's head changes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from sfumato.vault import Vault

_MAX_ENTRIES = 10_000
"""Maximum number of cached values."""

Value = TypeVar("Value")

_HEAD = "SELECT head FROM sfumato_vault"


class LedgerCache(Generic[Value]):
    """Values that are dropped when the ledger's head changes; each lookup reads the head, which is one short query."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._lock = vault, threading.Lock()
        self._head, self._values = "", dict[Hashable, Value]()

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The cached value of a key; computed if there is none."""
        head = self._read_head()
        with self._lock:
            if head != self._head or len(self._values) >= _MAX_ENTRIES:
                self._head, self._values = head, {}
            if key in self._values:
                return self._values[key]
        value = compute()
        with self._lock:
            if head == self._head:  # a value computed under an earlier head may be right, but is not cached
                self._values[key] = value
        return value

    def _read_head(self) -> str:
        with self._vault.ledger.database.transaction(writes=False) as connection:
            return str(connection.value(_HEAD))


class RecentCache(Generic[Value]):
    """A `LedgerCache` for coroutines that reuses a value for a short time without reading the ledger's head."""

    def __init__(self, cache: LedgerCache[Value], seconds: float) -> None:
        self._cache, self._seconds = cache, seconds
        self._values = dict[Hashable, tuple[float, Value]]()

    async def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value of a key, at most the given number of seconds old."""
        now = time.monotonic()
        read_at, value = self._values.get(key, (-1.0, None))
        if value is not None and now - read_at < self._seconds:
            return value
        fresh = await asyncio.to_thread(self._cache.get, key, compute)
        if len(self._values) >= _MAX_ENTRIES:
            self._values.clear()
        self._values[key] = now, fresh
        return fresh
