"""Outliers at risk of singling out: records with hardly any others within the range of the noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats, Mask, Rows, Words
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
    widths = np.sqrt([model.covariance[i][i] for i in range(len(model.columns))]) / _BINS
    counts: list[Counter[int]] = [Counter() for _ in model.columns]
    for _, batch in batches():
        for i, (bins, there) in enumerate(_bins(batch, model, widths)):
            values, times = np.unique(bins[there], return_counts=True)
            counts[i].update(dict(zip(values.tolist(), times.tolist(), strict=True)))
    histograms = [_Histogram(count, width) for count, width in zip(counts, widths, strict=True)]
    outliers: list[Outlier] = []
    for row_numbers, batch in batches():
        for histogram, name, (bins, there) in zip(histograms, model.columns, _bins(batch, model, widths), strict=True):
            neighbours = histogram.neighbours_of(bins)
            for row in np.flatnonzero((neighbours < MIN_NEIGHBOURS) & there):
                distance = abs(float(bins[row]) - histogram.median) / _BINS
                record = _record_name(batch, ids, int(row), row_numbers)
                outliers.append(Outlier(record, name, int(neighbours[row]), round(distance, 2)))
        outliers = sorted(outliers, key=lambda one: -one.distance)[:MAX_NAMED]
    columns = [ColumnOutliers(name, *h.summary()) for name, h in zip(model.columns, histograms, strict=True)]
    return SinglingOutRisk(tuple(columns), tuple(outliers))


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


def _bins(batch: pa.RecordBatch, model: GaussianNoise, widths: Floats) -> list[tuple[Rows, Mask]]:
    """The bin of each cell and whether it has a value, column by column."""
    values = original_on_lattice(pa.Table.from_batches([batch]), model) / widths
    there = ~np.isnan(values)
    bins = np.floor(np.where(there, values, 0)).astype(np.int64)
    return [(bins[:, i], there[:, i]) for i in range(bins.shape[1])]


def _record_name(batch: pa.RecordBatch, ids: tuple[str, ...], row: int, row_numbers: Words) -> str:
    """The identifier of a record, or its row number."""
    if not ids:
        return f"row {int(row_numbers[row]) + 1:,}"
    return ", ".join(str(batch.column(name)[row].as_py()) for name in ids)
