"""Confidence levels of intervals: the number of standard errors that belongs to each."""

from __future__ import annotations

import math

from sfumato.errors import MiningError
from sfumato.kernels.intervals import deviations


def critical_value(confidence: float, design_effect: float = 1.0) -> float:
    """The number of standard errors that a normal confidence interval extends to either side of its estimate.

    Args:
        confidence: the confidence level.
        design_effect: the variance of the estimate in units of that with noise of its own for each row, at most: rows
            of one entity share some of it.

    """
    if not 0 < confidence < 1:
        raise MiningError(f"a confidence level must lie between 0 and 1, got {confidence!r}; 0.95 is usual")
    return deviations(confidence) * math.sqrt(design_effect)
