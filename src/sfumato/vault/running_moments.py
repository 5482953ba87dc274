"""Running moments of a dataset: what tells, as rows are appended, whether the table still varies as its noise does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats
from sfumato.kernels.cholesky import largest_variance_ratio, lower_factor
from sfumato.mechanisms._copula_scheme import CopulaScheme
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.release.scheme import TableScheme
from sfumato.tables import numeric
from sfumato.tables.source import Source


@dataclass(frozen=True)
class RunningMoments:
    """Sums over the rows of a table, for each part of its scheme that adds noise to numbers or scores."""

    centre: tuple[Floats, ...]
    """For each part, the numbers from which values are counted."""
    sums: tuple[Floats, ...]
    """For each part, the products of values with values and with indicators of presence, and of these, side by side."""

    @classmethod
    def of(cls, scheme: TableScheme, source: Source, earlier: RunningMoments | None = None) -> RunningMoments:
        """The moments of some rows; those of later rows are counted from the centre of the earlier ones."""
        parts = _measured(scheme)
        centre = None if earlier is None else earlier.centre
        sums = [np.zeros((len(part.columns), 3 * len(part.columns))) for part in parts]
        for batch in source.batches(list(dict.fromkeys(name for part in parts for name in part.columns))):
            read = [_values(part, batch) for part in parts]
            if centre is None:
                centre = tuple(np.nan_to_num(_means(values)) for values in read)
            for i, (values, middle) in enumerate(zip(read, centre, strict=True)):
                there = ~np.isnan(values)
                shifted = np.where(there, values - middle[:, None], 0.0)
                present = there.astype(np.float64)
                sums[i] += np.hstack([shifted @ shifted.T, shifted @ present.T, present @ present.T])
        return cls(centre or tuple(np.zeros(len(part.columns)) for part in parts), tuple(sums))

    def merged(self, later: Self) -> Self:
        """The moments of both sets of rows."""
        return type(self)(self.centre, tuple(a + b for a, b in zip(self.sums, later.sums, strict=True)))

    def variance_ratio(self, scheme: TableScheme) -> float:
        """The largest ratio, over all directions, of the variance of the rows to the one that the noise is for."""
        ratios = [1.0]
        for part, total in zip(_measured(scheme), self.sums, strict=True):
            products, sums, counts = np.hsplit(total, 3)
            pairs = np.maximum(counts, 1.0)
            covariance = (products - sums * sums.T / pairs) / pairs
            if isinstance(part, CopulaScheme):
                ratios.append(float(np.diag(covariance).max()))
            else:
                ratios.append(largest_variance_ratio(part.factor, lower_factor(covariance)))
        return max(ratios)

    def dumps(self) -> str:
        """The moments as JSON."""
        return json.dumps([[one.tolist() for one in parts] for parts in (self.centre, self.sums)])

    @classmethod
    def loads(cls, text: str) -> Self:
        """The inverse of `dumps`."""
        centre, sums = ([np.array(one) for one in parts] for parts in json.loads(text))
        return cls(tuple(centre), tuple(sums))


def are_running(scheme: TableScheme) -> bool:
    """Whether the moments of later rows can be added: not where numbers are mapped."""
    return not any(mechanism.is_linear_map for mechanism in scheme.mechanisms)


def _measured(scheme: TableScheme) -> list[GaussianScheme | CopulaScheme]:
    return [part for part in scheme.schemes if isinstance(part, GaussianScheme | CopulaScheme)]


def _values(part: GaussianScheme | CopulaScheme, batch: pa.RecordBatch) -> Floats:
    """The values of a batch, a row per column; NaN where missing."""
    if isinstance(part, CopulaScheme):
        return part.scores(batch)
    values = part.records(batch)
    for line, name in zip(values, part.columns, strict=True):
        _, null = numeric.read(batch.column(name))
        if null.size:
            line[null] = np.nan
    return values


def _means(values: Floats) -> Floats:
    there = ~np.isnan(values)
    means: Floats = np.where(there, values, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return means
