"""Subtract copies from each other: the record cancels, and what is left tells of the noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, Guess, Numbers
from sfumato.attacks.evidence.statistics import learnable
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.models.gaussian_noise import GaussianNoise

_EXACT = 0.02
"""How near the differences must come to what linearly dependent noise would give."""


@dataclass(frozen=True, kw_only=True)
class Difference(Attack):
    """Subtract copies, so that the record cancels, and take what is left out of the best one.

    It takes no model's word for how copies hang together. Where the noise of two copies is proportional,
    `x = (σ₂y₁ - σ₁y₂)/(σ₂-σ₁)` is exact. Else, what the differences tell of the best copy's noise is regressed out.
    """

    reference = "li2012, section 4.2.2"
    supports = frozenset({GaussianNoise.kind})
    fewest = 2

    def check(self, evidence: Evidence) -> None:
        """Two copies of the same columns are needed."""
        super().check(evidence)
        shown = [part.columns for part in evidence.numbers]
        best = min(evidence.numbers, key=lambda part: (part.model.noise, -len(part.columns)))
        if shown.count(best.columns) < 2:
            raise AttackError(f"the attack {self.name!r} needs two copies of the same columns; give it another one")

    def prepare(self, evidence: Evidence) -> Guess:
        """Look for proportional noise, else learn the regression."""
        parts = evidence.numbers
        best = min(range(len(parts)), key=lambda i: (parts[i].model.noise, -len(parts[i].columns)))
        columns = parts[best].columns
        others = [i for i, part in enumerate(parts) if i != best and part.columns == columns]
        for i, j in combinations([best, *others], 2):
            if _proportional(parts[i], parts[j]):
                return self._exact(i, j, columns)
        return self._regressed(evidence, best, others)

    def _exact(self, i: int, j: int, columns: tuple[str, ...]) -> Guess:
        def guess(some: Evidence) -> Estimate:
            a, b = some.numbers[i], some.numbers[j]
            s, t = np.sqrt(a.model.noise), np.sqrt(b.model.noise)
            return Estimate(self.name, columns, (t * a.values - s * b.values) / (t - s))

        return guess

    def _regressed(self, evidence: Evidence, best: int, others: list[int]) -> Guess:
        first = evidence.numbers[best]
        whole = learnable(np.hstack([first.values, _apart(evidence, best, others)]))
        size = len(first.columns)
        centred = whole - whole.mean(axis=0)
        units = centred.std(axis=0)
        units = np.where(units > 0, units, 1.0)
        scaled = centred / units
        weights = np.linalg.lstsq(scaled[:, size:], scaled[:, :size], rcond=1e-6)[0]
        weights = weights * units[None, :size] / units[size:, None]

        def guess(some: Evidence) -> Estimate:
            told = np.nan_to_num(_apart(some, best, others)) @ weights
            return Estimate(self.name, first.columns, some.numbers[best].values - told)

        return guess


def _apart(evidence: Evidence, best: int, others: list[int]) -> Floats:
    return np.hstack([evidence.numbers[i].values - evidence.numbers[best].values for i in others])


def _proportional(a: Numbers, b: Numbers) -> bool:
    """Whether the difference of two copies varies as that of proportional noise does, `(σ₂-σ₁)²`."""
    gap = (np.sqrt(b.model.noise) - np.sqrt(a.model.noise)) ** 2
    if gap <= 0:
        return False
    expected = np.diag(a.covariance) / a.model.noise * gap
    seen = learnable(b.values - a.values).var(axis=0)
    there = seen > 0
    return bool(there.any() and (np.abs(seen[there] / expected[there] - 1) < _EXACT).all())
