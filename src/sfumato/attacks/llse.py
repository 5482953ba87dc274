"""Linear least-squares error estimation (LLSE): the best linear estimate from all copies jointly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import pinvh

from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack
from sfumato.attacks.evidence.pooling import design_matrix, joint_noise, pool
from sfumato.attacks.evidence.statistics import complete_or_imputed, statistics
from sfumato.kernels.covariances import nearest_covariance
from sfumato.models.gaussian_noise import GaussianNoise


@dataclass(frozen=True, kw_only=True)
class Llse(Attack):
    """The best linear estimate from all copies jointly.

    `x̂ = μ + K_X·Hᵀ(H·K_X·Hᵀ + K_Z)⁻¹(y - H·μ)` with the joint covariance `K_Z` of all copies' noise.
    """

    reference = "li2012, section 3.3, eq. 6"
    supports = frozenset({GaussianNoise.kind})

    def fit(self, evidence: Evidence) -> FittedAttack:
        """The gain matrix, from the models and from known or estimated statistics of the original."""
        numbers = evidence.numbers
        pooled = pool(numbers)
        training = complete_or_imputed(pooled.apply(numbers))
        known = statistics(pooled.columns, training, pooled.covariance, evidence.knowledge)
        design = design_matrix(numbers, pooled.columns)
        units = np.sqrt(np.maximum(np.diag(known.copy_covariance), np.diag(pooled.covariance)))
        cross = design @ nearest_covariance(known.covariance, units)
        total = cross @ design.T + joint_noise(numbers)
        units = np.sqrt(np.diag(total))
        gain = (cross / units[:, None]).T @ pinvh(total / np.outer(units, units), rtol=1e-10)
        blocks = [slice(*ends) for ends in pairwise(np.cumsum([0, *(len(part.columns) for part in numbers)]))]
        weighted = [i for i, block in enumerate(blocks) if np.abs(gain[:, block]).max() > 1e-9 * np.abs(gain).max()]
        weights = gain / units[None, :]
        centre = design @ known.mean

        def estimate(some: Evidence) -> Estimate:
            total = np.tile(known.mean, (some.rows, 1))
            for i in weighted:  # a copy without weight is not read
                centred = some.numbers[i].values - centre[blocks[i]]
                total += np.nan_to_num(centred, copy=False) @ weights[:, blocks[i]].T
            missing = np.isnan(pooled.apply(some.numbers))
            return Estimate(self.name, pooled.columns, np.where(missing, np.nan, total))

        return estimate
