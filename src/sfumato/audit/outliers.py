"""Records that noise does not hide: those with hardly anybody within its reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats, Mask, Rows, Words
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.release.evidence import placed

CROWD = 5
"""A record with fewer others than this within two noise deviations, in some column, stands out."""

REACH = 2.0
_BINS = 4
"""Bins a noise deviation."""

MOST = 25
"""Records that are named."""


@dataclass(frozen=True)
class Outlier:
    """A record that stands out."""

    record: str
    column: str
    others: int
    """How many records lie within reach of it."""
    distance: float
    """From the middle of the column, in noise deviations."""


@dataclass(frozen=True)
class ColumnExposure:
    """How many records stand out in a column, and the range to clip it to so that none would, if there is one."""

    column: str
    records: int
    clip: tuple[float, float] | None


@dataclass(frozen=True)
class Exposure:
    """All that stands out of a copy's noise."""

    columns: tuple[ColumnExposure, ...]
    outliers: tuple[Outlier, ...]
    """The furthest out, at most `MOST`."""


Batches = Callable[[], Iterable[tuple[Words, pa.RecordBatch]]]


def exposure(batches: Batches, model: GaussianNoise, ids: tuple[str, ...]) -> Exposure:
    """Look for outliers of a whole table in two passes, whatever its size.

    Args:
        batches: the table's rows with their places, read anew at each call.
        model: of the best copy.
        ids: the columns that name a record.

    """
    width = np.sqrt([model.covariance[i][i] for i in range(len(model.columns))]) / _BINS
    counts: list[Counter[int]] = [Counter() for _ in model.columns]
    for _, batch in batches():
        for i, column in enumerate(_bins(batch, model, width)):
            values, times = np.unique(column[0][column[1]], return_counts=True)
            counts[i].update(dict(zip(values.tolist(), times.tolist(), strict=True)))
    crowds = [_Crowd(count, size) for count, size in zip(counts, width, strict=True)]
    outliers: list[Outlier] = []
    for places, batch in batches():
        for crowd, name, (bins, there) in zip(crowds, model.columns, _bins(batch, model, width), strict=True):
            others = crowd.of(bins)
            for row in np.flatnonzero((others < CROWD) & there):
                far = abs(float(bins[row]) - crowd.middle) / _BINS
                outliers.append(Outlier(_name(batch, ids, int(row), places), name, int(others[row]), round(far, 2)))
        outliers = sorted(outliers, key=lambda one: -one.distance)[:MOST]
    found = [ColumnExposure(name, *crowd.summary()) for name, crowd in zip(model.columns, crowds, strict=True)]
    return Exposure(tuple(found), tuple(outliers))


class _Crowd:
    """How many records lie within reach of each bin."""

    def __init__(self, counts: Counter[int], width: float) -> None:
        self.width = width
        self.bins: Rows = np.array(sorted(counts), np.int64)
        self.counts: Rows = np.array([counts[place] for place in self.bins.tolist()], np.int64)
        total = np.concatenate([[0], np.cumsum(self.counts)])
        reach = int(REACH * _BINS)
        first = np.searchsorted(self.bins, self.bins - reach)
        last = np.searchsorted(self.bins, self.bins + reach, side="right")
        self.within: Rows = total[last] - total[first] - 1
        middle = np.searchsorted(total, total[-1] / 2) - 1 if len(self.bins) else 0
        self.middle = float(self.bins[max(int(middle), 0)]) if len(self.bins) else 0.0

    def of(self, bins: Rows) -> Rows:
        """The others within reach of these bins."""
        found: Rows = self.within[np.minimum(np.searchsorted(self.bins, bins), len(self.bins) - 1)]
        return found

    def summary(self) -> tuple[int, tuple[float, float] | None]:
        """How many records stand out, and the range of the others, if there are any."""
        lonely = self.within < CROWD
        if not lonely.any() or lonely.all():
            return int(self.counts[lonely].sum()), None
        inner = self.bins[~lonely]
        count = int(self.counts[lonely].sum())
        if ((self.bins[lonely] > inner[0]) & (self.bins[lonely] < inner[-1])).any():
            return count, None  # between others, where no clip would bring it
        return count, (float(inner[0] * self.width), float((inner[-1] + 1) * self.width))


def _bins(batch: pa.RecordBatch, model: GaussianNoise, width: Floats) -> list[tuple[Rows, Mask]]:
    """The bin of each cell, and whether there is a value, column by column."""
    values = placed(pa.Table.from_batches([batch]), model) / width
    there = ~np.isnan(values)
    bins = np.floor(np.where(there, values, 0)).astype(np.int64)
    return [(bins[:, i], there[:, i]) for i in range(bins.shape[1])]


def _name(batch: pa.RecordBatch, ids: tuple[str, ...], row: int, places: Words) -> str:
    if not ids:
        return f"row {int(places[row]) + 1:,}"
    return ", ".join(str(batch.column(name)[row].as_py()) for name in ids)
