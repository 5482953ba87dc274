"""Checks of margin-preserving copies: pairs of scores must be bivariate normal with the correlation of their levels.

The score of a record and those of its copies are normal, with correlation `√(f₂/f₁)` between levels `f₁ > f₂`, and `√f`
between the original and a copy: noise that is not a point of one path gives another. Columns are compared in groups of
values, so that the counts of each group of the better one are multinomial with known probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from sfumato.audit.checks import Check
from sfumato.kernels import Floats, Rows
from sfumato.kernels.bivariate_normal import lower_quadrant
from sfumato.kernels.score_arrays import FURTHEST
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.tables.margin import Margin

MIN_EXPECTED = 20.0
"""Groups are merged until so many records are expected in each."""

_MISFIT = 0.01
"""How far the share of a group may be from that of normal scores, relative to itself: the scores of a value are made
normal within its interval by a map of few pieces."""

_GROUPS = 12
"""The most groups of values of a column."""


@dataclass(frozen=True)
class GroupedScores:
    """One score of one copy, or of the original, in groups of values."""

    name: str
    """The name of the copy."""
    score: str
    fidelity: float
    """1 for the original."""
    ends: Floats
    """The ends of the groups."""
    groups: Rows
    """The group of each record; -1 where the value is missing."""

    @classmethod
    def of(cls, name: str, fidelity: float, scores: Floats, model: GaussianCopula) -> list[GroupedScores]:
        """All scores of a copy or of the original, from the mean scores of its values."""
        margins = [Margin.decode(data) for data in model.margins]
        ends = [margin.groups(_GROUPS)[1] for margin in margins]
        ends += [np.array([-FURTHEST, m.missing_end, FURTHEST]) for m in margins if m.missing is not None]
        groups = [
            np.where(np.isnan(one), -1, np.searchsorted(e[1:-1], one)) for e, one in zip(ends, scores.T, strict=True)
        ]
        return [cls(name, score, fidelity, *rest) for score, *rest in zip(model.scores, ends, groups, strict=True)]


def copula_checks(original: GroupedScores, copies: Sequence[GroupedScores]) -> Iterator[Check]:
    """All checks of the copies of one score on one path."""
    ordered = sorted(copies, key=lambda one: -one.fidelity)
    for copy in ordered:
        fault = "its values do not follow those of the original as closely as stated"
        yield Check(f"{copy.name}, {copy.score}", fault, _pair_p(original, copy), (copy.name,))
    for first, second in combinations(ordered, 2):
        fault = "the second does not follow from the first by noise of its own, so that together they disclose more"
        subject = f"{first.name} and {second.name}, {first.score}"
        yield Check(subject, fault, _pair_p(first, second), (first.name, second.name))


def _pair_p(first: GroupedScores, second: GroupedScores) -> float:
    """Pearson's test on the table of both, given the groups of the first.

    Where values of the one are missing, the other is compared in the records that it has: whether a value is missing is
    drawn by another score, so that the values of those records still have the same distribution.
    """
    both = (first.groups >= 0) & (second.groups >= 0)
    if first.fidelity == second.fidelity:
        return float((first.groups == second.groups).all())
    counts = np.zeros((len(first.ends) - 1, len(second.ends) - 1))
    np.add.at(counts, (first.groups[both], second.groups[both]), 1)
    below = lower_quadrant(first.ends, second.ends, float(np.sqrt(second.fidelity / first.fidelity)))
    cells = np.maximum(np.diff(np.diff(below, axis=0), axis=1), 0.0)
    statistic, freedom = 0.0, 0
    for row, shares in zip(counts, cells / np.maximum(cells.sum(axis=1, keepdims=True), 1e-300), strict=True):
        found, expected = _merged(row, shares * row.sum())
        if len(found) > 1:
            statistic += float(((found - expected) ** 2 / expected).sum())
            freedom += len(found) - 1
    return float(stats.ncx2.sf(statistic, freedom, _MISFIT**2 * both.sum())) if freedom else 1.0


def _merged(found: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Neighbouring groups together, until enough records are expected in each."""
    sums: list[tuple[float, float]] = []
    count = hope = 0.0
    for one, other in zip(found, expected, strict=True):
        count, hope = count + one, hope + other
        if hope >= MIN_EXPECTED:
            sums.append((count, hope))
            count = hope = 0.0
    if sums:
        sums[-1] = (sums[-1][0] + count, sums[-1][1] + hope)
    return np.array([one for one, _ in sums]), np.array([other for _, other in sums])
