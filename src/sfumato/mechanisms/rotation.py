"""Rotation: numbers mapped by one secret orthogonal matrix, so that every distance is preserved (giannella2010)."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.mechanisms._linear_map import LinearMapMechanism, MapKind
from sfumato.models.rotation import Rotation


@dataclass(frozen=True)
class RotationMechanism(LinearMapMechanism):
    """All `rotation` columns of a policy: `y = M·x + v`, `M` uniform on O(n), perhaps `v`, perhaps noise before it."""

    reference = "giannella2010, section III-B"

    @classmethod
    def map_kind(cls) -> MapKind:
        return MapKind(cls.role_name(), "rotated", Rotation, is_orthogonal=True)
