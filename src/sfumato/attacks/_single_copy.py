"""Attacks on numbers that treat any number of copies as the one that they pool to."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, Guess, Knowledge
from sfumato.attacks.evidence.pooling import pool
from sfumato.attacks.evidence.statistics import Statistics, learnable, statistics
from sfumato.kernels import Floats
from sfumato.models.gaussian_noise import GaussianNoise

Filter = Callable[[Floats], Floats]
"""From a noisy copy, a record a row, to an estimate of the original."""


@dataclass(frozen=True)
class Copy:
    """One copy of numbers, as an attack that takes one learns from it."""

    columns: tuple[str, ...]
    values: Floats
    """Records to learn from, without missing values."""
    shown: Floats
    """All records as they are; NaN where a value is missing."""
    noise: Floats
    """The covariance of its noise."""
    knowledge: Knowledge

    def statistics(self) -> Statistics:
        """Of the original."""
        return statistics(self.columns, self.values, self.noise, self.knowledge)


class SingleCopyAttack(Attack):
    """An attack that filters noise out of one copy."""

    supports = frozenset({GaussianNoise.kind})
    pools = False

    @abc.abstractmethod
    def learn(self, copy: Copy) -> Filter:
        """How to filter, from all records of the copy."""

    def prepare(self, evidence: Evidence) -> Guess:
        """Pool the copies, then learn."""
        pooled = pool(evidence.numbers)
        shown = pooled.of(evidence.numbers)
        seen = learnable(shown)
        centre = seen.mean(axis=0)
        clean = self.learn(Copy(pooled.columns, seen, shown, pooled.covariance, evidence.knowledge))

        def guess(some: Evidence) -> Estimate:
            values = pooled.of(some.numbers)
            missing = np.isnan(values)
            found = clean(np.where(missing, centre, values))
            return Estimate(self.name, pooled.columns, np.where(missing, np.nan, found))

        return guess
