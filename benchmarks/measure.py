"""Timing: the best of several runs, ours and the rival's in turn, so that both meet the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One row of the table: ours against a rival."""

    what: str
    ours: float
    rival: float
    against: str
    target: str
    met: bool
    unit: str = "s"

    @property
    def ratio(self) -> float:
        return self.ours / self.rival


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def duel(ours: Callable[[], object], rival: Callable[[], object], rounds: int = 5) -> tuple[float, float]:
    """The best time of each, in alternation after one run to warm up."""
    ours(), rival()
    times = [(seconds(ours), seconds(rival)) for _ in range(rounds)]
    return min(t for t, _ in times), min(t for _, t in times)


def at_most(what: str, pair: tuple[float, float], against: str, bound: float) -> Line:
    ours, rival = pair
    return Line(what, ours, rival, against, f"at most {bound:g} times", ours <= bound * rival)
