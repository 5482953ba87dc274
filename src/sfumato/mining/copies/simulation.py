"""Records drawn from the public model of margin-preserving columns, and a copy of them.

What a relation would be if rank correlations were all there is, and how much of anything else a copy of this level
retains: statistics of the simulated records and of their copy tell both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats, Mask
from sfumato.kernels.covariances import symmetric
from sfumato.mining.copies.copy import Copy
from sfumato.models import of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.tables.margin import values_of

_ROWS = 1 << 17

_FEWEST = 50
"""With fewer simulated records, nothing is known of what is retained."""


@dataclass(frozen=True)
class Simulation:
    """Simulated records and a copy of them, row by row."""

    original: pa.Table
    copy: pa.Table

    @classmethod
    def of(cls, copy: Copy, columns: Sequence[str]) -> Simulation:
        """Simulate some margin-preserving columns of a copy; columns of different groups are independent."""
        rng, tables = np.random.default_rng(1), []
        for model in of_type(copy.manifest.models, GaussianCopula):
            own = model.narrowed([name for name in model.columns if name in columns])
            if own.columns:
                root = np.linalg.cholesky(symmetric(own.correlation))
                before, added = root @ rng.normal(size=(2, len(root), _ROWS))
                after = (before + np.sqrt(own.noise) * added) / np.sqrt(1 + own.noise)
                tables.append([values_of(scores, own, copy.source.schema) for scores in (before, after)])
        return cls(*(_beside(parts) for parts in zip(*tables, strict=True)))


def retained(has: Mask, shows: Mask) -> float:
    """Which part of a group's peculiarity a copy retains.

    A copy shows a group with some records that belong to it, and others at random.

    Args:
        has: which simulated records belong to the group.
        shows: which of them their copy shows in it.

    """
    if shows.sum() < _FEWEST or has.sum() < _FEWEST:
        return 0.0
    share = float(has.mean())
    return max((float(has[shows].mean()) - share) / (1 - share), 0.0) if share < 1 else 1.0


def correlation(one: Floats, other: Floats) -> float:
    """The correlation of two columns, in the records that have both; 0 where one does not vary."""
    both = np.isfinite(one) & np.isfinite(other)
    if both.sum() < _FEWEST or not one[both].std() or not other[both].std():
        return 0.0
    return max(float(np.corrcoef(one[both], other[both])[0, 1]), 0.0)


def outer_uncertainty(copy: Copy, name: str) -> float:
    """How far the mean of a column of numbers may be off because of its outermost bins.

    Within them, values are spread evenly by their scores, and those beyond are moved to their ends; the original has
    the same number of records there, somewhere within about twice the width of the bin.
    """
    model = copy.copula_model(name)
    if model is None:
        return 0.0
    margin = model.margins[model.columns.index(name)]
    if margin.get("values"):
        return 0.0
    low, high, share = margin["low"], margin["high"], [0.0, *margin["share"]]
    first, last = share[1] * (high[0] - low[0]), (share[-1] - share[-2]) * (high[-1] - low[-1])
    return float((first + last) * margin["step"])


def _beside(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.table({name: table.column(name) for table in tables for name in table.column_names})
