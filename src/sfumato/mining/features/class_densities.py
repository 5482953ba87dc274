"""The distribution of one feature in each class, reconstructed: numbers on a grid, categories as frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats, Mask, Rows
from sfumato.kernels.inversion import em_frequencies, inverted
from sfumato.kernels.reconstruction import Grid, NoiseChannel, reconstruct
from sfumato.mining.features.features import Feature

STEPS = 400
_BINS = (8, 64)


@dataclass(frozen=True)
class Chances:
    """How likely each bin or category is, a row a group of records."""

    feature: Feature
    edges: Floats
    """Of the bins; of categories, their codes and one more."""
    original: Floats
    """In the original."""
    seen: Floats
    """In the copy: what the original's chances make likely there."""
    wide: Floats
    """The edges of the bins in which numbers of the copy are seen."""

    def of_records(self, values: Floats, *, blurred: bool) -> Floats:
        """How likely each record's value is, a column a group."""
        edges, chances = (self.wide, self.seen) if blurred else (self.edges, self.original)
        places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, chances.shape[1] - 1)
        found: Floats = np.where(self._is_unseen(values)[:, None], 1.0, chances[:, places].T)
        return found

    def _is_unseen(self, values: Floats) -> Mask:
        """Categories that nobody had: they tell nothing."""
        return values < 0 if self.feature.size else np.zeros(len(values), np.bool_)


def chances(
    feature: Feature, values: Floats, groups: Rows, count: int, shares: Floats | None = None, steps: int = STEPS
) -> Chances:
    """Reconstruct a feature in each of some groups of records.

    Args:
        shares: how much a record of each group belongs to each, where groups were themselves replaced at random.
        steps: the most rounds of a reconstruction.

    """
    grid = None if feature.size else grid_of(feature, values)
    return chances_from(feature, counts_by_group(feature, grid, values, groups, count), grid, shares, steps)


def chances_from(
    feature: Feature, counts: Floats, grid: Grid | None, shares: Floats | None = None, steps: int = STEPS
) -> Chances:
    """The same from the counts of each group, a row a group, of categories or on a grid."""
    if shares is not None:
        counts = np.maximum(np.tensordot(shares, counts, (0, 0)), 0)
    rows = np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    if feature.size:
        found = np.stack([em_frequencies(row, [feature.retention], steps=STEPS) for row in counts + 1e-9])
        mixed = feature.retention * found + (1 - feature.retention) / feature.size
        edges = np.arange(feature.size + 1.0)
        return Chances(feature, edges, _floored(found, rows), _floored(mixed, rows), edges)
    assert grid is not None  # noqa: S101 - numbers have one
    if not feature.deviation:
        found = counts / rows
        return Chances(feature, grid.edges(0), _floored(found, rows), _floored(found, rows), grid.edges(0))
    blur = NoiseChannel(grid)
    found, _ = reconstruct(blur, counts, steps, change=1e-4)
    wide = grid.edges(0, wide=True)
    return Chances(feature, grid.edges(0), _floored(found, rows), _floored(blur.forward(found), rows), wide)


def counts_by_group(feature: Feature, grid: Grid | None, values: Floats, groups: Rows, count: int) -> Floats:
    """How many records of each group have each category, or lie in each bin."""
    if grid is None:
        keys = groups * feature.size + values.astype(np.int64)
        return np.bincount(keys, minlength=count * feature.size).reshape(count, feature.size).astype(np.float64)
    if feature.deviation:
        return np.stack([grid.count(values[groups == group, None]) for group in range(count)])
    edges = grid.edges(0)
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    keys = groups * (len(edges) - 1) + places
    return np.bincount(keys, minlength=count * (len(edges) - 1)).reshape(count, -1).astype(np.float64)


def grid_of(feature: Feature, values: Floats) -> Grid:
    """Bins over a feature's values: the more, the more there are."""
    return grid_over(feature, float(values.min()), float(values.max()), float(values.var()), len(values))


def grid_over(feature: Feature, least: float, most: float, variance: float, rows: int) -> Grid:
    """The same, for values of which no more is known."""
    low, high = feature.ends or (least, most)
    slack = 0.0 if feature.ends else min(feature.deviation, (high - low) / 4)
    spread = np.sqrt(max(variance - feature.deviation**2, 0.05 * variance))
    bins = int(np.clip(2 * rows ** (1 / 3), *_BINS))
    ends = np.array([[low + slack], [high - slack if high > low else low + 1]])
    return Grid(ends[0], ends[1], (bins,), np.array([[feature.deviation**2]]), np.array([spread or 1.0]))


def _floored(found: Floats, rows: Floats) -> Floats:
    """Nothing is impossible: half a record is spread over all values."""
    kept = np.maximum(found, 0)
    chance: Floats = (kept * rows + 0.5 / kept.shape[1]) / (kept.sum(axis=1, keepdims=True) * rows + 0.5)
    return chance


def class_shares(count: int, retention: float) -> Floats:
    """`M⁻¹` over the classes: how much a record that shows one class counts for each."""
    weights: Floats = inverted(np.eye(count), [retention, 1.0])
    return weights
