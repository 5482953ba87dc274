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


def ratio(values: Floats, units: Floats, confidence: float) -> Interval:
    """The mean of values that are not negative, in that of units of the same records, with its confidence interval.

    By the linearised ratio: where few records have most of both (rare categories, heavy tails), each mean varies by far
    more than what one says about the other. Its lower end is not above Wilson's for so many records as have most of the
    units: a handful, none of which was recovered, says little about the next draw of noise.
    """
    unit = float(units.mean()) if len(units) else 0.0
    if unit <= 0:
        return mean(values, confidence, least=0.0)
    share = float(values.mean()) / unit
    found = mean((values - share * units) / unit + share, confidence, least=0.0)
    scaled = units / unit
    carriers = len(units) / float((scaled * scaled).mean())
    low = wilson(min(share, 1.0) * carriers, carriers, confidence).low
    return Interval(share, min(found.low, low), found.high)


def root(interval: Interval) -> Interval:
    """The square root of a mean square error."""
    return Interval(*(math.sqrt(max(end, 0.0)) for end in (interval.estimate, interval.low, interval.high)))


def proportion(hits: Any, confidence: float) -> Interval:
    """The share of hits, with Wilson's confidence interval, which also holds near 0 and 1."""
    return wilson(float(hits.sum()), len(hits), confidence) if len(hits) else UNKNOWN
