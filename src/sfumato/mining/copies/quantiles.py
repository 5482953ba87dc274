"""Distribution function and quantiles of the original, by deconvolution of the fine histogram of a noisy column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d
from scipy.signal import fftconvolve
from sklearn.isotonic import isotonic_regression

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.intervals import Interval
from sfumato.kernels.kernel_deconvolution import (
    cdf_weights,
    cutoff_frequency,
    density_weights,
    resolution,
    smoothing_constant,
)

_BINS_PER_WAVELENGTH = 64.0
"""Bins per wavelength of the cut-off frequency."""
_WINDOW_BINS = _BINS_PER_WAVELENGTH / (2 * math.pi)
"""Bins that the smoothing window of the cut-off frequency covers."""
_MAX_BINS = 1 << 21
_SMOOTH = 1.0
"""The ratio of noise to bias at the lower cut-off frequency, from which point estimates are taken."""
MAX_STANDARD_ERROR = 0.2
"""The standard error of a proportion above which no answer is given."""

Histogram = tuple[int, Floats]
"""The number of the first bin, and the counts from that bin on."""


@dataclass(frozen=True)
class Bins:
    """Bins of equal width for a fine histogram of a column."""

    deviation: float
    """The standard deviation of the noise."""
    spread: float
    """The approximate standard deviation of the original."""
    rows: int
    origin: float
    """The lower edge of bin 0."""

    @property
    def cutoff(self) -> float:
        """The cut-off frequency of the deconvolution: infinite for a column without noise."""
        return cutoff_frequency(self.deviation, self.spread, self.rows) if self.deviation else math.inf

    @property
    def smooth_cutoff(self) -> float:
        """A lower cut-off frequency, which smooths more and has less variance."""
        return cutoff_frequency(self.deviation, self.spread, self.rows, _SMOOTH)

    @property
    def width(self) -> float:
        """The width of a bin: small relative to the cut-off wavelength, or to the spread of a column without noise."""
        return 2 * math.pi / (_BINS_PER_WAVELENGTH * self.cutoff) if self.deviation else self.spread / 512

    @property
    def resolution(self) -> float:
        """The distance beyond which the deconvolution distinguishes values: zero for a column without noise."""
        return resolution(self.cutoff) if self.deviation else 0.0

    def histogram(self, values: Floats) -> Histogram | None:
        """The histogram of some values; none if they are so far apart that it would have too many bins."""
        indices = np.floor((values[~np.isnan(values)] - self.origin) / self.width)
        if not len(indices):
            return 0, np.zeros(1)
        first, last = float(indices.min()), float(indices.max())
        if not max(abs(first), abs(last), last - first) < _MAX_BINS:
            return None
        return int(first), np.bincount((indices - first).astype(np.int64)).astype(np.float64)


def merged_histograms(one: Histogram | None, other: Histogram | None) -> Histogram | None:
    """The sum of two histograms over the same bins."""
    if one is None or other is None:
        return None
    first = min(one[0], other[0])
    last = max(one[0] + len(one[1]), other[0] + len(other[1]))
    total = np.zeros(last - first)
    for start, counts in (one, other):
        total[start - first : start - first + len(counts)] += counts
    return first, total


@dataclass(frozen=True)
class DeconvolvedCdf:
    """The estimated distribution function of the original at some points, with its standard errors."""

    points: Floats
    cdf: Floats
    low: Floats
    high: Floats
    """The smallest and the largest estimate within the resolution, between which the share of smaller values lies."""
    standard_errors: Floats
    smooth_cdf: Floats
    """A monotone estimate with a lower cut-off frequency: biased but usually closer, so point estimates use it."""

    @classmethod
    def of(cls, bins: Bins, histogram: Histogram) -> DeconvolvedCdf:
        """Deconvolve a histogram of the copy; see `kernels.kernel_deconvolution` for the weights and their variance."""
        first, counts = histogram
        rows = max(counts.sum(), 1.0)
        edges = bins.origin + (first + np.arange(len(counts) + 1, dtype=np.float64)) * bins.width
        if not bins.deviation:
            exact = np.append(0.0, np.cumsum(counts)) / rows
            return cls(edges, exact, exact, exact, np.zeros(len(edges)), exact)
        gaps = (np.arange(-len(counts), len(counts), dtype=np.float64) + 0.5) * bins.width
        upper = cdf_weights(gaps[len(counts) :], bins.deviation, bins.cutoff)
        weights = np.concatenate([1 - upper[::-1], upper])
        cdf, squares = _convolved(counts, weights) / rows, _convolved(counts, weights**2) / rows
        upper = density_weights(gaps[len(counts) :], bins.deviation, bins.cutoff)
        density = _convolved(counts, np.concatenate([upper[::-1], upper])) / rows
        variance = squares - cdf + smoothing_constant() / bins.cutoff * np.maximum(density, 0)
        upper = cdf_weights(gaps[len(counts) :], bins.deviation, bins.smooth_cutoff)
        smooth = isotonic_regression(_convolved(counts, np.concatenate([1 - upper[::-1], upper])) / rows)
        window = 2 * math.ceil(bins.resolution / bins.width) + 1
        low, high = (limit(cdf, window, mode="nearest") for limit in (minimum_filter1d, maximum_filter1d))
        result = cls(edges, cdf, low, high, np.sqrt(np.maximum(variance, 0) / rows), smooth)
        largest = result.standard_errors.max()
        if largest > MAX_STANDARD_ERROR:
            raise MiningError(
                f"quantiles need the distribution function to within ±{2 * MAX_STANDARD_ERROR:.0%}, and {int(rows):,} "
                f"rows at this trust level give ±{2 * largest:.0%}; ask the owner for a more faithful copy"
            )
        return result

    def quantile(self, probability: float, critical_value: float) -> Interval:
        """The quantile at a probability; its interval holds all points whose estimated probability is compatible."""
        monotone = isotonic_regression(self.cdf)
        middle = int(np.clip(np.searchsorted(monotone, probability), 1, len(self.points) - 1))
        reach = critical_value * self.standard_errors
        excess = np.maximum(self.low - reach - probability, probability - self.high - reach)
        first, last = _run_around(np.flatnonzero(excess <= 0), middle)
        low = _zero_crossing(excess, self.points, first - 1, 1) if first else self.points[0]
        high = _zero_crossing(excess, self.points, last + 1, -1) if last + 1 < len(excess) else self.points[-1]
        if not self.standard_errors.any():  # without noise, only the width of the bin is uncertain
            low, high = self.points[middle - 1 : middle + 1]
        upper = int(np.clip(np.searchsorted(self.smooth_cdf, probability), 1, len(self.points) - 1))
        bracket = slice(upper - 1, upper + 1)
        estimate = float(np.interp(probability, self.smooth_cdf[bracket], self.points[bracket]))
        return Interval(min(max(estimate, float(low)), float(high)), float(low), float(high))


def _run_around(compatible: Rows, middle: int) -> tuple[int, int]:
    """The first and last of a run of compatible points; a gap within the smoothing window does not end it."""
    first, last = middle, middle - 1
    for point in compatible[compatible >= middle]:
        if point - last > _WINDOW_BINS:
            break
        last = int(point)
    for point in compatible[compatible < middle][::-1]:
        if first - point > _WINDOW_BINS:
            break
        first = int(point)
    return first, last


def _zero_crossing(excess: Floats, points: Floats, index: int, step: int) -> float:
    """The point where the excess falls to zero between one index and the next, by linear interpolation."""
    fall = excess[index] - excess[index + step]
    share = min(excess[index] / fall, 1.0) if fall > 0 else 0.0
    return float(points[index] + (points[index + step] - points[index]) * share)


def _convolved(counts: Floats, weights: Floats) -> Floats:
    """`Σ counts[k]·weights(edge - centre of bin k)` at every edge."""
    sums: Floats = fftconvolve(counts, weights)[len(counts) - 1 : 2 * len(counts)]
    return sums
