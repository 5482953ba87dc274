"""The best linear estimate from all copies at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import pinvh

from sfumato.attacks import Attack, Estimate, Evidence, Guess
from sfumato.attacks.evidence.pooling import design, joint_noise, pool
from sfumato.attacks.evidence.statistics import learnable, statistics
from sfumato.kernels.covariances import positive
from sfumato.models.gaussian_noise import GaussianNoise


@dataclass(frozen=True, kw_only=True)
class Llse(Attack):
    """The best linear estimate from all copies at once.

    `x̂ = μ + K_X·Hᵀ(H·K_X·Hᵀ + K_Z)⁻¹(y - H·μ)` with the joint covariance `K_Z` of all copies' noise.
    """

    reference = "li2012, section 3.3, eq. 6"
    supports = frozenset({GaussianNoise.kind})

    def prepare(self, evidence: Evidence) -> Guess:
        """The gain, from the models and from what is known or can be estimated of the original."""
        numbers = evidence.numbers
        pooled = pool(numbers)
        seen = learnable(pooled.of(numbers))
        known = statistics(pooled.columns, seen, pooled.covariance, evidence.knowledge)
        shown = design(numbers, pooled.columns)
        units = np.sqrt(np.maximum(np.diag(known.seen), np.diag(pooled.covariance)))
        spread = shown @ positive(known.covariance, units)
        total = spread @ shown.T + joint_noise(numbers)
        units = np.sqrt(np.diag(total))
        gain = (spread / units[:, None]).T @ pinvh(total / np.outer(units, units), rtol=1e-10)
        places = np.cumsum([0, *(len(part.columns) for part in numbers)])
        blocks = [slice(*ends) for ends in pairwise(places)]
        non_dominated = [
            i for i, block in enumerate(blocks) if np.abs(gain[:, block]).max() > 1e-9 * np.abs(gain).max()
        ]
        weights = gain / units[None, :]
        centre = shown @ known.mean

        def guess(some: Evidence) -> Estimate:
            total = np.tile(known.mean, (some.rows, 1))
            for i in non_dominated:  # a copy without weight is not looked at
                apart = some.numbers[i].values - centre[blocks[i]]
                total += np.nan_to_num(apart, copy=False) @ weights[:, blocks[i]].T
            missing = np.isnan(pooled.of(some.numbers))
            return Estimate(self.name, pooled.columns, np.where(missing, np.nan, total))

        return guess
