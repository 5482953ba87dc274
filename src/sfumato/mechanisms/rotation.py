"""Rotation: numbers turned by one secret orthogonal matrix, so that every distance stays (giannella2010)."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.mechanisms._linear_map import LinearMapMechanism


@dataclass(frozen=True)
class Rotated(LinearMapMechanism):
    """All `rotation` columns of a policy: `y = M·x + v`, `M` uniform on O(n), perhaps `v`, perhaps noise before it."""

    reference = "giannella2010, section III-B"
