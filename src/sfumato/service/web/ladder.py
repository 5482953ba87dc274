"""Layout of the ladder figure: the levels of a dataset on a fidelity axis, with the recipients below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.vault.grants import Grant

WIDTH = 400
"""Width of the figure; about that of a phone in CSS pixels, so that its text is legible there."""

_CHARACTER_WIDTH = 7.0
"""Maximum width of a character."""

_LEVEL_HEIGHT, _RECIPIENT_HEIGHT = 16, 20
"""Line heights of the labels of levels and of recipients."""

MAX_RECIPIENTS = 40
"""Maximum number of recipients in the figure."""


@dataclass(frozen=True)
class Label:
    """A label in the figure."""

    name: str
    x: float
    """Position on the axis that the label belongs to."""
    left: float
    """Left end of the label's text."""
    y: float


@dataclass(frozen=True)
class LadderFigure:
    """The labels of the figure, the height of its axis and its total height."""

    levels: tuple[Label, ...]
    axis: float
    recipients: tuple[Label, ...]
    height: float

    @classmethod
    def of(cls, levels: dict[str, float], grants: Sequence[Grant]) -> LadderFigure:
        """Lay out the figure, most trusted to the right; labels of levels that would overlap get separate lines."""
        line_ends: list[float] = []
        rungs = []
        for name, fidelity in sorted(levels.items(), key=lambda level: level[1]):
            text = f"{name} {fidelity:.3g}"
            left = _clamp(text, _x(fidelity) - len(text) * _CHARACTER_WIDTH / 2)
            line = next((i for i, end in enumerate(line_ends) if end + 8 < left), len(line_ends))
            line_ends[line : line + 1] = [left + len(text) * _CHARACTER_WIDTH]
            rungs.append((text, _x(fidelity), left, line))
        axis = _LEVEL_HEIGHT * len(line_ends) + 10
        labels = tuple(Label(text, x, left, _LEVEL_HEIGHT * line + 12) for text, x, left, line in rungs)
        order = sorted(grants, key=lambda grant: (-grant.fidelity, grant.recipient))[:MAX_RECIPIENTS]
        recipients = tuple(_recipient(grant, axis + 38 + _RECIPIENT_HEIGHT * i) for i, grant in enumerate(order))
        return cls(labels, axis, recipients, axis + 38 + _RECIPIENT_HEIGHT * max(len(recipients), 1))


def _recipient(grant: Grant, y: float) -> Label:
    x, width = _x(grant.fidelity), len(grant.recipient) * _CHARACTER_WIDTH
    return Label(grant.recipient, x, x + 10 if x + 10 + width < WIDTH else x - 10 - width, y)


def _x(fidelity: float) -> float:
    return round(10 + (WIDTH - 20) * fidelity, 1)


def _clamp(text: str, left: float) -> float:
    """The left end of a text, moved so that the text is inside the figure."""
    return round(min(max(left, 0.0), max(WIDTH - len(text) * _CHARACTER_WIDTH, 0.0)), 1)
