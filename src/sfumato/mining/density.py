"""Density reconstruction: the joint density of one to three numeric columns of the original, on a grid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.ndimage import maximum_filter, minimum_filter

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.kernels.initial_density import InitialDensity
from sfumato.kernels.kernel_deconvolution import cutoff_frequency, resolution
from sfumato.kernels.reconstruction import ITERATIONS, Grid, NoiseChannel, reconstruct
from sfumato.mining import Miner
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.quantiles import Histogram
from sfumato.mining.copies.summary import Summary

METHODS = ("em", "bayes")
_BINS = (200, 48, 20)
"""The default number of bins per column, for one, two and three columns."""
_MAX_CELLS = 1 << 22
_RESAMPLES = 40
_TOLERANCE = 2e-5
"""An iteration that moves less than this share of the probability is the last."""


class Density(Miner):
    """The density of one column of the original, or the joint density of two or three.

    For one column, the initial density is the simplest that fits the copy: a mixture of a few normal components, or a
    uniform density. The iteration departs from it as far as the copy supports, and is regularised so that it does not
    fit the noise. Features narrower than `resolution_`, such as spikes, whole numbers and abrupt ends, are not
    resolved: density and confidence band are for the density averaged over that distance. The band comes from resampled
    counts, and holds wherever within the resolution a feature lies.
    """

    reference = "Agrawal and Srikant 2000, section 3; Agrawal and Aggarwal 2001, sections 3 and 4"
    example = {"columns": ["age"], "bins": 40}

    def __init__(
        self,
        *,
        columns: Sequence[str] | None = None,
        method: str = "em",
        bins: int | None = None,
        max_iter: int = ITERATIONS,
        confidence: float = 0.95,
        random_state: int = 0,
    ) -> None:
        """Set the parameters.

        Args:
            columns: one to three numeric columns.
            method: `em`, where a value is uniform within its bin, or `bayes`, where it is at the centre of its bin.
            bins: the number of bins per column.
            max_iter: the largest number of iterations.
            confidence: the pointwise confidence level of the band.
            random_state: the seed of the resampling.

        """
        self.columns = columns
        self.method = method
        self.bins = bins
        self.max_iter = max_iter
        self.confidence = confidence
        self.random_state = random_state

    def fit(self, copy: Any, y: Any = None) -> Density:  # noqa: ARG002 - scikit-learn's signature
        """Reconstruct the density from a copy, or from the most faithful of several.

        The copy is read once for one column and twice for more.
        """
        best = Copy.of(copy)
        if self.method not in METHODS:
            raise MiningError(f"`method` must be one of {', '.join(METHODS)}, got {self.method!r}; choose one of them")
        names = best.numeric_columns(self.columns, at_most=3)
        bins = self.bins or _BINS[len(names) - 1]
        grid, counts = _grid_counts(best, names, bins, bin_centres=self.method == "bayes")
        initial = InitialDensity(grid, counts)
        channel = NoiseChannel(grid, initial.smoothing)
        self.columns_ = names
        self.edges_ = [grid.edges(axis) for axis in range(len(names))]
        start = initial.densities(counts[None])
        probabilities, self.n_iter_ = reconstruct(channel, counts[None], self.max_iter, _TOLERANCE, start)
        self.probabilities_ = probabilities[0]
        self.density_ = self.probabilities_ / np.prod(grid.bin_widths)
        inner = tuple(slice(m, m + n) for m, n in zip(grid.margin, grid.bins, strict=True))
        self.copy_histogram_ = counts[inner] / max(counts.sum(), 1.0)
        self.resolution_ = _resolution(grid, int(counts.sum()))
        band = self._band(channel, counts, initial, best.design_effect(names)) / np.prod(grid.bin_widths)
        window = 2 * np.ceil(self.resolution_ / 2 / grid.bin_widths).astype(int) + 1
        self.band_ = np.stack([minimum_filter(band[0], window), maximum_filter(band[1], window)])
        self.privacy_ = _privacy(grid, self.probabilities_, channel.forward(self.probabilities_))
        return self

    def share(self, low: float, high: float) -> float:
        """The estimated share of the original between two values of a single column, without an interval.

        `ask` counts a range with a confidence interval.
        """
        if len(self.columns_) != 1:
            raise MiningError(
                f"`share` needs the density of one column, and this is of {', '.join(self.columns_)}; fit one column"
            )
        cumulative = np.append(0.0, np.cumsum(self.probabilities_))
        cdf = np.interp([low, high], self.edges_[0], cumulative / cumulative[-1])
        return float(cdf[1] - cdf[0])

    def _band(self, channel: NoiseChannel, counts: Floats, initial: InitialDensity, design_effect: float) -> Floats:
        """Quantiles of the probabilities reconstructed from resampled counts (a parametric bootstrap)."""
        critical_value(self.confidence)  # refuses an invalid confidence level
        rng = np.random.default_rng(self.random_state)
        drawn = rng.multinomial(round(counts.sum() / design_effect), (counts / counts.sum()).ravel(), size=_RESAMPLES)
        stack = drawn.reshape(_RESAMPLES, *counts.shape).astype(np.float64)
        probabilities, _ = reconstruct(channel, stack, self.n_iter_, initial=initial.densities(stack))
        tails = [(1 - self.confidence) / 2, (1 + self.confidence) / 2]
        band: Floats = np.quantile(probabilities, tails, axis=0)
        return band


def _resolution(grid: Grid, rows: int) -> Floats:
    """The distance, along each column, below which the copy does not distinguish values."""
    pairs = zip(np.sqrt(np.diag(grid.noise)), grid.deviations, strict=True)
    return np.array([resolution(cutoff_frequency(float(noise), float(spread), rows)) for noise, spread in pairs])


def _grid_counts(copy: Copy, names: list[str], bins: int, *, bin_centres: bool) -> tuple[Grid, Floats]:
    """A grid over the range of the original, and the counts of the copy's values on it."""
    summary = Summary.of(copy, names)
    noise_free = [name for name, noise in zip(names, np.diag(summary.noise), strict=True) if not noise]
    if noise_free:
        raise MiningError(f"{noise_free[0]!r} carries no noise, so its density is its histogram; leave the column out")
    ends = np.array([_range(copy, summary, i) for i in range(len(names))])
    spread = np.array([b.spread for b in summary.bins])
    shape = (bins,) * len(names)
    grid = Grid(ends[:, 0], ends[:, 1], shape, summary.noise, spread, uniform_within_bins=not bin_centres)
    cells = math.prod(grid.shape)
    if cells > _MAX_CELLS:
        raise MiningError(
            f"a grid may have {_MAX_CELLS:,} cells, and {bins} bins per column, with a margin for the noise, need "
            f"{cells:,}; use fewer bins"
        )
    if len(names) == 1:
        return grid, _rebinned(summary, grid)
    return grid, copy.fold(names, partial(_histogram, names=names, grid=grid), np.add)


def _histogram(copy: Copy, tables: Iterable[pa.Table], *, names: list[str], grid: Grid) -> Floats:
    counts = np.zeros(grid.shape)
    for table in tables:
        values = copy.values(table, names)
        counts += grid.histogram(values[~np.isnan(values).any(axis=1)])
    return counts


def _range(copy: Copy, summary: Summary, index: int) -> tuple[float, float]:
    """The range of a column of the original: its clip bounds, else the range of the copy less a noise deviation."""
    bounds = copy.clip_bounds(summary.names[index])
    if bounds is not None:
        return bounds
    bins, (first, counts) = summary.bins[index], _fine_histogram(summary, index)
    low, high = bins.origin + first * bins.width, bins.origin + (first + len(counts)) * bins.width
    slack = min(bins.deviation, (high - low) / 4)
    return low + slack, high - slack


def _fine_histogram(summary: Summary, index: int) -> Histogram:
    histogram = summary.histograms[index]
    if histogram is None:
        raise MiningError(
            f"the values of {summary.names[index]!r} are too far apart for a density, because of extreme outliers; ask "
            "the owner to clip the column"
        )
    return histogram


def _rebinned(summary: Summary, grid: Grid) -> Floats:
    """The fine histogram of one column in the bins of the grid; values beyond the margin count in its last bins."""
    bins, (first, counts) = summary.bins[0], _fine_histogram(summary, 0)
    fine = bins.origin + (first + np.arange(len(counts) + 1)) * bins.width
    inside = grid.edges(0, padded=True)[1:-1]
    cumulative = np.append(0.0, np.cumsum(counts))
    at_edges = np.rint(np.concatenate([[0.0], np.interp(inside, fine, cumulative), [cumulative[-1]]]))
    coarse: Floats = np.diff(at_edges)
    return coarse


def _privacy(grid: Grid, original: Floats, observed: Floats) -> float:
    """`2^h(X|Y)` (Agrawal and Aggarwal 2001, section 2): the length of the interval over which a value is uncertain.

    `h(X|Y) = h(X) + h(Z) - h(Y)`; for several columns it is a volume.
    """
    volume = math.log2(float(np.prod(grid.bin_widths)))
    noise = 0.5 * math.log2((2 * math.pi * math.e) ** len(grid.bins) * max(float(np.linalg.det(grid.noise)), 1e-300))
    return float(2 ** (_entropy(original) + volume + noise - _entropy(observed) - volume))


def _entropy(probabilities: Floats) -> float:
    positive = probabilities[probabilities > 1e-300] / probabilities.sum()
    return float(-(positive * np.log2(positive)).sum())
