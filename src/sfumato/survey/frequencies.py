"""How people answered, from blurred rows, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.intervals import deviations, wilson
from sfumato.survey.definition import Survey
from sfumato.survey.perturbation import Integers
from sfumato.survey.questions import Item

CONFIDENCE = 0.95
NORMAL = deviations(CONFIDENCE)


@dataclass(frozen=True)
class Share:
    """The share of people who gave an answer, and the 95 % interval around it."""

    item: str
    answer: str
    share: float
    low: float
    high: float


def weights(codes: Integers, retention: Floats, size: int) -> Floats:
    """For each row and option, a number whose mean is the share of people with that option: the inverted channel.

    Every respondent counts once, whatever the level they chose: people may choose it by what they have to hide, so
    rows of trusting people must not stand for careful ones.
    """
    told = codes[:, None] == np.arange(size)
    inverted: Floats = (told - ((1 - retention) / size)[:, None]) / retention[:, None]
    return inverted


def frequencies(survey: Survey, levels: Integers, rows: Integers) -> list[Share]:
    """The shares of all answers to a randomised survey."""
    retention = np.array(survey.retention)
    out: list[Share] = []
    for index, item in enumerate(survey.items):
        if not len(rows):
            out += told(item, [Share(item.name, label, 1 / item.size, 0.0, 1.0) for label in item.labels])
            continue
        means = weights(rows[:, index], retention[levels, index], item.size).mean(0)
        around = NORMAL * _deviation(rows[:, index], levels, retention[:, index], means)
        shares = [
            Share(item.name, label, _unit(mean), _unit(mean - half), _unit(mean + half))
            for label, mean, half in zip(item.labels, means, around, strict=True)
        ]
        out += told(item, shares)
    return out


def _deviation(codes: Integers, levels: Integers, retention: Floats, means: Floats) -> Floats:
    """The standard error of the mean weight: `q(1-q)/p²` a row, and how far people at each level are from all.

    `q` is drawn to 1/2 by four rows at each level (Agresti and Coull 1998): without that, an answer that nobody gave
    yet would seem to be known exactly.
    """
    size = len(means)
    variance = np.zeros(size)
    for level in np.unique(levels):
        some = codes[levels == level]
        share = (np.bincount(some, minlength=size) + 2) / (len(some) + 4)
        here = weights(some, np.full(len(some), retention[level]), size).mean(0)
        variance += len(some) * (share * (1 - share) / retention[level] ** 2 + (here - means) ** 2)
    deviation: Floats = np.sqrt(variance) / len(codes)
    return deviation


def told(item: Item, shares: list[Share]) -> list[Share]:
    """Of an option that is ticked or not, only that it is."""
    return shares[1:] if item.option else shares


def plain_frequencies(name: str, labels: Sequence[str], codes: Integers) -> list[Share]:
    """The shares of answers that were not blurred."""
    return [
        Share(name, label, *wilson(int((codes == at).sum()), len(codes), CONFIDENCE)) for at, label in enumerate(labels)
    ]


def _unit(value: float) -> float:
    return float(min(max(value, 0.0), 1.0))
