"""Averaging attack: the mean of all copies, the simplest collusion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack
from sfumato.models.gaussian_noise import GaussianNoise


@dataclass(frozen=True, kw_only=True)
class Average(Attack):
    """The unweighted mean of the copies of each column."""

    reference = "li2012, section 1: the diversity attack in its simplest form"
    supports = frozenset({GaussianNoise.kind})
    min_copies = 2

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Determine the columns; a mean has no parameters to fit."""
        columns = evidence.columns

        def estimate(some: Evidence) -> Estimate:
            total, count = np.zeros((some.rows, len(columns))), np.zeros(len(columns))
            for part in some.numbers:
                indices = [columns.index(name) for name in part.columns]
                total[:, indices] += part.values
                count[indices] += 1
            return Estimate(self.name, columns, total / count)

        return estimate
