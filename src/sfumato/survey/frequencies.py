"""Frequency estimation from randomised response: unbiased shares of each answer, with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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


def frequencies(survey: Survey, levels: Integers, rows: Integers) -> list[AnswerShare]:
    """The shares of all answers to a randomised survey."""
    retention = np.array(survey.retention)
    shares: list[AnswerShare] = []
    for index, item in enumerate(survey.items):
        intervals = _intervals(item, levels, rows[:, index], retention[:, index])
        shares += reported(
            item, [AnswerShare(item.name, label, one) for label, one in zip(item.labels, intervals, strict=True)]
        )
    return shares


def _intervals(item: Item, levels: Integers, codes: Integers, retention: Floats) -> list[Interval]:
    """The share of each option of one item; without rows it is anything between 0 and 1."""
    if not len(codes):
        return [Interval(1 / item.size, 0.0, 1.0)] * item.size
    means = unbiased_indicators(codes, retention[levels], item.size).mean(0)
    margins = NORMAL * _standard_errors(codes, levels, retention, means)
    return [
        Interval(float(mean), float(mean - margin), float(mean + margin)).within(0.0, 1.0)
        for mean, margin in zip(means, margins, strict=True)
    ]


def _standard_errors(codes: Integers, levels: Integers, retention: Floats, means: Floats) -> Floats:
    """The standard error of each mean: `q(1-q)/p²` per row, plus the differences between levels.

    `q` is shrunk to 1/2 by four rows at each level (Agresti and Coull 1998): without that, an answer that nobody gave
    yet would seem to be known exactly.
    """
    size = len(means)
    variance = np.zeros(size)
    for level in np.unique(levels):
        members = codes[levels == level]
        share = (np.bincount(members, minlength=size) + 2) / (len(members) + 4)
        mean = unbiased_indicators(members, np.full(len(members), retention[level]), size).mean(0)
        variance += len(members) * (share * (1 - share) / retention[level] ** 2 + (mean - means) ** 2)
    errors: Floats = np.sqrt(variance) / len(codes)
    return errors


def reported(item: Item, shares: list[AnswerShare]) -> list[AnswerShare]:
    """The shares of an item that results list: for an option of a multiple choice, only that it was chosen."""
    return shares[1:] if item.option else shares


def unperturbed_frequencies(name: str, labels: Sequence[str], codes: Integers) -> list[AnswerShare]:
    """The shares of answers that were sent unperturbed."""
    return [
        AnswerShare(name, label, wilson(int((codes == index).sum()), len(codes), CONFIDENCE))
        for index, label in enumerate(labels)
    ]
