"""The ladder of a dataset as a picture: levels on a line, and recipients standing on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.vault.grants import Grant

_STEP = 22
"""Height of a recipient's line."""


@dataclass(frozen=True)
class Standing:
    """A recipient in the picture."""

    name: str
    x: float
    y: float
    end: str
    """On which side of the dot the name stands."""


@dataclass(frozen=True)
class Rung:
    """A declared level in the picture."""

    name: str
    fidelity: float
    x: float
    end: str


@dataclass(frozen=True)
class Ladder:
    """Everything's place, in units of a drawing that is 640 wide."""

    rungs: tuple[Rung, ...]
    standing: tuple[Standing, ...]
    height: float

    @classmethod
    def of(cls, levels: dict[str, float], grants: Sequence[Grant]) -> Ladder:
        """Most trusted to the right; a line for each recipient, so that names never cover each other."""
        rungs = tuple(Rung(name, value, _x(value), _end(value)) for name, value in levels.items())
        order = sorted(grants, key=lambda grant: (-grant.fidelity, grant.recipient))[:40]
        standing = tuple(
            Standing(grant.recipient, _x(grant.fidelity), 70 + _STEP * i, _end(grant.fidelity))
            for i, grant in enumerate(order)
        )
        return cls(rungs, standing, 70 + _STEP * max(len(standing), 1) + 8)


def _x(fidelity: float) -> float:
    return round(20 + 600 * fidelity, 1)


def _end(fidelity: float) -> str:
    return "end" if fidelity > 0.5 else "start"
