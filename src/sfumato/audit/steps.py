"""Steps of an audit: their names as they begin, with an estimate of the time that is left."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

_LEAST_DONE = 0.1
"""No estimate is given before this share of the work is done: it would be a guess."""


class Steps:
    """Announces steps; each has a cost, relative to the others, from which the time that is left is estimated.

    What `stage` raises ends the work. Steps may run side by side in threads.
    """

    def __init__(self, stage: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._stage, self._clock = stage, clock
        self._begun, self._planned, self._done = clock(), 0.0, 0.0
        self._lock = threading.Lock()

    def plan(self, cost: float) -> None:
        """Add to the cost of the whole work."""
        self._planned += cost

    @contextlib.contextmanager
    def step(self, text: str, cost: float) -> Iterator[None]:
        """One step, announced as it begins."""
        self._stage(text + self._left())
        yield
        with self._lock:
            self._done += cost

    def _left(self) -> str:
        if not self._planned or self._done < _LEAST_DONE * self._planned:
            return ""
        seconds = (self._clock() - self._begun) * max(self._planned / self._done - 1, 0.0)
        return f", about {seconds / 60:.0f} min left" if seconds > 90 else f", about {seconds:.0f} s left"
