"""The local engine: all cores of this machine, as threads, since kernels, cipher and Arrow release Python's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice

from sfumato.engines import Engine, In, Out, Secret
from sfumato.errors import EngineError
from sfumato.keys.key import Key


class Local(Engine):
    """Threads, with a bounded number of items in flight: memory does not grow with the table."""

    is_distributed = False

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise EngineError(f"the number of threads must be at least 1, got {threads}")
        self.threads = threads or cores()

    @classmethod
    def at(cls, address: str | None, threads: int | None) -> Local:
        if address is not None:
            raise EngineError(
                f"the local engine runs on this machine and has no address, got {address!r}; leave it out"
            )
        return cls(threads)

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        items = iter(items)
        first = list(islice(items, 1 if self.threads == 1 else 2))
        alone, items = self.threads == 1 or len(first) < 2, chain(first, items)
        del first  # which would be kept in memory
        if alone:  # threads would cost more than they save
            yield from map(function, items)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[Out]] = deque()
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) > 2 * self.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def shared_key(self, key: Key) -> AbstractContextManager[Secret]:
        return nullcontext(lambda: key)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
