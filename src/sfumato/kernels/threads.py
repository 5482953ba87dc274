"""Threads: as many as cores run attacks side by side, so that none of them starts threads of its own.

Libraries disagree on what a limit is for: that of BLAS is for the whole process, that of OpenMP for the thread that
sets it, and for libraries that are loaded by then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> list[R]:
    """The results of some work, in order; by default in one thread for each core."""
    import sklearn.utils._openmp_helpers  # noqa: F401, PLC0415 - loads OpenMP, or else it could not be limited

    def single(item: T) -> R:
        with threadpool_limits(1, user_api="openmp"):
            return work(item)

    with threadpool_limits(1), ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        return list(pool.map(single, items))
