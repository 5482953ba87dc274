"""Answers with how far off they may be."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import MiningError
from sfumato.kernels.intervals import deviations


@dataclass(frozen=True)
class Interval:
    """An estimate, and between which ends the truth lies."""

    estimate: float
    low: float
    high: float

    def within(self, low: float, high: float) -> Interval:
        """The same, where nothing lies beyond these ends."""
        return Interval(*(min(max(end, low), high) for end in (self.estimate, self.low, self.high)))

    def __str__(self) -> str:
        return f"{self.estimate:.6g} ({self.low:.6g} to {self.high:.6g})"


def half_width(confidence: float) -> float:
    """How many standard errors an interval reaches to either side."""
    if not 0 < confidence < 1:
        raise MiningError(f"a confidence must lie between 0 and 1, got {confidence!r}; 0.95 is usual")
    return deviations(confidence)
