"""Outliers at risk of singling out: records with hardly any others within the range of the noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats, Mask, Rows, Words
from sfumato.kernels.covariances import symmetric
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.release.evidence import original_on_lattice

MIN_NEIGHBOURS = 5
"""A record with fewer others than this within two noise standard deviations, in some column, is an outlier."""

NEIGHBOURHOOD = 2.0
"""The distance of neighbours, in noise standard deviations."""

MAX_NAMED = 25
"""The largest number of outliers that are named."""

_BINS = 4
"""The number of bins per noise standard deviation."""

SEPARATION = 6.0
"""The distance from all others, in noise standard deviations, at which noisy values show who belongs to a group."""

_SMALL = 0.05
"""A group of at most this share of the records is small."""


@dataclass(frozen=True)
class Outlier:
    """A record that its value in one column may single out."""

    record: str
    """The identifier of the record, or its row number."""
    column: str
    neighbours: int
    """The number of other records within two noise standard deviations."""
    distance: float
    """The distance from the median of the column, in noise standard deviations."""


@dataclass(frozen=True)
class ColumnOutliers:
    """The number of outliers in a column, and the range to clip it to so that there would be none."""

    column: str
    records: int
    clip: tuple[float, float] | None
    """Nothing where clipping would not help."""
    separated: int = 0
    """The number of records in small groups that are further from all others than the noise reaches."""


@dataclass(frozen=True)
class SinglingOutRisk:
    """All outliers of a table with respect to the noise of a copy."""

    columns: tuple[ColumnOutliers, ...]
    outliers: tuple[Outlier, ...]
    """The outliers furthest from the median, at most `MAX_NAMED`."""


Batches = Callable[[], Iterable[tuple[Words, pa.RecordBatch]]]
"""Reads a table from its first row on, in batches with the row number of each row."""


def singling_out_risk(batches: Batches, model: GaussianNoise, ids: tuple[str, ...]) -> SinglingOutRisk:
    """Find the outliers of a table of any size in two passes.

    Args:
        batches: reads the table with its row numbers; called twice.
        model: the noise of the most faithful copy.
        ids: the record identifier columns.

    """
    axes = _Axes.of(model)
    counts: list[Counter[int]] = [Counter() for _ in axes.names]
    for _, batch in batches():
        for i, (bins, there) in enumerate(axes.bins(batch)):
            values, times = np.unique(bins[there], return_counts=True)
            counts[i].update(dict(zip(values.tolist(), times.tolist(), strict=True)))
    widths = axes.widths
    histograms = [_Histogram(count, width) for count, width in zip(counts, widths, strict=True)]
    outliers: list[Outlier] = []
    for row_numbers, batch in batches():
        for histogram, name, (bins, there) in zip(histograms, axes.names, axes.bins(batch), strict=True):
            neighbours = histogram.neighbours_of(bins)
            for row in np.flatnonzero((neighbours < MIN_NEIGHBOURS) & there):
                distance = abs(float(bins[row]) - histogram.median) / _BINS
                record = _record_name(batch, ids, int(row), row_numbers)
                outliers.append(Outlier(record, name, int(neighbours[row]), round(distance, 2)))
        outliers = sorted(outliers, key=lambda one: -one.distance)[:MAX_NAMED]
    columns = []
    for i, (name, histogram) in enumerate(zip(axes.names, histograms, strict=True)):
        count, clip = histogram.summary()
        clipped = clip if i < len(model.columns) else None  # no clip of one column moves a combination of several
        columns.append(ColumnOutliers(name, count, clipped, histogram.separated()))
    return SinglingOutRisk(tuple(columns), tuple(outliers))


@dataclass(frozen=True)
class _Axes:
    """Directions along which outliers are looked for: the columns, and principal axes of their noise.

    Noise has the shape of the data: along an axis on which columns hardly vary, as that of two collinear ones, it is
    small, and a record that deviates from all others along it cannot be seen in any single column.
    """

    model: GaussianNoise
    names: tuple[str, ...]
    weights: Floats
    """One column per axis, in the columns' units, such that the noise along each has variance 1."""

    @classmethod
    def of(cls, model: GaussianNoise) -> _Axes:
        covariance = symmetric(model.covariance)
        deviations = np.sqrt(np.diag(covariance))
        weights = [np.diag(1 / deviations)]
        names = list(model.columns)
        if len(model.columns) > 1:
            values, vectors = np.linalg.eigh(covariance / np.outer(deviations, deviations))
            for value, vector in zip(values, vectors.T, strict=True):
                if 1e-6 < value < _COLLINEAR:
                    weights.append((vector / deviations / np.sqrt(value))[:, None])
                    first, second = np.argsort(-np.abs(vector))[:2]
                    names.append(f"{model.columns[min(first, second)]} with {model.columns[max(first, second)]}")
        return cls(model, tuple(names), np.hstack(weights))

    @property
    def widths(self) -> Floats:
        """The width of a bin, in the units of a column; along other axes in standard deviations of the noise."""
        own = 1 / np.diag(self.weights[:, : len(self.model.columns)]) / _BINS
        rest = np.full(len(self.names) - len(own), 1 / _BINS)
        widths: Floats = np.concatenate([own, rest])
        return widths

    def bins(self, batch: pa.RecordBatch) -> list[tuple[Rows, Mask]]:
        """The bin of each record and whether it has a value, axis by axis."""
        values = original_on_lattice(pa.Table.from_batches([batch]), self.model)
        missing = np.isnan(values)
        own = len(self.model.columns)
        complete = np.logical_not(missing.any(axis=1, keepdims=True))
        along = np.where(missing, 0.0, values) @ self.weights * _BINS
        there = np.hstack([~missing, np.repeat(complete, along.shape[1] - own, axis=1)])
        bins = np.floor(np.where(there, along, 0)).astype(np.int64)
        return [(bins[:, i], there[:, i]) for i in range(bins.shape[1])]


_COLLINEAR = 0.3
"""Principal axes with a smaller share of the variance than this, where 1 is that of a column, are looked along."""


class _Histogram:
    """The values of a column in bins, and the number of neighbours that a value in each bin has."""

    def __init__(self, counts: Counter[int], width: float) -> None:
        self.width = width
        self.bins: Rows = np.array(sorted(counts), np.int64)
        self.counts: Rows = np.array([counts[number] for number in self.bins.tolist()], np.int64)
        total = np.concatenate([[0], np.cumsum(self.counts)])
        reach = int(NEIGHBOURHOOD * _BINS)
        first = np.searchsorted(self.bins, self.bins - reach)
        last = np.searchsorted(self.bins, self.bins + reach, side="right")
        self.neighbours: Rows = total[last] - total[first] - 1
        middle = np.searchsorted(total, total[-1] / 2) - 1 if len(self.bins) else 0
        self.median = float(self.bins[max(int(middle), 0)]) if len(self.bins) else 0.0

    def neighbours_of(self, bins: Rows) -> Rows:
        """The number of neighbours of a value in each of these bins."""
        if not len(self.bins):
            return np.zeros_like(bins)
        found: Rows = self.neighbours[np.minimum(np.searchsorted(self.bins, bins), len(self.bins) - 1)]
        return found

    def separated(self) -> int:
        """The number of records in small groups that are apart from all others."""
        if len(self.bins) < 2:
            return 0
        group = np.cumsum(np.diff(self.bins, prepend=self.bins[0]) > SEPARATION * _BINS)
        sizes = np.bincount(group, self.counts)
        small = (sizes >= MIN_NEIGHBOURS) & (sizes <= _SMALL * sizes.sum())
        return int(sizes[small].sum())

    def summary(self) -> tuple[int, tuple[float, float] | None]:
        """The number of outliers, and the range of the other values if clipping to it would leave no outlier."""
        is_outlier = self.neighbours < MIN_NEIGHBOURS
        count = int(self.counts[is_outlier].sum())
        if not is_outlier.any() or is_outlier.all():
            return count, None
        inner = self.bins[~is_outlier]
        if ((self.bins[is_outlier] > inner[0]) & (self.bins[is_outlier] < inner[-1])).any():
            return count, None  # it lies between other values, where no clip moves it
        return count, (float(inner[0] * self.width), float((inner[-1] + 1) * self.width))


def _record_name(batch: pa.RecordBatch, ids: tuple[str, ...], row: int, row_numbers: Words) -> str:
    """The identifier of a record, or its row number."""
    if not ids:
        return f"row {int(row_numbers[row]) + 1:,}"
    return ", ".join(str(batch.column(name)[row].as_py()) for name in ids)
