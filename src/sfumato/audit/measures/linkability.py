"""Linkability: a person's record found in a copy by what somebody knows of that person."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.audit.measures.excess_risk import ExcessRisk, excess_risk
from sfumato.audit.measures.mixed_table import MixedTable, total_distance
from sfumato.kernels import Floats, Rows
from sfumato.kernels.intervals import Interval, wilson

CONFIDENCE = 0.95


def linkability(targets: MixedTable, candidates: MixedTable, control: MixedTable, neighbours: int = 1) -> ExcessRisk:
    """Whether two halves of a person's attributes lead to the same record of a copy, in the manner of Anonymeter.

    Args:
        targets: original records that were released.
        candidates: the copy.
        control: as many original records that were not.
        neighbours: how many records of the copy are considered for each half.

    """
    halves = [range(0, len(targets.columns), 2), range(1, len(targets.columns), 2)]
    hits, control_hits = (_linked(some, candidates, halves, neighbours) for some in (targets, control))
    baseline = min(neighbours**2 / max(len(candidates), 1), 1.0) * len(targets)
    return excess_risk("two halves of the attributes", hits, control_hits, baseline, len(targets))


def _linked(some: MixedTable, candidates: MixedTable, halves: Sequence[Sequence[int]], neighbours: int) -> int:
    """The number of records whose two halves have a nearest neighbour in common."""
    first, second = (_nearest(total_distance(some, candidates, half), neighbours) for half in halves)
    return int((first[:, :, None] == second[:, None, :]).any(axis=(1, 2)).sum())


def _nearest(found: Floats, neighbours: int) -> Rows:
    if neighbours == 1:
        single: Rows = found.argmin(axis=1)[:, None]
        return single
    nearest: Rows = np.argpartition(found, min(neighbours, found.shape[1] - 1), axis=1)[:, :neighbours]
    return nearest


def record_linkage(targets: MixedTable, candidates: MixedTable, own: Rows, weights: Floats | None = None) -> Interval:
    """The share of records of which the nearest record of a copy is their own.

    Args:
        targets: original records, all of whose values are known to the attacker.
        candidates: the copy.
        own: the row of each target in the copy.
        weights: a matrix that the numbers are multiplied by, such as that which makes their noise uncorrelated and of
            variance 1 (Mahalanobis distance); by default distances are Gower's.

    """
    if not len(targets):
        return wilson(0, 0, CONFIDENCE)
    if weights is None:
        found = total_distance(targets, candidates)
    else:
        categories = np.flatnonzero(~targets.is_number).tolist()
        found = _squared_distances(_numbers(targets) @ weights, _numbers(candidates) @ weights)
        found += _WEIGHT_OF_CATEGORIES * total_distance(targets, candidates, categories)
    return wilson(float((found.argmin(axis=1) == own).sum()), len(targets), CONFIDENCE)


_WEIGHT_OF_CATEGORIES = 4.0
"""What a different category counts beside squared standardised distances: as two standard deviations."""


def _numbers(table: MixedTable) -> Floats:
    values: Floats = np.nan_to_num(table.values[:, table.is_number])
    return values


def _squared_distances(first: Floats, second: Floats) -> Floats:
    found: Floats = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
    return found
