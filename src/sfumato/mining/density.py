"""The distribution of numbers of the original, as a density on a grid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.kernels.initial_density import InitialDensity
from sfumato.kernels.reconstruction import STEPS, Grid, NoiseChannel, reconstruct
from sfumato.mining import Miner
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.interval import half_width
from sfumato.mining.copies.summary import Summary
from sfumato.models.gaussian_noise import GaussianNoise

METHODS = ("em", "bayes")
_BINS = (200, 48, 20)
_CELLS = 1 << 22
_REPEATS = 40
_STILL = 2e-5
"""A step that moves less than this share of the values is the last."""


class Density(Miner):
    """The density of one column of the original, or of two or three together.

    Of one column, it starts from the fewest humps, or a plateau, that fit, and departs as far as the copy tells. It is
    smoothed as much as keeps it from fitting the noise; a sharp edge is therefore told only as sharply as the noise
    lets it. The band, from resampled counts, tells how much of what is seen is chance.
    """

    reference = "Agrawal and Srikant 2000, section 3; Agrawal and Aggarwal 2001, sections 3 and 4"

    def __init__(
        self,
        *,
        columns: Sequence[str] | None = None,
        method: str = "em",
        bins: int | None = None,
        steps: int = STEPS,
        confidence: float = 0.95,
        random_state: int = 0,
    ) -> None:
        """Say what to look at.

        Args:
            columns: one to three columns of numbers.
            method: `em`, which takes a value to lie anywhere in its bin, or `bayes`, which takes it in the middle.
            bins: along each column.
            steps: at most so many.
            confidence: of the band, at each point.
            random_state: seed of the resampling.

        """
        self.columns = columns
        self.method = method
        self.bins = bins
        self.steps = steps
        self.confidence = confidence
        self.random_state = random_state

    def fit(self, copy: Any, y: Any = None) -> Density:  # noqa: ARG002 - scikit-learn's signature
        """Read a copy: once for one column, twice for several. Of a coalition's, the best."""
        best = Copy.of(copy)
        if self.method not in METHODS:
            raise MiningError(f"a method must be one of {', '.join(METHODS)}, got {self.method!r}")
        names = best.numbers(self.columns, most=3)
        grid, counts = _counted(best, names, self.bins or _BINS[len(names) - 1], middles=self.method == "bayes")
        start = InitialDensity(grid, counts)
        blur = NoiseChannel(grid, start.mixing)
        self.columns_ = names
        self.edges_ = [grid.edges(axis) for axis in range(len(names))]
        found, self.steps_ = reconstruct(blur, counts[None], self.steps, _STILL, start.of(counts[None]))
        self.probabilities_ = found[0]
        self.density_ = self.probabilities_ / np.prod(grid.steps)
        inner = tuple(slice(m, m + n) for m, n in zip(grid.margin, grid.bins, strict=True))
        self.seen_ = counts[inner] / max(counts.sum(), 1.0)
        self.band_ = self._band(blur, counts, start) / np.prod(grid.steps)
        self.privacy_ = _privacy(grid, self.probabilities_, blur.forward(self.probabilities_))
        return self

    def share(self, low: float, high: float) -> float:
        """How much of the original lies between two ends, for one column; without an interval: see `ask` for one."""
        if len(self.columns_) != 1:
            raise MiningError(f"a share is of one column, and the density is of {', '.join(self.columns_)}")
        total = np.append(0.0, np.cumsum(self.probabilities_))
        below = np.interp([low, high], self.edges_[0], total / total[-1])
        return float(below[1] - below[0])

    def _band(self, blur: NoiseChannel, counts: Floats, start: InitialDensity) -> Floats:
        """What resampled counts lead to, between the quantiles of the confidence."""
        half_width(self.confidence)  # refuses what is none
        rng = np.random.default_rng(self.random_state)
        drawn = rng.multinomial(int(counts.sum()), (counts / counts.sum()).ravel(), size=_REPEATS)
        stack = drawn.reshape(_REPEATS, *counts.shape).astype(np.float64)
        found, _ = reconstruct(blur, stack, self.steps_, start=start.of(stack))
        ends: Floats = np.quantile(found, [(1 - self.confidence) / 2, (1 + self.confidence) / 2], axis=0)
        return ends


def _counted(copy: Copy, names: list[str], bins: int, *, middles: bool) -> tuple[Grid, Floats]:
    summary = Summary.of(copy, names)
    if not np.diag(summary.noise).all():
        bare = [name for name, noise in zip(names, np.diag(summary.noise), strict=True) if not noise]
        raise MiningError(f"{bare[0]!r} carries no noise, so its density is its histogram; leave it out")
    ends = np.array([_ends(copy, summary, i) for i in range(len(names))])
    spread = np.array([b.spread for b in summary.bins])
    grid = Grid(ends[:, 0], ends[:, 1], (bins,) * len(names), summary.noise, spread, spread_over_bins=not middles)
    if math.prod(grid.shape) > _CELLS:
        raise MiningError(f"{bins} bins a column are {math.prod(grid.shape):,} cells with the noise; take fewer bins")
    if len(names) == 1:
        return grid, _rebinned(summary, grid)
    return grid, copy.fold(names, partial(_on_grid, names=names, grid=grid), np.add)


def _on_grid(copy: Copy, tables: Iterable[pa.Table], *, names: list[str], grid: Grid) -> Floats:
    counts = np.zeros(grid.shape)
    for table in tables:
        values = copy.values(table, names)
        counts += grid.count(values[~np.isnan(values).any(axis=1)])
    return counts


def _ends(copy: Copy, summary: Summary, place: int) -> tuple[float, float]:
    """Where the original may lie: between the ends of its clip, else hardly further out than the copy."""
    model = copy.model(summary.names[place])
    clip = model.clip[0] if isinstance(model, GaussianNoise) else None
    if clip is not None and all(isinstance(end, int | float) for end in clip):
        return float(clip[0]), float(clip[1])
    bins, (first, counts) = summary.bins[place], _counts(summary, place)
    low, high = bins.origin + first * bins.width, bins.origin + (first + len(counts)) * bins.width
    slack = min(bins.deviation, (high - low) / 4)
    return low + slack, high - slack


def _counts(summary: Summary, place: int) -> tuple[int, Floats]:
    counts = summary.counts[place]
    if counts is None:
        raise MiningError(f"{summary.names[place]!r} has values very far apart, which have no density to tell; clip it")
    return counts


def _rebinned(summary: Summary, grid: Grid) -> Floats:
    """The fine counts of one column in the bins of the grid, the margin's ends included."""
    bins, (first, counts) = summary.bins[0], _counts(summary, 0)
    fine = bins.origin + (first + np.arange(len(counts) + 1)) * bins.width
    inside = grid.edges(0, wide=True)[1:-1]
    total = np.append(0.0, np.cumsum(counts))
    cut = np.rint(np.concatenate([[0.0], np.interp(inside, fine, total), [total[-1]]]))
    whole: Floats = np.diff(cut)
    return whole


def _privacy(grid: Grid, chances: Floats, seen: Floats) -> float:
    """`2^h(X|Y)` (Agrawal and Aggarwal 2001, section 2): the length over which a value is as good as unknown.

    `h(X|Y) = h(X) + h(Z) - h(Y)`: of several columns it is a volume.
    """
    volume = math.log2(float(np.prod(grid.steps)))
    noise = 0.5 * math.log2((2 * math.pi * math.e) ** len(grid.bins) * max(float(np.linalg.det(grid.noise)), 1e-300))
    return float(2 ** (_entropy(chances) + volume + noise - _entropy(seen) - volume))


def _entropy(chances: Floats) -> float:
    kept = chances[chances > 1e-300] / chances.sum()
    return float(-(kept * np.log2(kept)).sum())
