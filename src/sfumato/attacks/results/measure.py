"""Numbers with their uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sfumato.kernels import Floats
from sfumato.kernels.intervals import deviations, wilson


@dataclass(frozen=True)
class Figure:
    """A measured number and its confidence interval."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Figure:
        """In other units."""
        return Figure(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True)
class Measured:
    """What an attack reached, what a guess without any copy reaches, and what the attack reaches on a control."""

    attack: Figure
    baseline: Figure
    control: Figure


def mean(values: Floats, confidence: float, least: float = -math.inf) -> Figure:
    """The mean of many values that are not below `least`, with its normal interval."""
    if not len(values):
        return Figure(math.nan, math.nan, math.nan)
    middle = float(values.mean())
    reach = deviations(confidence) * float(values.std()) / math.sqrt(len(values))
    return Figure(middle, max(middle - reach, least), middle + reach)


def root(figure: Figure) -> Figure:
    """The square root of a mean square."""
    return Figure(*(math.sqrt(max(end, 0.0)) for end in (figure.value, figure.low, figure.high)))


def proportion(hits: Any, confidence: float) -> Figure:
    """A rate, with Wilson's interval, which holds near 0 and 1 too."""
    if not len(hits):
        return Figure(math.nan, math.nan, math.nan)
    return Figure(*wilson(float(hits.sum()), len(hits), confidence))
