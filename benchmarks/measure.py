"""Timing: medians of several runs, alternating between Sfumato and a baseline, so that both see the same load."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_FEATURES = {"aes": "AES", "vaes": "VAES", "sha_ni": "SHA", "sha2": "SHA", "avx2": "AVX2", "avx512f": "AVX-512"}
"""The instructions that matter here, by their names in /proc/cpuinfo."""


@dataclass(frozen=True)
class Times:
    """What one side of a comparison took: the median of some runs."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Pair:
    """Two sides of a comparison, and an interval of the ratio of their times."""

    sides: tuple[Times, Times]
    low: float
    high: float

    def __iter__(self) -> Iterator[float]:
        return iter(side.wall for side in self.sides)


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
    low: float | None = None
    high: float | None = None
    """The interval of the ratio, where both were measured alternately."""
    cpu: float | None = None
    """CPU seconds of Sfumato, on all cores."""

    @property
    def ratio(self) -> float:
        return self.ours / self.baseline


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def timed(work: Callable[[], object]) -> Times:
    """What one run took by the clock, and of all cores."""
    before = time.process_time()
    wall = seconds(work)
    return Times(wall, time.process_time() - before)


def compare(ours: Callable[[], object], baseline: Callable[[], object], rounds: int = 7) -> Pair:
    """The median times of both, measured alternately after a run to warm up, and an interval of their ratio.

    The interval is that of the ratios of neighbouring runs, without the outermost ones where there are more than six.
    """
    ours(), baseline()
    runs = [(timed(ours), timed(baseline)) for _ in range(rounds)]
    ratios = sorted(one.wall / other.wall for one, other in runs)
    cut = 1 if rounds > 6 else 0
    first, second = (_median([run[side] for run in runs]) for side in (0, 1))
    return Pair((first, second), ratios[cut], ratios[-1 - cut])


def _median(times: list[Times]) -> Times:
    return Times(statistics.median(one.wall for one in times), statistics.median(one.cpu for one in times))


def against(name: str, pair: Pair, baseline_name: str, target: str, *, met: bool) -> Line:
    """A row of two sides that were measured alternately."""
    ours, baseline = pair
    return Line(name, ours, baseline, baseline_name, target, met, "s", pair.low, pair.high, pair.sides[0].cpu)


def at_most(name: str, pair: Pair | tuple[float, float], baseline_name: str, bound: float) -> Line:
    ours, baseline = pair
    target, met = f"at most {bound:g} times", ours <= bound * baseline
    if isinstance(pair, Pair):
        return against(name, pair, baseline_name, target, met=met)
    return Line(name, ours, baseline, baseline_name, target, met)


def machine() -> dict[str, object]:
    """The machine: its processor, what that can do, and its cores."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line.split(":")[1].split() for line in lines if line.startswith(("flags", "Features"))), [])
    return {
        "machine": f"{platform.machine()} {models[0] if models else ''}".strip(),
        "features": sorted({feature for flag, feature in _FEATURES.items() if flag in flags}),
        "cores": len(os.sched_getaffinity(0)),
    }


def unrest(runs: int = 41) -> float:
    """How much longer the same work takes at times than at best: the 90 % quantile of its time over the least."""
    work = np.random.default_rng(0).normal(size=1 << 20)
    times = sorted(seconds(lambda: np.sort(work)) for _ in range(runs))
    return times[int(0.9 * runs)] / times[0]
