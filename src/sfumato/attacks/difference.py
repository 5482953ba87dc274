"""Difference attack: differences of copies cancel the record, and are regressed out of the best copy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack, Numbers
from sfumato.attacks.evidence.statistics import complete_or_imputed
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.models.gaussian_noise import GaussianNoise

_EXACT = 0.02
"""The relative difference of variances up to which the noise of two copies counts as proportional."""


@dataclass(frozen=True, kw_only=True)
class Difference(Attack):
    """Remove from the best copy the part of its noise that differences between copies predict.

    It does not rely on the joint distribution of noise that the models claim. Where the noise of two copies is
    proportional, `x = (σ₂y₁ - σ₁y₂)/(σ₂-σ₁)` is exact. Else the best copy is regressed on the differences.
    """

    reference = "li2012, section 4.2.2"
    supports = frozenset({GaussianNoise.kind})
    min_copies = 2

    def check(self, evidence: Evidence) -> None:
        """Raise `AttackError` unless there are two copies of the same columns."""
        super().check(evidence)
        columns = [part.columns for part in evidence.numbers]
        best = min(evidence.numbers, key=lambda part: (part.model.noise, -len(part.columns)))
        if columns.count(best.columns) < 2:
            raise AttackError(f"the attack {self.name!r} needs two copies of the same columns; add another copy")

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Test for proportional noise, else fit the regression."""
        parts = evidence.numbers
        best = min(range(len(parts)), key=lambda i: (parts[i].model.noise, -len(parts[i].columns)))
        columns = parts[best].columns
        others = [i for i, part in enumerate(parts) if i != best and part.columns == columns]
        for i, j in combinations([best, *others], 2):
            if _is_proportional(parts[i], parts[j]):
                return self._exact(i, j, columns)
        return self._regression(evidence, best, others)

    def _exact(self, i: int, j: int, columns: tuple[str, ...]) -> FittedAttack:
        def estimate(some: Evidence) -> Estimate:
            a, b = some.numbers[i], some.numbers[j]
            s, t = np.sqrt(a.model.noise), np.sqrt(b.model.noise)
            return Estimate(self.name, columns, (t * a.values - s * b.values) / (t - s))

        return estimate

    def _regression(self, evidence: Evidence, best: int, others: list[int]) -> FittedAttack:
        first = evidence.numbers[best]
        columns, size = first.columns, len(first.columns)
        training = complete_or_imputed(np.hstack([first.values, _differences(evidence, best, others)]))
        centred = training - training.mean(axis=0)
        units = centred.std(axis=0)
        units = np.where(units > 0, units, 1.0)
        scaled = centred / units
        weights = np.linalg.lstsq(scaled[:, size:], scaled[:, :size], rcond=1e-6)[0]
        weights = weights * units[None, :size] / units[size:, None]

        def estimate(some: Evidence) -> Estimate:
            predicted = np.nan_to_num(_differences(some, best, others)) @ weights
            return Estimate(self.name, columns, some.numbers[best].values - predicted)

        return estimate


def _differences(evidence: Evidence, best: int, others: list[int]) -> Floats:
    """The difference of each other copy from the best one, side by side."""
    return np.hstack([evidence.numbers[i].values - evidence.numbers[best].values for i in others])


def _is_proportional(a: Numbers, b: Numbers) -> bool:
    """Whether the difference of two copies has the variance that proportional noise would give, `(σ₂-σ₁)²`."""
    gap = (np.sqrt(b.model.noise) - np.sqrt(a.model.noise)) ** 2
    if gap <= 0:
        return False
    expected = np.diag(a.covariance) / a.model.noise * gap
    observed = complete_or_imputed(b.values - a.values).var(axis=0)
    varies = observed > 0
    return bool(varies.any() and (np.abs(observed[varies] / expected[varies] - 1) < _EXACT).all())
