"""Numbers with their uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from sfumato.kernels import Floats


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
    reach = _deviations(confidence) * float(values.std()) / math.sqrt(len(values))
    return Figure(middle, max(middle - reach, least), middle + reach)


def root(figure: Figure) -> Figure:
    """The square root of a mean square."""
    return Figure(*(math.sqrt(max(end, 0.0)) for end in (figure.value, figure.low, figure.high)))


def proportion(hits: Any, confidence: float) -> Figure:
    """A rate, with Wilson's interval, which holds near 0 and 1 too."""
    total = len(hits)
    if not total:
        return Figure(math.nan, math.nan, math.nan)
    rate, z = float(hits.mean()), _deviations(confidence)
    shrink = 1 + z * z / total
    middle = (rate + z * z / (2 * total)) / shrink
    reach = z / shrink * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    return Figure(rate, max(middle - reach, 0.0), min(middle + reach, 1.0))


def _deviations(confidence: float) -> float:
    return float(ndtri((1 + confidence) / 2))
