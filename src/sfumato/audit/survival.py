"""Rare and extreme values of margin-preserving columns: how many records of a copy show them that have them.

A copy shows a value as often as the original, so the share of its holders that still show it is also the share of
those who show it that have it: the precision with which the copy singles them out. For the score of a copy of
fidelity `f`, whose correlation with that of the original is `√f`, it is a bivariate normal probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.audit.audit_input import AuditInput
from sfumato.kernels import Floats
from sfumato.kernels.bivariate_normal import lower_quadrant
from sfumato.kernels.normal import quantile
from sfumato.kernels.score_arrays import FURTHEST
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.tables.margin import Margin

EXTREME = 0.01
"""The share of records that count as the largest of a column."""

_RARE = 0.05
"""A category with a larger share of the records is not rare."""


@dataclass(frozen=True)
class Survival:
    """A rare value, or the largest ones, of a column in the best copy."""

    column: str
    values: str
    """Which values, in words."""
    share: float
    """The share of records that have one."""
    expected: float
    """The share of records showing one in the best copy that have one, by its level."""
    measured: float
    """The same, counted; NaN where no record shows one."""
    protective_fidelity: float
    """At this fidelity and below, most records that show one do not have it."""


def survival(audited: AuditInput) -> tuple[Survival, ...]:
    """The rarest value and the largest values of each margin-preserving column, in the best copy."""
    best = max(range(len(audited.copies)), key=lambda i: audited.manifests[i].fidelity)
    found = []
    for part in audited.copies[best].numbers:
        if part.copula is not None:
            fidelity = 1 / (1 + part.model.noise)
            shown, truth = part.values * fidelity**0.5, audited.truth.numbers(part.columns)
            for i, column in enumerate(part.copula.columns):
                for values, low, high in _watched(part.copula, i):
                    found.append(_survival(column, values, (low, high), fidelity, shown[:, i], truth[:, i]))
    return tuple(found)


def _watched(model: GaussianCopula, index: int) -> Iterator[tuple[str, float, float]]:
    """The rarest category with its interval of scores, or the largest numbers."""
    margin = Margin.decode(model.margins[index])
    ends = [-FURTHEST, *quantile(np.array(margin.share[:-1])).tolist(), FURTHEST]
    shares = [after - before for before, after in pairwise([0.0, *margin.share])]
    rare = [i for i in range(len(shares)) if margin.low[i] == margin.high[i] and shares[i] <= _RARE]
    if margin.values and rare:
        rarest = min(rare, key=lambda i: shares[i])
        yield str(margin.values[margin.low[rarest]]), ends[rarest], ends[rarest + 1]
    last = margin.share[-2] if len(margin.share) > 1 else 0.0
    if not margin.values and last < 1 - EXTREME / 4 and shares[-1] < 4 * EXTREME:
        yield f"the largest {1 - last:.1%}", ends[-2], FURTHEST


def _survival(
    column: str, values: str, interval: tuple[float, float], fidelity: float, shown: Floats, truth: Floats
) -> Survival:
    both = ~np.isnan(shown) & ~np.isnan(truth)
    has, shows = ((interval[0] < scores[both]) & (scores[both] <= interval[1]) for scores in (truth, shown))
    return Survival(
        column,
        values,
        share=float(has.mean()) if both.any() else float("nan"),
        expected=precision(*interval, fidelity),
        measured=float(has[shows].mean()) if shows.any() else float("nan"),
        protective_fidelity=_protective_fidelity(*interval),
    )


def precision(low: float, high: float, fidelity: float) -> float:
    """The share of records whose score is in an interval, of those whose score in a copy is in it."""
    ends = np.array([low, high])
    below = lower_quadrant(ends, ends, float(np.sqrt(fidelity)))
    alone = lower_quadrant(ends, np.array([FURTHEST]), 0.0)
    return float(np.diff(np.diff(below, axis=0), axis=1)[0, 0] / np.diff(alone[:, 0])[0])


def _protective_fidelity(low: float, high: float) -> float:
    """The fidelity at which half of the records that show a value have it, by bisection."""
    first, last = 0.0, 1.0
    for _ in range(30):
        middle = (first + last) / 2
        first, last = (middle, last) if precision(low, high, middle) < 0.5 else (first, middle)
    return first
