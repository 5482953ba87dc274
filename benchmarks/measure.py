"""Timing: the best of several runs, alternating between Sfumato and a baseline, so that both see the same load."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One row of the table of results: Sfumato against a baseline."""

    name: str
    ours: float
    baseline: float
    baseline_name: str
    target: str
    met: bool
    unit: str = "s"

    @property
    def ratio(self) -> float:
        return self.ours / self.baseline


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(ours: Callable[[], object], baseline: Callable[[], object], rounds: int = 5) -> tuple[float, float]:
    """The best time of each, measured alternately after one warm-up run."""
    ours(), baseline()
    times = [(seconds(ours), seconds(baseline)) for _ in range(rounds)]
    return min(t for t, _ in times), min(t for _, t in times)


def at_most(name: str, pair: tuple[float, float], baseline_name: str, bound: float) -> Line:
    ours, baseline = pair
    return Line(name, ours, baseline, baseline_name, f"at most {bound:g} times", ours <= bound * baseline)
