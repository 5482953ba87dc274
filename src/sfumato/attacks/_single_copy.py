"""Noise filters: attacks on numeric columns that reduce any number of copies to their pooled copy first."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack, Knowledge
from sfumato.attacks.evidence.pooling import pool
from sfumato.attacks.evidence.statistics import Statistics, complete_or_imputed, statistics
from sfumato.kernels import Floats
from sfumato.models.gaussian_noise import GaussianNoise

Filter = Callable[[Floats], Floats]
"""From the values of a noisy copy, one row per record, to an estimate of the original."""


@dataclass(frozen=True)
class NoisyCopy:
    """One noisy copy of numeric columns, to which a filter is fitted."""

    columns: tuple[str, ...]
    training: Floats
    """Records to fit to, without missing values."""
    values: Floats
    """All records; NaN where a value is missing."""
    noise: Floats
    """The covariance of the noise."""
    knowledge: Knowledge

    def statistics(self) -> Statistics:
        """The mean and covariance of the original, as far as the attacker can know them."""
        return statistics(self.columns, self.training, self.noise, self.knowledge)


class SingleCopyAttack(Attack):
    """An attack that filters the noise out of one copy."""

    supports = frozenset({GaussianNoise.kind})
    combines_copies = False

    @abc.abstractmethod
    def fit_filter(self, copy: NoisyCopy) -> Filter:
        """Fit the filter to all records of the copy."""

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Pool the copies, and fit the filter to the pooled copy."""
        pooled = pool(evidence.numbers)
        values = pooled.apply(evidence.numbers)
        training = complete_or_imputed(values)
        centre = training.mean(axis=0)
        denoise = self.fit_filter(NoisyCopy(pooled.columns, training, values, pooled.covariance, evidence.knowledge))

        def estimate(some: Evidence) -> Estimate:
            values = pooled.apply(some.numbers)
            missing = np.isnan(values)
            denoised = denoise(np.where(missing, centre, values))
            return Estimate(self.name, pooled.columns, np.where(missing, np.nan, denoised))

        return estimate
