"""Average all copies, as anybody would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, Guess
from sfumato.models.gaussian_noise import GaussianNoise


@dataclass(frozen=True, kw_only=True)
class Average(Attack):
    """The plain mean of what the copies show of each column."""

    reference = "li2012, section 1: the diversity attack in its simplest form"
    supports = frozenset({GaussianNoise.kind})
    fewest = 2

    def prepare(self, evidence: Evidence) -> Guess:
        """Nothing is learnt."""
        columns = evidence.columns

        def guess(some: Evidence) -> Estimate:
            total, count = np.zeros((some.rows, len(columns))), np.zeros(len(columns))
            for part in some.numbers:
                places = [columns.index(name) for name in part.columns]
                total[:, places] += part.values
                count[places] += 1
            return Estimate(self.name, columns, total / count)

        return guess
