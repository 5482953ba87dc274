"""Rows of answers as they are sent and stored: validation, and serialisation as one character per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import binom

from sfumato.errors import SurveyError
from sfumato.survey.definition import Survey
from sfumato.survey.perturbation import Integers

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
_CODES = np.full(256, 255, np.uint8)
_CODES[np.frombuffer(_ALPHABET.encode(), np.uint8)] = np.arange(64)

FALSE_ALARM_RATE = 1e-9
"""The probability with which a row of an honest device is refused for having too many ones."""


@dataclass(frozen=True)
class Submission:
    """One answer as a device sends it."""

    ticket: str
    level: int
    """The index of the privacy level that was chosen, or the number of directions that were followed."""
    label: int
    row: tuple[int, ...]


def to_text(row: Sequence[int]) -> str:
    """A row as text, one character per value."""
    return "".join(_ALPHABET[value] for value in row)


def from_text(texts: Sequence[str], width: int) -> Integers:
    """Rows from the texts that `to_text` wrote."""
    characters = np.frombuffer("".join(texts).encode(), np.uint8)
    return _CODES[characters].astype(np.int64).reshape(len(texts), width)


def check_randomised(survey: Survey, level: int, row: Sequence[int]) -> None:
    """Refuse a row that no device sends to a randomised survey."""
    if not 0 <= level < len(survey.levels):
        raise SurveyError(f"the level must be one of the survey's {len(survey.levels)}, got {level}")
    _check_codes(survey, row)


def check_unperturbed(survey: Survey, label: int, row: Sequence[int]) -> None:
    """Refuse an unperturbed row that no device sends."""
    _check_label(survey, label)
    _check_codes(survey, row)


def check_guided(survey: Survey, label: int, row: Sequence[int]) -> None:
    """Refuse a row that no device sends to a guided survey."""
    _check_label(survey, label)
    if len(row) != survey.width or not set(row) <= {0, 1}:
        raise SurveyError(f"a row must have {survey.width} bits, each 0 or 1")
    limit = max_ones(len(survey.items), survey.width, survey.guided.floor)
    if sum(row) > limit:
        raise SurveyError(f"a row must have at most {limit} ones in this survey, got {sum(row)}")


@cache
def max_ones(items: int, width: int, floor: float) -> int:
    """The number of ones that an honest row exceeds with a probability below `FALSE_ALARM_RATE`.

    `Σ t~² <= |t|²`, the number of items, so the mean of the ones is at most `(1-2f) n + f d`; and no sum of independent
    bits of that mean has a heavier tail than the binomial one (Hoeffding 1956).
    """
    mean = min((1 - 2 * floor) * items + floor * width, width)
    return min(width, max(int(binom.isf(FALSE_ALARM_RATE, width, mean / width)), int(mean) + 1))


def _check_codes(survey: Survey, row: Sequence[int]) -> None:
    if len(row) != len(survey.sizes):
        raise SurveyError(f"a row must have {len(survey.sizes)} answers, got {len(row)}")
    for value, item in zip(row, survey.items, strict=True):
        if not 0 <= value < item.size:
            raise SurveyError(f"the answer to {item.name} must lie between 0 and {item.size - 1}, got {value}")


def _check_label(survey: Survey, label: int) -> None:
    if not 0 <= label < len(survey.classes):
        raise SurveyError(f"the class must lie between 0 and {len(survey.classes) - 1}, got {label}")
