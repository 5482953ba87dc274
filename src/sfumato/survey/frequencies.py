"""Frequency estimation from randomised response: unbiased shares of each answer, with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SurveyError, nearest
from sfumato.kernels import Floats
from sfumato.kernels.intervals import Interval, deviations, wilson
from sfumato.survey.definition import Survey
from sfumato.survey.perturbation import Integers
from sfumato.survey.questions import Item

CONFIDENCE = 0.95
NORMAL = deviations(CONFIDENCE)
_FEWEST = 30
"""Answers of a cross table: the interval takes means of products to be normally distributed."""


@dataclass(frozen=True)
class AnswerShare:
    """The estimated share of respondents who gave an answer, with its 95 % confidence interval."""

    item: str
    answer: str
    share: Interval

    def as_dict(self) -> dict[str, Any]:
        """The share as it is written to JSON, with the interval in the fields `share`, `low` and `high`."""
        return {
            "item": self.item,
            "answer": self.answer,
            "share": self.share.estimate,
            "low": self.share.low,
            "high": self.share.high,
        }

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> AnswerShare:
        """Read what `as_dict` wrote."""
        interval = Interval(fields["share"], fields["low"], fields["high"])
        return cls(fields["item"], fields["answer"], interval)


def unbiased_indicators(codes: Integers, retention: Floats, size: int) -> Floats:
    """For each row and option, an unbiased estimate of whether the true answer is that option.

    It inverts the randomised-response channel, so its mean over rows is the share of respondents with that option.
    Every respondent counts once, at any level: respondents may choose the level by how sensitive their answer is, so
    rows at high levels must not represent respondents at low ones.
    """
    reported = codes[:, None] == np.arange(size)
    inverted: Floats = (reported - ((1 - retention) / size)[:, None]) / retention[:, None]
    return inverted


def indicators(survey: Survey, levels: Integers, rows: Integers, item: Item, codes: Sequence[int]) -> Floats:
    """For each row an unbiased estimate of whether the true answer to an item has one of some codes."""
    index = survey.items.index(item)
    retention = np.array(survey.retention)[levels, index]
    found: Floats = (np.isin(rows[:, index], list(codes)) - (1 - retention) * len(codes) / item.size) / retention
    return found


@dataclass(frozen=True)
class Estimate:
    """An unbiased estimate of a share, which noise or forged answers may carry beyond 0 or 1, and its error."""

    mean: float
    error: float
    """The standard error."""

    @property
    def interval(self) -> Interval:
        """The share with its 95 % confidence interval, both between 0 and 1.

        The interval is centred at the nearest possible share: that is never further from the truth than the estimate,
        so the interval covers the truth no less often, and it is never empty or a single point.
        """
        nearest, margin = min(max(self.mean, 0.0), 1.0), NORMAL * self.error
        return Interval(nearest, max(nearest - margin, 0.0), min(nearest + margin, 1.0))


def estimate_share(is_reported: NDArray[np.bool_], retention: Floats, size: int, options: int = 1) -> Estimate:
    """The share of respondents with one of some options, from whether each of them reported one.

    The variance is `q(1-q)/p²` per row, plus the differences between levels. `q` is shrunk to 1/2 by four rows at each
    level (Agresti and Coull 1998): without that, an answer that nobody gave yet would seem to be known exactly.
    """
    indicators = (is_reported - (1 - retention) * options / size) / retention
    mean, variance = indicators.mean(), 0.0
    for kept in np.unique(retention):
        members = retention == kept
        rate = (is_reported[members].sum() + 2) / (members.sum() + 4)
        variance += members.sum() * (rate * (1 - rate) / kept**2 + (indicators[members].mean() - mean) ** 2)
    return Estimate(float(mean), float(np.sqrt(variance) / len(is_reported)))


def frequencies(survey: Survey, levels: Integers, rows: Integers) -> list[AnswerShare]:
    """The shares of all answers to a randomised survey; of no answers, none."""
    if not len(rows):
        return []
    retention = np.array(survey.retention)[levels]
    return [
        AnswerShare(
            item.name,
            answer,
            estimate_share(np.isin(rows[:, i], codes), retention[:, i], item.size, len(codes)).interval,
        )
        for i, item in enumerate(survey.items)
        for answer, codes in item.outcomes
    ]


@dataclass(frozen=True)
class CrossTable:
    """The shares of respondents with each pair of answers to two questions."""

    first: str
    second: str
    rows: int
    cells: tuple[tuple[str, str, Interval], ...]

    def as_dict(self) -> dict[str, Any]:
        """The table as it is written to JSON."""
        cells = [
            {"first": a, "second": b, "share": one.estimate, "low": one.low, "high": one.high}
            for a, b, one in self.cells
        ]
        return {"first": self.first, "second": self.second, "answers": self.rows, "cells": cells}

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> CrossTable:
        """Read what `as_dict` wrote."""
        cells = [
            (one["first"], one["second"], Interval(one["share"], one["low"], one["high"])) for one in fields["cells"]
        ]
        return cls(fields["first"], fields["second"], fields["answers"], tuple(cells))


def cross_table(survey: Survey, levels: Integers, rows: Integers, first: str, second: str) -> CrossTable:
    """The joint shares of two items: means of the products of their unbiased indicators.

    Given the answers, the indicators are independent of each other, so that a product is unbiased too.
    """
    names = [item.name for item in survey.items]
    for name in (first, second):
        if name not in names:
            raise SurveyError(f"a cross table is of two questions of the survey; {nearest(name, names)}")
    if survey.mode != "randomised" or first == second:
        raise SurveyError("a cross table is of two different questions of a randomised survey; choose others")
    if len(rows) < _FEWEST:
        raise SurveyError(f"a cross table needs at least {_FEWEST} answers, and there are {len(rows)}; wait for more")
    one, other = (survey.items[names.index(name)] for name in (first, second))
    cells = []
    for (a, codes_a), (b, codes_b) in product(one.outcomes, other.outcomes):
        cells.append((a, b, _joint_share(survey, levels, rows, (one, codes_a), (other, codes_b)).interval))
    return CrossTable(first, second, len(rows), tuple(cells))


def _joint_share(
    survey: Survey, levels: Integers, rows: Integers, first: tuple[Item, list[int]], second: tuple[Item, list[int]]
) -> Estimate:
    """The share of respondents with both of two outcomes.

    As in `estimate_share`, four rows at each level shrink what was reported, one for each pair of reports: without
    them, a pair that nobody reported yet would seem to be known exactly.
    """
    retention, variance = np.array(survey.retention)[levels], 0.0
    indices = [survey.items.index(item) for item, _ in (first, second)]
    reports = [np.isin(rows[:, i], codes) for i, (_, codes) in zip(indices, (first, second), strict=True)]
    products = indicators(survey, levels, rows, *first) * indicators(survey, levels, rows, *second)
    total = float(products.mean())
    for level in np.unique(levels):
        members = levels == level
        kept = [retention[members][0, i] for i in indices]
        counts = np.bincount(2 * reports[0][members] + reports[1][members], minlength=4) + 1.0
        one, other = (
            (np.array([0.0, 1.0]) - (1 - p) * len(codes) / item.size) / p
            for p, (item, codes) in zip(kept, (first, second), strict=True)
        )
        outcomes = np.outer(one, other).ravel()
        share = counts / counts.sum()
        spread = float(share @ outcomes**2 - (share @ outcomes) ** 2)
        variance += float(members.sum()) * (spread + (float(products[members].mean()) - total) ** 2)
    return Estimate(total, float(np.sqrt(variance)) / len(levels))


def unperturbed_frequencies(
    name: str, outcomes: Sequence[tuple[str, Sequence[int]]], codes: Integers
) -> list[AnswerShare]:
    """The shares of answers that were sent unperturbed; of no answers, none."""
    if not len(codes):
        return []
    return [
        AnswerShare(name, answer, wilson(int(np.isin(codes, list(some)).sum()), len(codes), CONFIDENCE))
        for answer, some in outcomes
    ]
