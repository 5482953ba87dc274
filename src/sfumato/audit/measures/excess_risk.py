"""Excess risk: how much more often an attack succeeds on released records than on others of the same population.

In the manner of Anonymeter (Giomi et al. 2023): `(attack - control)/(1 - control)`, with Wilson's rates and intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.kernels.intervals import Interval, deviations

CONFIDENCE = 0.95


@dataclass(frozen=True)
class ExcessRisk:
    """The success of one kind of attack: on released records, on a control group, and by guessing."""

    name: str
    """What was attacked, such as a column."""
    attack: Interval
    control: Interval
    baseline: Interval
    excess: Interval
    """What remains of the success when that on the control group is taken off."""
    targets: int
    """The number of records that were attacked."""

    @property
    def is_measurable(self) -> bool:
        """Whether the attack does better than guessing, so that its success tells something."""
        return self.attack.estimate > self.baseline.estimate


def excess_risk(name: str, hits: int, control_hits: int, baseline_hits: float, targets: int) -> ExcessRisk:
    """The excess risk after as many attacks on released records as on the control group."""
    attack, control, baseline = (_rate(count, targets) for count in (hits, control_hits, baseline_hits))
    margin = max(1 - control.estimate, 1e-12)
    value = (attack.estimate - control.estimate) / margin
    reach = math.hypot(_reach(attack) / margin, _reach(control) * (attack.estimate - 1) / margin**2)
    excess = Interval(value, value - reach, value + reach).within(0.0, 1.0)
    return ExcessRisk(name, attack.within(0, 1), control.within(0, 1), baseline.within(0, 1), excess, targets)


def _rate(hits: float, targets: int) -> Interval:
    """Wilson's estimate of a success rate, which lies between the share observed and one half."""
    z = deviations(CONFIDENCE)
    total = targets + z * z
    rate = (hits + z * z / 2) / total
    reach = z / total * math.sqrt(hits * max(targets - hits, 0.0) / max(targets, 1) + z * z / 4)
    return Interval(rate, rate - reach, rate + reach)


def _reach(rate: Interval) -> float:
    return rate.high - rate.estimate
