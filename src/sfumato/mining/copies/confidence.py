"""Confidence levels of intervals: the number of standard errors that belongs to each."""

from __future__ import annotations

from sfumato.errors import MiningError
from sfumato.kernels.intervals import deviations


def critical_value(confidence: float) -> float:
    """The number of standard errors that a normal confidence interval extends to either side of its estimate."""
    if not 0 < confidence < 1:
        raise MiningError(f"a confidence level must lie between 0 and 1, got {confidence!r}; 0.95 is usual")
    return deviations(confidence)
