"""How far a measured number may be off."""

from __future__ import annotations

import math

from scipy.special import ndtri


def deviations(confidence: float) -> float:
    """How many standard errors an interval reaches to either side."""
    return float(ndtri((1 + confidence) / 2))


def wilson(hits: float, total: int, confidence: float) -> tuple[float, float, float]:
    """A rate, with Wilson's interval, which holds near 0 and 1 too; of nothing, it is anything."""
    if not total:
        return 0.0, 0.0, 1.0
    rate, z = hits / total, deviations(confidence)
    shrink = 1 + z * z / total
    middle = (rate + z * z / (2 * total)) / shrink
    reach = z / shrink * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    return rate, max(middle - reach, 0.0), min(middle + reach, 1.0)
