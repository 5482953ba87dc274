"""Rotation: numbers turned by one secret orthogonal matrix, so that every distance stays (giannella2010)."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.mechanisms._moved import MovedTogether


@dataclass(frozen=True)
class Rotated(MovedTogether):
    """All `rotation` columns of a policy: `y = M·x + v`, `M` uniform on O(n), perhaps `v`, perhaps noise before it."""

    reference = "giannella2010, section III-B"
