"""Sufficient statistics of numeric columns, read in one pass: sums, products and fine histograms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.kernels.covariances import PairwiseSums, correlation, entry_standard_errors, nearest_covariance
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.quantiles import Bins, DeconvolvedCdf, Histogram, merged_histograms


@dataclass(frozen=True)
class Summary:
    """The statistics of some numeric columns of a copy from which moments and quantiles are estimated."""

    copy: Copy
    names: list[str]
    origin: Floats
    sums: PairwiseSums
    """Sums of the differences from the origin, so that large numbers lose no precision."""
    bins: list[Bins]
    histograms: list[Histogram | None]
    """One per column; none for a column whose values are too far apart."""

    @classmethod
    def of(cls, copy: Copy, names: list[str]) -> Summary:
        """Read a copy once."""
        first = next(copy.tables(names), None)
        if first is None:
            raise MiningError("moments need at least two records, and the copy has none; ask for another copy")
        bins = _bins(copy, names, copy.values(first, names))
        sums, histograms = copy.fold(names, partial(_statistics, names=names, bins=bins), _merged)
        return cls(copy, names, np.array([b.origin for b in bins]), sums, bins, histograms)

    @property
    def mean(self) -> Floats:
        """The means of the original, which are those of the copy, since the noise has mean zero."""
        return self.sums.means() + self.origin

    @property
    def rows(self) -> Floats:
        """The number of records that have a value in each column, and in each pair of columns."""
        return self.sums.rows

    @property
    def noise(self) -> Floats:
        """The covariance matrix of the noise."""
        return self.copy.noise_covariance(self.names)

    @property
    def units(self) -> Floats:
        """The scale of each column: its standard deviation in the copy, or 1 if that is zero."""
        deviations = np.sqrt(np.diag(self.sums.covariance()))
        return np.where(deviations > 0, deviations, 1.0)

    @property
    def covariance(self) -> Floats:
        """The unconstrained covariance estimate of the original."""
        return self.sums.covariance() - self.noise

    def entry_standard_errors(self) -> Floats:
        """The standard errors of the entries of `covariance`."""
        original = nearest_covariance(self.covariance, self.units)
        return entry_standard_errors(original, self.noise, self.rows)

    def correlation(self) -> tuple[Floats, Floats]:
        """The correlation of each pair of columns over the records that have both values, and its standard error."""
        size = len(self.names)
        estimates, errors = np.eye(size), np.zeros((size, size))
        for i in range(size):
            for j in range(i):
                pair, noise = self.sums.pair(i, j), self.noise[np.ix_([i, j], [i, j])]
                original = nearest_covariance(pair - noise, np.sqrt(np.diag(pair)) + 1e-300)
                r, error = correlation(original, noise, float(self.rows[i, j]))
                estimates[i, j] = estimates[j, i] = r
                errors[i, j] = errors[j, i] = error
        return estimates, errors

    def cdf(self, name: str) -> DeconvolvedCdf:
        """The distribution function of one column of the original."""
        index = self.names.index(name)
        histogram = self.histograms[index]
        if histogram is None:
            raise MiningError(
                f"the values of {name!r} are too far apart for quantiles, because of extreme outliers; ask the owner "
                "to clip the column"
            )
        return DeconvolvedCdf.of(self.bins[index], histogram)


_Statistics = tuple[PairwiseSums, list[Histogram | None]]


def _statistics(copy: Copy, tables: Iterable[pa.Table], *, names: list[str], bins: list[Bins]) -> _Statistics:
    origin = np.array([b.origin for b in bins])
    total: _Statistics = PairwiseSums.of(np.empty((0, len(names)))), [b.histogram(np.empty(0)) for b in bins]
    for table in tables:
        values = copy.values(table, names)
        histograms = [b.histogram(values[:, i]) for i, b in enumerate(bins)]
        total = _merged(total, (PairwiseSums.of(values - origin), histograms))
    return total


def _merged(one: _Statistics, other: _Statistics) -> _Statistics:
    return one[0] + other[0], [merged_histograms(a, b) for a, b in zip(one[1], other[1], strict=True)]


def _bins(copy: Copy, names: list[str], first: Floats) -> list[Bins]:
    """The bins of each column; the spread of the original is estimated from the first rows, less the noise."""
    out = []
    for i, noise in enumerate(np.diag(copy.noise_covariance(names))):
        present = first[:, i][~np.isnan(first[:, i])]
        mean, variance = (float(present.mean()), float(present.var())) if len(present) else (0.0, 1.0)
        spread = np.sqrt(max(variance - noise, 0.05 * variance)) or 1.0
        # rounded to two digits, so that several copies of one table have the same bins
        out.append(Bins(float(np.sqrt(noise)), float(f"{spread:.1e}"), copy.rows, mean))
    return out
