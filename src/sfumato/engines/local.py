"""All cores of this machine, as threads: the kernels, the cipher and Arrow all work outside Python's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from sfumato.engines import Engine, In, Out
from sfumato.errors import ReleaseError


class Local(Engine):
    """Threads, with a bounded number of items under way: memory does not grow with the table."""

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ReleaseError(f"the number of threads must be at least 1, got {threads}")
        self._threads = threads or cores()

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        if self._threads == 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            waiting: deque[Future[Out]] = deque()
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) > 2 * self._threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
