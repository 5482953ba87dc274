"""Risk measures with confidence intervals: means and proportions for an attack, a baseline and a control."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sfumato.kernels import Floats
from sfumato.kernels.intervals import UNKNOWN, Interval, deviations, wilson


@dataclass(frozen=True)
class Measure:
    """One risk measure: of the attack, of a guess without any copy, and of the attack against control records."""

    attack: Interval
    baseline: Interval
    control: Interval


def mean(values: Floats, confidence: float, least: float = -math.inf) -> Interval:
    """The mean of many values that are not below `least`, with its normal confidence interval."""
    if not len(values):
        return UNKNOWN
    average = float(values.mean())
    margin = deviations(confidence) * float(values.std()) / math.sqrt(len(values))
    return Interval(average, max(average - margin, least), average + margin)


def root(interval: Interval) -> Interval:
    """The square root of a mean square error."""
    return Interval(*(math.sqrt(max(end, 0.0)) for end in (interval.estimate, interval.low, interval.high)))


def proportion(hits: Any, confidence: float) -> Interval:
    """The share of hits, with Wilson's confidence interval, which also holds near 0 and 1."""
    return wilson(float(hits.sum()), len(hits), confidence) if len(hits) else UNKNOWN
