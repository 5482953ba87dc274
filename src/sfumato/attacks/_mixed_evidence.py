"""Mixed evidence: numbers, categories and public columns of the best copies together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Categories, Evidence
from sfumato.attacks.evidence.pooling import Pool, pool
from sfumato.kernels import Floats
from sfumato.kernels.latent_class import Channel, Observed
from sfumato.kernels.mixed_records import LARGEST_DOMAIN, MixedRecords


@dataclass(frozen=True)
class MixedEvidence:
    """How evidence is read: the pooled numbers, and the best copy of each attribute."""

    pooled: Pool | None
    attributes: tuple[Categories, ...]
    records: MixedRecords

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.pooled is None else self.pooled.columns

    @property
    def channel(self) -> Channel:
        return self.records.channel

    @classmethod
    def of(cls, evidence: Evidence) -> MixedEvidence:
        """The records of some copies: numbers, attributes of the best copies, and public columns."""
        pooled = pool(evidence.numbers) if evidence.numbers else None
        parts = [copies[0] for copies in evidence.attributes().values() if copies[0].size <= LARGEST_DOMAIN]
        records = MixedRecords.of(
            _numbers(evidence, pooled),
            np.empty((0, 0)) if pooled is None else pooled.covariance,
            _steps(evidence, pooled),
            [(part.model.retention, part.size) for part in parts],
            _public(evidence),
        )
        return cls(pooled, tuple(parts), records)

    def observed(self, evidence: Evidence) -> Observed:
        """The records of some evidence."""
        shown = evidence.attributes()
        codes = [shown[part.model.columns][0].codes for part in self.attributes]
        return self.records.observed(_numbers(evidence, self.pooled), codes, _public(evidence))


def _numbers(evidence: Evidence, pooled: Pool | None) -> Floats:
    return np.empty((evidence.rows, 0)) if pooled is None else pooled.apply(evidence.numbers)


def _public(evidence: Evidence) -> Floats:
    return np.empty((evidence.rows, 0)) if evidence.public is None else evidence.public


def _steps(evidence: Evidence, pooled: Pool | None) -> Floats:
    """The lattice of each column of numbers, zero for scores."""
    steps: dict[str, float] = {}
    for part in evidence.numbers:
        steps |= (
            dict.fromkeys(part.columns, 0.0) if part.copula else dict(zip(part.columns, part.model.step, strict=True))
        )
    return np.array([steps[name] for name in pooled.columns]) if pooled else np.empty(0)
