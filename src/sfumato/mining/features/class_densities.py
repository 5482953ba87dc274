"""Class-conditional densities of one feature, reconstructed: numbers on a grid, categories as frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats, Mask, Rows
from sfumato.kernels.inversion import em_frequencies, inverted_counts
from sfumato.kernels.reconstruction import Grid, NoiseChannel, reconstruct
from sfumato.mining.features.features import Feature

ITERATIONS = 400
_BINS = (8, 64)
"""The least and the largest number of bins."""


@dataclass(frozen=True)
class ClassDensities:
    """The probability of each bin or category of a feature, one row per group of records."""

    feature: Feature
    edges: Floats
    """The edges of the bins; for categories, their codes and one more."""
    original: Floats
    """The probabilities in the original."""
    observed: Floats
    """The probabilities in the copy that follow from those in the original."""
    observed_edges: Floats
    """The edges of the bins of the copy's values."""

    def of_records(self, values: Floats, *, perturbed: bool) -> Floats:
        """The probability of each record's value, one column per group."""
        edges, table = (self.observed_edges, self.observed) if perturbed else (self.edges, self.original)
        indices = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, table.shape[1] - 1)
        probabilities: Floats = np.where(self._is_unknown(values)[:, None], 1.0, table[:, indices].T)
        return probabilities

    def _is_unknown(self, values: Floats) -> Mask:
        """Whether a value is a category that no training record had, which carries no information."""
        return values < 0 if self.feature.size else np.zeros(len(values), np.bool_)


def class_densities(
    feature: Feature, values: Floats, groups: Rows, count: int, max_iter: int = ITERATIONS
) -> ClassDensities:
    """Reconstruct the density of a feature within each group of records."""
    grid = None if feature.size else grid_of(feature, values)
    counts = counts_by_group(feature, grid, values, groups, count)
    return densities_from_counts(feature, counts, grid, max_iter=max_iter)


def densities_from_counts(
    feature: Feature,
    counts: Floats,
    grid: Grid | None,
    inverse_classes: Floats | None = None,
    max_iter: int = ITERATIONS,
) -> ClassDensities:
    """Reconstruct the density of a feature from the counts of each group, by category or on a grid.

    Args:
        feature: the feature that was counted.
        counts: one row per group.
        grid: the grid of a numeric feature.
        inverse_classes: the inverse of the classes' perturbation matrix, if the groups are perturbed classes.
        max_iter: the largest number of iterations.

    """
    if inverse_classes is not None:
        counts = np.maximum(np.tensordot(inverse_classes, counts, (0, 0)), 0)
    rows = np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    if feature.size:
        return _categorical(feature, counts, rows)
    assert grid is not None  # noqa: S101 - a numeric feature has a grid
    if not feature.deviation:
        probabilities = _smoothed(counts / rows, rows)
        return ClassDensities(feature, grid.edges(0), probabilities, probabilities, grid.edges(0))
    channel = NoiseChannel(grid)
    original, _ = reconstruct(channel, counts, max_iter, tolerance=1e-4)
    observed = _smoothed(channel.forward(original), rows)
    return ClassDensities(feature, grid.edges(0), _smoothed(original, rows), observed, grid.edges(0, padded=True))


def _categorical(feature: Feature, counts: Floats, rows: Floats) -> ClassDensities:
    """The frequencies of categories within each group, by expectation maximisation."""
    original = np.stack([em_frequencies(row, [feature.retention], iterations=ITERATIONS) for row in counts + 1e-9])
    observed = feature.retention * original + (1 - feature.retention) / feature.size
    edges = np.arange(feature.size + 1.0)
    return ClassDensities(feature, edges, _smoothed(original, rows), _smoothed(observed, rows), edges)


def counts_by_group(feature: Feature, grid: Grid | None, values: Floats, groups: Rows, count: int) -> Floats:
    """The number of records of each group by category, or by bin of a grid."""
    if grid is None:
        keys = groups * feature.size + values.astype(np.int64)
        return np.bincount(keys, minlength=count * feature.size).reshape(count, feature.size).astype(np.float64)
    if feature.deviation:
        return np.stack([grid.histogram(values[groups == group, None]) for group in range(count)])
    edges = grid.edges(0)
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    keys = groups * (len(edges) - 1) + bins
    return np.bincount(keys, minlength=count * (len(edges) - 1)).reshape(count, -1).astype(np.float64)


def grid_of(feature: Feature, values: Floats) -> Grid:
    """A grid over a feature's values, with more bins for more values."""
    return grid_from_range(feature, float(values.min()), float(values.max()), float(values.var()), len(values))


def grid_from_range(feature: Feature, least: float, most: float, variance: float, rows: int) -> Grid:
    """A grid over a feature whose range, variance and number of values are known."""
    low, high = feature.bounds or (least, most)
    slack = 0.0 if feature.bounds else min(feature.deviation, (high - low) / 4)
    spread = np.sqrt(max(variance - feature.deviation**2, 0.05 * variance))
    bins = int(np.clip(2 * rows ** (1 / 3), *_BINS))
    ends = np.array([[low + slack], [high - slack if high > low else low + 1]])
    return Grid(ends[0], ends[1], (bins,), np.array([[feature.deviation**2]]), np.array([spread or 1.0]))


def _smoothed(probabilities: Floats, rows: Floats) -> Floats:
    """Additive smoothing, so that no probability is zero: half a record is spread over all values."""
    kept = np.maximum(probabilities, 0)
    smoothed: Floats = (kept * rows + 0.5 / kept.shape[1]) / (kept.sum(axis=1, keepdims=True) * rows + 0.5)
    return smoothed


def inverse_class_matrix(count: int, retention: float) -> Floats:
    """`M⁻¹` over the classes: the weight of a record with each observed class in each original class."""
    weights: Floats = inverted_counts(np.eye(count), [retention, 1.0])
    return weights
