"""The share of the original below any point, and from it quantiles, of a column that was counted in fine bins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve
from sklearn.isotonic import isotonic_regression

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.kernel_deconvolution import below, blunt, cutoff, peak
from sfumato.mining.copies.interval import Interval

_FINE = 64.0
"""Bins a wavelength of the cut-off."""
_GAP = _FINE / (2 * math.pi)
"""Bins that a window of the cut-off's frequency covers."""
_MOST = 1 << 21
_GENTLE = 1.0
WORST = 0.2
"""A standard error of a share that is too large to answer anything with."""


@dataclass(frozen=True)
class Bins:
    """How a column is counted: the noise it carries, its spread without it, and from where bins are numbered."""

    deviation: float
    spread: float
    rows: int
    origin: float

    @property
    def cutoff(self) -> float:
        """The highest frequency that is told from noise."""
        return cutoff(self.deviation, self.spread, self.rows) if self.deviation else math.inf

    @property
    def gentle_cutoff(self) -> float:
        """One that lets less noise through, and smooths more."""
        return cutoff(self.deviation, self.spread, self.rows, _GENTLE)

    @property
    def width(self) -> float:
        """Of a bin: fine against the cut-off, or against the spread where there is no noise."""
        return 2 * math.pi / (_FINE * self.cutoff) if self.deviation else self.spread / 512

    def count(self, values: Floats) -> tuple[int, Floats] | None:
        """The number of the first bin, and the counts from it on; none where they lie too far apart."""
        places = np.floor((values[~np.isnan(values)] - self.origin) / self.width)
        if not len(places):
            return 0, np.zeros(1)
        first, last = float(places.min()), float(places.max())
        if not max(abs(first), abs(last), last - first) < _MOST:
            return None
        return int(first), np.bincount((places - first).astype(np.int64)).astype(np.float64)


def added(one: tuple[int, Floats] | None, other: tuple[int, Floats] | None) -> tuple[int, Floats] | None:
    """Two counts as one."""
    if one is None or other is None:
        return None
    first = min(one[0], other[0])
    last = max(one[0] + len(one[1]), other[0] + len(other[1]))
    total = np.zeros(last - first)
    for start, counts in (one, other):
        total[start - first : start - first + len(counts)] += counts
    return first, total


@dataclass(frozen=True)
class Shares:
    """The estimated share of values below each of some points, and its standard error."""

    points: Floats
    shares: Floats
    errors: Floats
    smooth: Floats
    """The same with a lower cut-off, which is mostly nearer, and never falls: where an estimate is taken from."""

    @classmethod
    def of(cls, bins: Bins, counted: tuple[int, Floats]) -> Shares:
        """From the counts of the copy; see `kernels.unblurring` for the weights and their variance."""
        first, counts = counted
        rows = max(counts.sum(), 1.0)
        edges = bins.origin + (first + np.arange(len(counts) + 1, dtype=np.float64)) * bins.width
        if not bins.deviation:
            exact = np.append(0.0, np.cumsum(counts)) / rows
            return cls(edges, exact, np.zeros(len(edges)), exact)
        gaps = (np.arange(-len(counts), len(counts), dtype=np.float64) + 0.5) * bins.width
        half = below(gaps[len(counts) :], bins.deviation, bins.cutoff)
        weights = np.concatenate([1 - half[::-1], half])
        share, square = _folded(counts, weights) / rows, _folded(counts, weights**2) / rows
        tip = peak(gaps[len(counts) :], bins.deviation, bins.cutoff)
        height = _folded(counts, np.concatenate([tip[::-1], tip])) / rows
        variance = square - share + blunt() / bins.cutoff * np.maximum(height, 0)
        smooth = below(gaps[len(counts) :], bins.deviation, bins.gentle_cutoff)
        smooth = isotonic_regression(_folded(counts, np.concatenate([1 - smooth[::-1], smooth])) / rows)
        found = cls(edges, share, np.sqrt(np.maximum(variance, 0) / rows), smooth)
        if found.errors.max() > WORST:
            raise MiningError(
                f"quantiles need shares that are known better than to ±{2 * WORST:.0%}, and at this level of trust "
                f"{int(rows):,} rows give ±{2 * found.errors.max():.0%}; ask for a more faithful copy"
            )
        return found

    def quantile(self, share: float, width: float) -> Interval:
        """Where that share lies below, and all points around it that the error allows."""
        rising = isotonic_regression(self.shares)
        middle = int(np.clip(np.searchsorted(rising, share), 1, len(self.points) - 1))
        beyond = np.abs(self.shares - share) - width * self.errors
        first, last = _around(np.flatnonzero(beyond <= 0), middle)
        low = _crossing(beyond, self.points, first - 1, 1) if first else self.points[0]
        high = _crossing(beyond, self.points, last + 1, -1) if last + 1 < len(beyond) else self.points[-1]
        around = slice(middle - 1, middle + 1)
        if not self.errors.any():  # nothing but the width of the bins is unknown
            low, high = self.points[around]
        place = int(np.clip(np.searchsorted(self.smooth, share), 1, len(self.points) - 1))
        near = slice(place - 1, place + 1)
        estimate = float(np.interp(share, self.smooth[near], self.points[near]))
        return Interval(min(max(estimate, float(low)), float(high)), float(low), float(high))


def _around(possible: Rows, middle: int) -> tuple[int, int]:
    """The ends of the possible points around one of them; a gap that the window could make does not end them."""
    first, last = middle, middle - 1
    for point in possible[possible >= middle]:
        if point - last > _GAP:
            break
        last = int(point)
    for point in possible[possible < middle][::-1]:
        if first - point > _GAP:
            break
        first = int(point)
    return first, last


def _crossing(beyond: Floats, points: Floats, at: int, step: int) -> float:
    """Where the excess falls to zero, from a point outside to the next one."""
    fall = beyond[at] - beyond[at + step]
    return float(
        points[at] + (points[at + step] - points[at]) * min(beyond[at] / fall, 1.0) if fall > 0 else points[at]
    )


def _folded(counts: Floats, weights: Floats) -> Floats:
    """`Σ counts[k]·weights(edge - middle of bin k)` at every edge."""
    found: Floats = fftconvolve(counts, weights)[len(counts) - 1 : 2 * len(counts)]
    return found
