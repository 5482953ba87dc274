"""Attribute inference: one attribute of a person, read off the record of a copy that is nearest in all others.

In the manner of Anonymeter: a category must be the true one, a number within 5 % of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.audit.measures.excess_risk import ExcessRisk, excess_risk
from sfumato.audit.measures.mixed_table import MixedTable, distances, total_distance
from sfumato.kernels import Floats, Mask

TOLERANCE = 0.05
"""How far a number may be from the true one, as a share of the guess."""


def attribute_inference(
    targets: MixedTable, candidates: MixedTable, control: MixedTable, known: Sequence[str] | None = None
) -> list[ExcessRisk]:
    """The risk of each column, where all others of a person are known, or those named, as from a public table.

    Targets and control have as many records.
    """
    rng = np.random.default_rng(0)
    used = None if known is None else [targets.columns.index(name) for name in known]
    totals = [total_distance(some, candidates, used) for some in (targets, control)]
    risks = []
    for column, name in enumerate(targets.columns):
        if used is not None and column in used:
            continue
        hits = [
            int(_guessed(some, candidates, column, _others(some, candidates, column, total, used)).sum())
            for some, total in zip((targets, control), totals, strict=True)
        ]
        anyone = candidates.values[rng.integers(len(candidates), size=len(targets)), column]
        number = bool(targets.is_number[column])
        baseline = int(is_correct(anyone, targets.values[:, column], number=number).sum())
        risks.append(excess_risk(name, hits[0], hits[1], baseline, len(targets)))
    return risks


def _others(some: MixedTable, candidates: MixedTable, column: int, total: Floats, used: Sequence[int] | None) -> Floats:
    """The distances in what is known, without the column that is inferred."""
    return total - distances(some, candidates, column) if used is None else total


def _guessed(some: MixedTable, candidates: MixedTable, column: int, others: Floats) -> Mask:
    """Whether the value of the nearest record is that of the person."""
    guesses = candidates.values[others.argmin(axis=1), column]
    return is_correct(guesses, some.values[:, column], number=bool(some.is_number[column]))


def is_correct(guesses: Floats, secrets: Floats, *, number: bool) -> Mask:
    """Whether guesses count as right; a missing value is guessed by a missing one."""
    both_missing = np.isnan(guesses) & np.isnan(secrets)
    if not number:
        right: Mask = both_missing | (guesses == secrets)
        return right
    near: Mask = both_missing | (np.abs(guesses - secrets) <= TOLERANCE * np.abs(guesses) + 1e-12)
    return near
