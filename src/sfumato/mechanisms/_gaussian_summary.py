"""Summaries for the gaussian mechanism, in two passes: the range of each column, then exact second moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.errors import SourceError
from sfumato.kernels import Floats, Mask
from sfumato.kernels.exact_moments import Integers, covariance, cross_products, means, resolution, to_integers
from sfumato.mechanisms import Summary
from sfumato.tables.numeric import MAX_MAGNITUDE


@dataclass(frozen=True)
class Extent(Summary):
    """First pass: the lowest and highest value of each column, and whether it counts units of time."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    temporal: tuple[bool, ...]
    counts: tuple[tuple[int, int], ...]
    """For each column, the number of values, and of those that its clip moves."""

    @classmethod
    def of(cls, columns: list[tuple[Floats, Mask]], temporal: tuple[bool, ...], moved: tuple[int, ...]) -> Extent:
        """The extent of some rows, and the number of values in each column that a clip has moved."""
        present = [values[~null] if null.size else values for values, null in columns]
        low = tuple(float(values.min()) if values.size else math.inf for values in present)
        high = tuple(float(values.max()) if values.size else -math.inf for values in present)
        return cls(
            low, high, temporal, tuple((len(values), count) for values, count in zip(present, moved, strict=True))
        )

    def merge(self, other: Self) -> Self:
        counts = tuple((a + c, b + d) for (a, b), (c, d) in zip(self.counts, other.counts, strict=True))
        low, high = tuple(map(min, self.low, other.low)), tuple(map(max, self.high, other.high))
        return type(self)(low, high, self.temporal, counts)

    def ends(self, column: int) -> tuple[float, float]:
        """The lowest and highest value of a column; zero for both where it has none."""
        low, high = self.low[column], self.high[column]
        return (low, high) if low <= high else (0.0, 0.0)


@dataclass(frozen=True)
class Moments(Summary):
    """Second pass: the sums of products of the columns with each other and with their indicators of presence."""

    extent: Extent
    sums: Integers

    @classmethod
    def of(cls, columns: list[tuple[Floats, Mask]], extent: Extent) -> Moments:
        """The moments of some rows of a table with this extent."""
        count, rows = len(columns), len(columns[0][0])
        counted = [to_integers(values, null, *extent.ends(i)) for i, (values, null) in enumerate(columns)]
        if any(null.size for _, null in columns):
            present = [1.0 - null if null.size else np.ones(rows) for _, null in columns]
            return cls(extent, cross_products(np.stack([*counted, *present])))
        # where nothing is null, one indicator of presence serves for all columns
        short = cross_products(np.stack([*counted, np.ones(rows)]))
        spread = [*range(count), *[count] * count]
        return cls(extent, short[np.ix_(spread, spread)])

    def merge(self, other: Self) -> Self:
        return type(self)(self.extent, self.sums + other.sums)

    def covariance(self) -> Floats:
        """The sample covariances, in the columns' units."""
        return covariance(self.sums, [resolution(*self.extent.ends(i)) for i in range(len(self.extent.low))])

    def means(self) -> list[float]:
        """The means, in the columns' units."""
        return means(self.sums, [self.extent.ends(i) for i in range(len(self.extent.low))])

    @property
    def rows(self) -> int:
        """The least number of rows over which a covariance is taken."""
        count = len(self.extent.low)
        return int(self.sums[count:, count:].min())

    def given_rows(self, column: int) -> int:
        """The number of rows in which a column has a value."""
        count = len(self.extent.low)
        return int(self.sums[count + column, count + column])

    def mismatch(self) -> float:
        """How much the covariances may fail to fit each other, because nulls made them use different rows."""
        count = len(self.extent.low)
        pairs = self.sums[count:, count:]
        return 0.0 if (pairs == pairs[0, 0]).all() else min(1.0, 64 / max(self.rows, 1))


def in_range(values: Floats, column: str) -> None:
    """Refuse numbers whose squares would overflow; what is under a null is not looked at, since it is zero."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest > MAX_MAGNITUDE:
        raise SourceError(
            f"column {column!r} must hold numbers of magnitude at most {MAX_MAGNITUDE:g}, got {largest:g}; clip it, or "
            "state it in a larger unit"
        )


def finite(values: Floats, null: Mask, column: str) -> None:
    """Refuse NaN and infinity."""
    if not values.size or (null.size == 0 and np.isfinite(values.min()) and np.isfinite(values.max())):
        return  # a NaN would be both, an infinity one of them
    bad = ~np.isfinite(values)
    if null.size:
        bad &= ~null
    count = int(bad.sum())
    if count:
        raise SourceError(
            f"column {column!r} must hold finite numbers, got {count} NaN or infinite values in one batch, the first "
            f"in its row {int(bad.argmax())}; clean them or make them null"
        )
