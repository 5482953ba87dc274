"""Confidence intervals: an estimate with its lower and upper confidence limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float

    def scaled(self, factor: float) -> Interval:
        """The same interval in other units."""
        return Interval(self.estimate * factor, self.low * factor, self.high * factor)

    def within(self, low: float, high: float) -> Interval:
        """The same interval, where nothing lies beyond these ends."""
        return Interval(*(min(max(end, low), high) for end in (self.estimate, self.low, self.high)))

    def __str__(self) -> str:
        return f"{self.estimate:.6g} ({self.low:.6g} to {self.high:.6g})"


UNKNOWN = Interval(math.nan, math.nan, math.nan)
"""The interval of something that nothing is known about."""


def deviations(confidence: float) -> float:
    """The number of standard errors that an interval reaches to either side."""
    return float(ndtri((1 + confidence) / 2))


def wilson(hits: float, total: float, confidence: float) -> Interval:
    """A proportion with Wilson's interval, which holds near 0 and 1 too; of nothing, it is from 0 to 1."""
    if not total:
        return Interval(0.0, 0.0, 1.0)
    rate, z = hits / total, deviations(confidence)
    shrink = 1 + z * z / total
    middle = (rate + z * z / (2 * total)) / shrink
    reach = z / shrink * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    return Interval(rate, max(middle - reach, 0.0), min(middle + reach, 1.0))
