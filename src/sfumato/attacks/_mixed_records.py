"""Mixed records: numbers, categories and public columns of the best copies, in common units, with their known noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Categories, Evidence
from sfumato.attacks.evidence.pooling import Pool, pool
from sfumato.attacks.evidence.statistics import column_units
from sfumato.kernels import Floats, Rows
from sfumato.kernels.covariances import nearest_covariance
from sfumato.kernels.latent_class import Channel, Observed, without_rare_patterns

LARGEST_DOMAIN = 300
"""Attributes with more categories are left out."""
_FEW = 50
"""Public columns with at most this many values are treated as categories."""
_FEW_MISSING = 0.02
"""Where a smaller share of values is missing, it tells nothing of a record."""
_CERTAIN = 1 - 1e-6
"""The retention of a category that was not perturbed."""


@dataclass(frozen=True)
class MixedRecords:
    """How evidence is read: the pooled numbers in common units, the best copy of each attribute, and public columns."""

    pooled: Pool | None
    units: Floats
    attributes: tuple[Categories, ...]
    public_numbers: Rows
    public_values: dict[int, Floats]
    """The values of the public columns that are treated as categories."""
    gaps: Rows
    """The columns of numbers whose missing values tell something of a record: whether one is missing is a category."""
    channel: Channel
    steps: Floats
    """The lattice that each perturbed number lies on, in common units; zero for scores."""

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.pooled is None else self.pooled.columns

    @classmethod
    def of(cls, evidence: Evidence) -> MixedRecords:
        """The records of some copies: numbers, attributes of the best copies, and public columns."""
        pooled = pool(evidence.numbers) if evidence.numbers else None
        numbers = pooled.apply(evidence.numbers) if pooled else np.empty((evidence.rows, 0))
        public = np.empty((evidence.rows, 0)) if evidence.public is None else evidence.public
        few, many = _public_kinds(public)
        units = column_units(np.hstack([numbers, public[:, many]]))
        own = numbers.shape[1]
        noise = np.zeros((len(units), len(units)))
        if pooled is not None:
            scaled = pooled.covariance / np.outer(units[:own], units[:own])
            noise[:own, :own] = nearest_covariance(scaled, np.ones(own)) + 1e-9 * np.eye(own)
        gaps = _gaps(np.hstack([numbers, public[:, many]]))
        parts = [copies[0] for copies in evidence.attributes().values() if copies[0].size <= LARGEST_DOMAIN]
        certain = [_CERTAIN] * (len(few) + len(gaps))
        retentions = (*(min(part.model.retention, _CERTAIN) for part in parts), *certain)
        sizes = (*(part.size for part in parts), *map(len, few.values()), *(2 for _ in gaps))
        channel = Channel(noise, retentions, sizes)
        return cls(pooled, units, tuple(parts), many, few, gaps, channel, _steps(evidence, pooled) / units[:own])

    def observed(self, evidence: Evidence) -> Observed:
        """The records of some evidence."""
        numbers = np.empty((evidence.rows, 0)) if self.pooled is None else self.pooled.apply(evidence.numbers)
        public = np.empty((evidence.rows, 0)) if evidence.public is None else evidence.public
        values = np.hstack([numbers, public[:, self.public_numbers]]) / self.units
        shown = evidence.attributes()
        codes = [shown[part.model.columns][0].codes for part in self.attributes]
        codes += [_encoded(public[:, i], distinct) for i, distinct in self.public_values.items()]
        codes += [np.isnan(values[:, i]).astype(np.int64) for i in self.gaps]
        return Observed(without_rare_patterns(values), tuple(codes))


def _gaps(values: Floats) -> Rows:
    """The columns in which more than a few values are missing, and not all."""
    share = np.isnan(values).mean(axis=0) if len(values) else np.zeros(values.shape[1])
    return np.flatnonzero((share > _FEW_MISSING) & (share < 1 - _FEW_MISSING))


def _public_kinds(public: Floats) -> tuple[dict[int, Floats], Rows]:
    """The values of the public columns that are treated as categories, and the indices of those that are numbers."""
    distinct = [np.unique(line[~np.isnan(line)]) for line in public.T]
    few = {i: values for i, values in enumerate(distinct) if 1 < len(values) <= _FEW}
    many = np.array([i for i, values in enumerate(distinct) if len(values) > _FEW], np.int64)
    return few, many


def _steps(evidence: Evidence, pooled: Pool | None) -> Floats:
    """The lattice of each column of numbers, zero for scores."""
    steps: dict[str, float] = {}
    for part in evidence.numbers:
        steps |= (
            dict.fromkeys(part.columns, 0.0) if part.copula else dict(zip(part.columns, part.model.step, strict=True))
        )
    return np.array([steps[name] for name in pooled.columns]) if pooled else np.empty(0)


def _encoded(column: Floats, distinct: Floats) -> Rows:
    """The index of each value, or -1."""
    found = np.searchsorted(distinct, column).clip(0, len(distinct) - 1)
    return np.where(distinct[found] == column, found, -1)
