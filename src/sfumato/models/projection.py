"""Projection: numbers under one secret random matrix, so that distances are nearly preserved (giannella2010, VI)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from sfumato.levels import Level
from sfumato.models import Limit
from sfumato.models.rotation import Rotation

_RARE = 1e-6
"""The probability that the distances of all pairs at once are further off than stated."""


@dataclass(frozen=True)
class Projection(Rotation):
    """A rotation's model with `M = ℓ^{-1/2}·R`, whose `ℓ x n` entries are independent standard normals.

    Distances survive up to a factor: of one pair its square is chi-squared over `ℓ` degrees of freedom.
    """

    kind = "projection"

    @property
    def preserves_distances(self) -> bool:
        return False

    def promises(self, level: Level) -> list[str]:  # noqa: ARG002
        dimensions, size = len(self.columns), len(self.sources)
        return [
            f"Distances, {size} numbers projected to {dimensions}: over the choice of the matrix, the distance of a "
            f"pair is preserved within {distortion(dimensions, 0.5):.2g} of itself with probability 50 %, within "
            f"{distortion(dimensions, 0.99):.2g} with probability 99 %; the distances of all pairs at once within "
            f"{worst_distortion(dimensions, size):.2g}, but for one matrix in a million."
        ]

    def limits(self) -> list[Limit]:
        known_sample = Limit(
            "A projection is no remedy against a known sample, although giannella2010, section VI, says so: the better "
            "it preserves distances, the better the attack"
        )
        return [*super().limits(), known_sample]


def distortion(dimensions: int, share: float) -> float:
    """Within which part of itself a projection preserves that share of distances: `√(χ²/ℓ)` about 1."""
    tails = np.array([(1 - share) / 2, (1 + share) / 2])
    low, high = np.sqrt(2 * gammaincinv(dimensions / 2, tails) / dimensions)
    return float(max(1 - low, high - 1))


def worst_distortion(dimensions: int, size: int, probability: float = _RARE) -> float:
    """Within which part of itself a projection preserves all distances at once (Davidson and Szarek 2001)."""
    return float((math.sqrt(size) + math.sqrt(2 * math.log(2 / probability))) / math.sqrt(dimensions))
