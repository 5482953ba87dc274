"""Answers from the ledger that hold as long as it says nothing new: to see that it does not is one short question."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import sqlalchemy as sa

from sfumato.ledger.tables import VAULT
from sfumato.vault import Vault

_MOST = 10_000
"""Answers that are kept."""

Answer = TypeVar("Answer")

_HEAD = sa.select(VAULT.c.head)


class Memory(Generic[Answer]):
    """Some answers, forgotten when the ledger's head moves."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._lock = vault, threading.Lock()
        self._head, self._kept = "", dict[Hashable, Answer]()

    def ask(self, question: Hashable, answer: Callable[[], Answer]) -> Answer:
        """The answer that is kept, else a new one."""
        head = self._now()
        with self._lock:
            if head != self._head or len(self._kept) >= _MOST:
                self._head, self._kept = head, {}
            if question in self._kept:
                return self._kept[question]
        found = answer()
        with self._lock:
            if head == self._head:  # an answer that is older than the head may still be right, but is not kept
                self._kept[question] = found
        return found

    def _now(self) -> str:
        with self._vault.ledger.database.transaction(writes=False) as connection:
            return str(connection.execute(_HEAD).scalar())


class Recent(Generic[Answer]):
    """The same for coroutines, without even the short question if it was asked a moment ago."""

    def __init__(self, memory: Memory[Answer], seconds: float) -> None:
        self._memory, self._seconds = memory, seconds
        self._kept = dict[Hashable, tuple[float, Answer]]()

    async def ask(self, question: Hashable, answer: Callable[[], Answer]) -> Answer:
        """An answer that was right not long ago."""
        now = time.monotonic()
        asked, found = self._kept.get(question, (-1.0, None))
        if found is not None and now - asked < self._seconds:
            return found
        fresh = await asyncio.to_thread(self._memory.ask, question, answer)
        if len(self._kept) >= _MOST:
            self._kept.clear()
        self._kept[question] = now, fresh
        return fresh
