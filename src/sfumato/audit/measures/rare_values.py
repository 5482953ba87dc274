"""Rare values: records that the best attack can name with confidence as having a rare or extreme value.

Overall accuracy hides them: where one record in a hundred has a value, an attack may be wrong about most records and
still name many of those few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats, Mask
from sfumato.kernels.intervals import wilson

RARE = 0.05
"""A value of at most this share of the records is rare."""
PRECISION = 0.8
"""Records are named with confidence if, with 95 % confidence, at least this share of them has the value."""
FEWEST = 10
"""Fewer records than this are not judged."""
_TAIL = 0.01
_SPIKE = 0.5
"""A value of more than this share of the records is a spike; the others are compared with it."""
_STEPS = 20


@dataclass(frozen=True)
class RareValue:
    """A rare value, and how many records the attacker can name that have it."""

    column: str
    values: str
    """The value, or the range of values."""
    share: float
    """The share of records that have it."""
    named: int
    """The most records that can be named with confidence."""
    precision: float
    """The share of those that have the value."""
    found: float
    """The share of all records with the value that are among those named."""


def rare_numbers(column: str, truth: Floats, estimate: Floats, amount: str = ".4g") -> list[RareValue]:
    """The largest and the smallest values of a column, and all values off its spike, if it has one."""
    present = ~np.isnan(truth) & ~np.isnan(estimate)
    truth, estimate = truth[present], estimate[present]
    if len(truth) < 10 * FEWEST:
        return []
    groups = _groups(truth, estimate, amount)
    found = (_named(column, label, has, score) for label, has, score in groups)
    return [one for one in found if one is not None]


def _groups(truth: Floats, estimate: Floats, amount: str) -> Iterator[tuple[str, Mask, Floats]]:
    """A label, the records that have the values, and how much an estimate speaks for them."""
    low, high = np.quantile(truth, [_TAIL, 1 - _TAIL])
    values, counts = np.unique(truth, return_counts=True)
    spike = float(values[counts.argmax()])
    if counts.max() > _SPIKE * len(truth):
        yield f"other than {spike:{amount}}", truth != spike, np.abs(estimate - spike)
    if high > spike or counts.max() <= _SPIKE * len(truth):
        yield f"at least {high:{amount}}", truth >= high, estimate
    if low < spike or counts.max() <= _SPIKE * len(truth):
        yield f"at most {low:{amount}}", truth <= low, -estimate


def rare_category(column: str, value: str, has: Mask, probability: Floats) -> RareValue | None:
    """A category, by the posterior probability that the attacker gives to it."""
    return _named(column, value, has, probability)


def _named(column: str, values: str, has: Mask, score: Floats) -> RareValue | None:
    """The largest number of records with the highest scores of which enough have the value."""
    share, members = float(has.mean()), int(has.sum())
    if share > RARE or members < FEWEST:
        return None
    hits = np.cumsum(has[np.argsort(-score, kind="stable")])
    best = (0, 0.0, 0.0)
    for count in _counts(members, len(has)):
        right = int(hits[count - 1])
        if wilson(right, count, 0.95).low >= PRECISION:
            best = count, right / count, right / members
    return RareValue(column, values, share, *best)


def _counts(members: int, records: int) -> Sequence[int]:
    """How many records may be named: from a few to all that have the value."""
    most = min(members, records)
    return sorted({max(FEWEST, round(most * (i + 1) / _STEPS)) for i in range(_STEPS)} & set(range(1, records + 1)))
