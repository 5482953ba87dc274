"""Frequency estimation from randomised response: unbiased shares of each answer, with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import Floats
from sfumato.kernels.intervals import Interval, deviations, wilson
from sfumato.survey.definition import Survey
from sfumato.survey.perturbation import Integers
from sfumato.survey.questions import Item

CONFIDENCE = 0.95
NORMAL = deviations(CONFIDENCE)


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


def estimate_share(is_reported: NDArray[np.bool_], retention: Floats, size: int) -> Estimate:
    """The share of respondents with an option, from whether each of them reported it.

    The variance is `q(1-q)/p²` per row, plus the differences between levels. `q` is shrunk to 1/2 by four rows at each
    level (Agresti and Coull 1998): without that, an answer that nobody gave yet would seem to be known exactly.
    """
    indicators = (is_reported - (1 - retention) / size) / retention
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
    shares: list[AnswerShare] = []
    for index, item in enumerate(survey.items):
        codes = rows[:, index]
        found = [estimate_share(codes == code, retention[:, index], item.size) for code in range(item.size)]
        named = zip(item.labels, found, strict=True)
        shares += reported(item, [AnswerShare(item.name, label, one.interval) for label, one in named])
    return shares


def reported(item: Item, shares: list[AnswerShare]) -> list[AnswerShare]:
    """The shares of an item that results list: for an option of a multiple choice, only that it was chosen."""
    return shares[1:] if item.option else shares


def unperturbed_frequencies(name: str, labels: Sequence[str], codes: Integers) -> list[AnswerShare]:
    """The shares of answers that were sent unperturbed; of no answers, none."""
    if not len(codes):
        return []
    return [
        AnswerShare(name, label, wilson(int((codes == index).sum()), len(codes), CONFIDENCE))
        for index, label in enumerate(labels)
    ]
