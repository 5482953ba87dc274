"""The ladder of a dataset as a picture: levels on a line, and recipients standing on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.vault.grants import Grant

WIDTH = 400
"""Of the drawing; about as many points as a phone is wide, so that its words can be read there."""

_LETTER = 7.0
"""Width of a letter, at most."""

_LANE, _LINE = 16, 20
"""Heights of a level's and of a recipient's name."""

MOST = 40
"""Recipients that are drawn."""


@dataclass(frozen=True)
class Mark:
    """A name in the picture, and the place on the axis that it belongs to."""

    name: str
    x: float
    left: float
    """Where the name begins."""
    y: float


@dataclass(frozen=True)
class Ladder:
    """Everything's place."""

    levels: tuple[Mark, ...]
    axis: float
    standing: tuple[Mark, ...]
    height: float

    @classmethod
    def of(cls, levels: dict[str, float], grants: Sequence[Grant]) -> Ladder:
        """Most trusted to the right; names of levels in as many lanes as they need, a line for each recipient."""
        lanes: list[float] = []
        rungs = []
        for name, fidelity in sorted(levels.items(), key=lambda level: level[1]):
            text = f"{name} {fidelity:.3g}"
            left = _begin(text, _x(fidelity) - len(text) * _LETTER / 2)
            lane = next((i for i, taken in enumerate(lanes) if taken + 8 < left), len(lanes))
            lanes[lane : lane + 1] = [left + len(text) * _LETTER]
            rungs.append((text, _x(fidelity), left, lane))
        axis = _LANE * len(lanes) + 10
        marks = tuple(Mark(text, x, left, _LANE * lane + 12) for text, x, left, lane in rungs)
        order = sorted(grants, key=lambda grant: (-grant.fidelity, grant.recipient))[:MOST]
        standing = tuple(_standing(grant, axis + 38 + _LINE * i) for i, grant in enumerate(order))
        return cls(marks, axis, standing, axis + 38 + _LINE * max(len(standing), 1))


def _standing(grant: Grant, y: float) -> Mark:
    x, width = _x(grant.fidelity), len(grant.recipient) * _LETTER
    return Mark(grant.recipient, x, x + 10 if x + 10 + width < WIDTH else x - 10 - width, y)


def _x(fidelity: float) -> float:
    return round(10 + (WIDTH - 20) * fidelity, 1)


def _begin(text: str, wanted: float) -> float:
    return round(min(max(wanted, 0.0), max(WIDTH - len(text) * _LETTER, 0.0)), 1)
