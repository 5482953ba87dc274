"""Membership inference: whether a person's record was in the table, by how near the nearest record of a copy is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.audit.measures.mixed_table import MixedTable, total_distance
from sfumato.kernels import Floats
from sfumato.kernels.intervals import Interval, deviations

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Membership:
    """How well members are told from others of the same population: 0.5 is guessing, 1 is certain."""

    auc: Interval
    """The probability that a member is nearer to the copy than somebody else."""
    advantage: float
    """The largest difference of the shares of members and of others that are called members (Yeom et al. 2018)."""


def membership_inference(members: MixedTable, candidates: MixedTable, control: MixedTable) -> Membership:
    """The attack on members and on a control group, all of whose values are known to the attacker."""
    near, far = (total_distance(some, candidates).min(axis=1) for some in (members, control))
    points = np.sort(np.concatenate([near, far]))
    gap = _cumulative(near, points) - _cumulative(far, points)
    return Membership(_auc(near, far), float(max(gap.max(initial=0.0), 0.0)))


def _cumulative(values: Floats, points: Floats) -> Floats:
    return np.searchsorted(np.sort(values), points, side="right") / max(len(values), 1)


def _auc(near: Floats, far: Floats) -> Interval:
    """The area under the ROC curve, with the interval of Hanley and McNeil (1982)."""
    m, n = len(near), len(far)
    if not m or not n:
        return Interval(0.5, 0.0, 1.0)
    ordered = np.sort(far)
    below, up_to = np.searchsorted(ordered, near, "left"), np.searchsorted(ordered, near, "right")
    auc = float((n - (below + up_to) / 2).sum() / (m * n))
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = (auc * (1 - auc) + (m - 1) * (q1 - auc**2) + (n - 1) * (q2 - auc**2)) / (m * n)
    reach = deviations(CONFIDENCE) * math.sqrt(max(variance, 0.0))
    return Interval(auc, auc - reach, auc + reach).within(0.0, 1.0)
