"""Rows of answers as they are kept and sent: checked, and written as one letter for each item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import binom

from sfumato.errors import SurveyError
from sfumato.survey.definition import Survey
from sfumato.survey.perturbation import Integers

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
_TABLE = np.full(256, 255, np.uint8)
_TABLE[np.frombuffer(_LETTERS.encode(), np.uint8)] = np.arange(64)

UNLIKELY = 1e-9
"""A row with so many ones that fewer than this share of honest rows have them is refused."""


@dataclass(frozen=True)
class Submission:
    """One blurred answer as a device sends it."""

    ticket: str
    level: int
    """The stop of the slider, or the number of directions that were followed."""
    label: int
    row: tuple[int, ...]


def written(row: Sequence[int]) -> str:
    """A row as text."""
    return "".join(_LETTERS[value] for value in row)


def read(texts: Sequence[str], width: int) -> Integers:
    """Rows from text."""
    found = np.frombuffer("".join(texts).encode(), np.uint8)
    return _TABLE[found].astype(np.int64).reshape(len(texts), width)


def check_randomised(survey: Survey, level: int, row: Sequence[int]) -> None:
    """Refuse what no device sends to a randomised survey."""
    if not 0 <= level < len(survey.levels):
        raise SurveyError(f"the level must be one of the survey's {len(survey.levels)}, got {level}")
    _check_codes(survey, row)


def check_clear(survey: Survey, label: int, row: Sequence[int]) -> None:
    """Refuse what no device sends unblurred."""
    _check_label(survey, label)
    _check_codes(survey, row)


def check_guided(survey: Survey, label: int, row: Sequence[int]) -> None:
    """Refuse what no device sends to a guided survey."""
    _check_label(survey, label)
    if len(row) != survey.width or not set(row) <= {0, 1}:
        raise SurveyError(f"a row must have {survey.width} bits, each 0 or 1")
    most = most_ones(len(survey.items), survey.width, survey.guided.floor)
    if sum(row) > most:
        raise SurveyError(f"a row has at most {most} ones under this survey's law, got {sum(row)}")


@cache
def most_ones(items: int, width: int, floor: float) -> int:
    """Ones that an honest row does not exceed.

    `Σ t~² <= |t|²`, the number of items, so the mean of the ones is at most `(1-2f) n + f d`; and no sum of independent
    bits of that mean has a heavier tail than the binomial one (Hoeffding 1956).
    """
    mean = min((1 - 2 * floor) * items + floor * width, width)
    return min(width, max(int(binom.isf(UNLIKELY, width, mean / width)), int(mean) + 1))


def _check_codes(survey: Survey, row: Sequence[int]) -> None:
    if len(row) != len(survey.sizes):
        raise SurveyError(f"a row must have {len(survey.sizes)} answers, got {len(row)}")
    for value, item in zip(row, survey.items, strict=True):
        if not 0 <= value < item.size:
            raise SurveyError(f"the answer to {item.name} must lie between 0 and {item.size - 1}, got {value}")


def _check_label(survey: Survey, label: int) -> None:
    if not 0 <= label < len(survey.classes):
        raise SurveyError(f"the class must lie between 0 and {len(survey.classes) - 1}, got {label}")
