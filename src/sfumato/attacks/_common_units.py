"""Common units: the pooled numbers of all copies, each column with mean 0 and deviation 1, and their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Evidence, Records
from sfumato.attacks.evidence.pooling import Pool, pool
from sfumato.kernels import Floats
from sfumato.kernels.column_moments import column_means, column_units


@dataclass(frozen=True)
class CommonUnits:
    """How the numbers of some copies are read; of copies without numbers, no column."""

    pooled: Pool | None
    level: Floats
    units: Floats
    noise: Floats
    """The covariance of the noise, in these units."""

    @classmethod
    def of(cls, evidence: Evidence, known: Records | None = None) -> CommonUnits:
        """The units of known records, else of the copies themselves."""
        if not evidence.numbers:
            return cls(None, np.empty(0), np.empty(0), np.empty((0, 0)))
        pooled = pool(evidence.numbers)
        values = pooled.apply(evidence.numbers) if known is None else known.numbers(pooled.columns)
        level, units = column_means(values), column_units(values)
        return cls(pooled, level, units, pooled.covariance / np.outer(units, units))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return () if self.pooled is None else self.pooled.columns

    def values(self, evidence: Evidence) -> Floats:
        """The noisy numbers in the units of the columns."""
        return np.empty((evidence.rows, 0)) if self.pooled is None else self.pooled.apply(evidence.numbers)

    def scaled(self, values: Floats) -> Floats:
        """Numbers in common units, a missing one as the mean."""
        return np.nan_to_num((values - self.level) / self.units)

    def original(self, numbers: Floats, evidence: Evidence) -> Floats:
        """Estimates in the units of the columns, missing where the copies lack the value."""
        return np.where(np.isnan(self.values(evidence)), np.nan, numbers * self.units + self.level)
