"""Projection: numbers mapped by one secret random matrix, so that distances are nearly preserved (giannella2010, VI).

The paper offers it as a remedy against the known-sample attack. It is none: one matrix is used for all records, so the
copy's covariance has the original's eigenvectors, rotated, and the better distances survive, the better the attack.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.mechanisms import Example
from sfumato.mechanisms._linear_map import LinearMapMechanism, MapKind
from sfumato.models.projection import Projection


@dataclass(frozen=True)
class ProjectionMechanism(LinearMapMechanism):
    """All `projection` columns of a policy: `y = ℓ^{-1/2}·R·x`, with `ℓ` the setting `dimensions`."""

    reference = "giannella2010, section VI"
    settings = frozenset({"dimensions", "standardise", "shuffle", "noise", "withstand", "accept"})
    examples = (Example("numbers", 3, settings={"noise": True, "dimensions": 2}),)

    @classmethod
    def map_kind(cls) -> MapKind:
        return MapKind(cls.role_name(), "projected", Projection, is_orthogonal=False)
