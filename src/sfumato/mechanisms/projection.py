"""Projection: numbers through one secret random matrix, so that distances nearly stay (giannella2010, section VI).

The paper offers it as a remedy against the known-sample attack. It is none: one matrix is used for all records, so the
copy's covariance has the original's eigenvectors, turned, and the better distances survive, the better does the attack.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.mechanisms._linear_map import LinearMapMechanism


@dataclass(frozen=True)
class Projected(LinearMapMechanism):
    """All `projection` columns of a policy: `y = ℓ^{-1/2}·R·x`, with `ℓ` the setting `dimensions`."""

    reference = "giannella2010, section VI"
    settings = frozenset({"dimensions", "standardise", "shuffle", "noise", "withstand", "accept"})
