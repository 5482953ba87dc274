"""Survey questions: their kinds, their options, and the encoding of answers as integer codes."""

from __future__ import annotations

import bisect
import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise, permutations
from typing import Any

from sfumato.errors import SurveyError, nearest

KINDS = ("choice", "multiple", "scale", "number", "date", "ranking")
BINNED = ("number", "date")
"""Kinds whose answers are put into intervals: only the interval is perturbed and sent."""

_MOST_RANKED = 4
"""Options of a ranking: with five there are 120 rankings, and a true one would hardly ever be sent."""

_BEFORE = " > "
"""Between the options of a ranking."""

_NO_TEXT = (
    "an answer in free text cannot be perturbed: what is left of the words would still tell them, and random words say "
    "nothing; ask for a choice among the answers that you expect, with one for all others"
)


@dataclass(frozen=True)
class Item:
    """A categorical variable that is perturbed by itself: a question, or one option of a multiple choice."""

    question: str
    option: str
    """The option of a multiple choice that this item is about, else empty."""
    size: int
    epsilon_share: float
    """The share of the question's epsilon that is spent on this item."""
    labels: tuple[str, ...]
    ranked: tuple[str, ...] = ()
    """The options that are ranked, if the labels are rankings."""

    @property
    def outcomes(self) -> list[tuple[str, list[int]]]:
        """What results list a share of, and the codes that it is of.

        That an option of a multiple choice was chosen, that an option is ranked first, or each answer.
        """
        if self.option:
            return [("yes", [1])]
        codes = range(self.size)
        if self.ranked:
            each = self.size // len(self.ranked)  # rankings are in the order of their first options
            return [
                (f"{one} first", [code for code in codes if code // each == i]) for i, one in enumerate(self.ranked)
            ]
        return [(label, [code]) for code, label in enumerate(self.labels)]

    @property
    def name(self) -> str:
        """The item's name in tables of results."""
        return f"{self.question}: {self.option}" if self.option else self.question


@dataclass(frozen=True)
class Question:
    """A question with its kind and its possible answers."""

    name: str
    text: str
    kind: str
    options: tuple[str, ...] = ()
    cuts: tuple[float | str, ...] = ()
    """The lower ends of all bins but the first: `cuts[i] <= x` puts x above the i-th bin; days as in 2026-12-31."""
    unit: str = ""

    def __post_init__(self) -> None:
        if self.kind == "text":
            raise SurveyError(f"question {self.name}: {_NO_TEXT}")
        if self.kind not in KINDS:
            raise SurveyError(f"question {self.name}: its kind must be a known one; {nearest(self.kind, KINDS)}")
        if not (1 <= len(self.name) <= 100 and 1 <= len(self.text) <= 1000 and len(self.unit) <= 20):
            raise SurveyError(f"question {self.name[:100]}: its name, text and unit must be short texts; shorten them")
        if self.kind in BINNED:
            self._check_cuts()
        else:
            self._check_options()

    def _check_cuts(self) -> None:
        if self.kind == "date":
            ordered = all(map(_is_day, self.cuts)) and list(self.cuts) == sorted(set(map(str, self.cuts)))
        else:
            numbers = [cut for cut in self.cuts if not isinstance(cut, str) and math.isfinite(cut)]
            ordered = list(self.cuts) == sorted(set(numbers))
        if self.options or not 1 <= len(self.cuts) <= 63 or not ordered:
            what = "days such as 2026-12-31" if self.kind == "date" else "numbers"
            raise SurveyError(
                f"question {self.name}: a {self.kind} must have cuts and no options: 1 to 63 {what} in increasing order"
            )

    def _check_options(self) -> None:
        fewest, most = 1 if self.kind == "multiple" else 2, _MOST_RANKED if self.kind == "ranking" else 64
        if self.cuts or not fewest <= len(self.options) <= most:
            raise SurveyError(
                f"question {self.name}: a {self.kind} must have options, {fewest} to {most} of them, and no cuts"
            )
        if len(set(self.options)) < len(self.options) or not all(0 < len(one) <= 200 for one in self.options):
            raise SurveyError(f"question {self.name}: its options must be distinct texts of 1 to 200 characters")
        if self.kind == "ranking" and any(_BEFORE.strip() in option for option in self.options):
            raise SurveyError(f"question {self.name}: options that are ranked must not contain '>'; rename them")

    @classmethod
    def parse(cls, name: str, options: Any) -> Question:
        """Read a question from its table in a TOML or JSON definition."""
        known = ("text", "kind", "options", "cuts", "unit")
        if not isinstance(options, Mapping):
            raise SurveyError(f"question {name} must be a table such as [questions.{name}]")
        for field in options:
            if field not in known:
                raise SurveyError(f"question {name} has no {field!r}; {nearest(field, known)}")
        for field in ("options", "cuts"):
            if not isinstance(options.get(field, []), list | tuple):
                raise SurveyError(f"question {name}: its {field} must be a list")
        kind = str(options.get("kind", "choice"))
        return cls(
            name=name,
            text=str(options.get("text", name)),
            kind=kind,
            options=tuple(map(str, options.get("options", ()))),
            cuts=tuple(_cut(name, kind, cut) for cut in options.get("cuts", ())),
            unit=str(options.get("unit", "")),
        )

    def as_dict(self) -> dict[str, Any]:
        """The question as a table that `parse` reads."""
        answers = {"cuts": list(self.cuts), "unit": self.unit} if self.cuts else {"options": list(self.options)}
        return {"text": self.text, "kind": self.kind, **answers}

    def labels(self) -> tuple[str, ...]:
        """The possible answers to a question with a single answer, as text."""
        if self.kind == "ranking":
            return tuple(_BEFORE.join(order) for order in permutations(self.options))
        if self.kind == "date":
            between = [f"from {low}, before {high}" for low, high in pairwise(self.cuts)]
            return (f"before {self.cuts[0]}", *between, f"from {self.cuts[-1]}")
        if self.kind != "number":
            return self.options
        ends = [_digits(float(cut)) for cut in self.cuts]
        between = [f"{low} to {high}" for low, high in pairwise(ends)]
        unit = f" {self.unit}" if self.unit else ""
        return tuple(f"{bin_}{unit}" for bin_ in (f"below {ends[0]}", *between, f"{ends[-1]} or more"))

    def items(self) -> tuple[Item, ...]:
        """The variables that are perturbed: the answer, or each option of a multiple choice."""
        if self.kind != "multiple":
            labels = self.labels()
            return (Item(self.name, "", len(labels), 1.0, labels, self.options if self.kind == "ranking" else ()),)
        share = 1 / len(self.options)
        return tuple(Item(self.name, option, 2, share, ("no", "yes")) for option in self.options)

    def parse_answer(self, text: str) -> Any:
        """An answer from a cell of a CSV file; semicolons separate the options of a multiple choice or a ranking."""
        if self.kind in ("multiple", "ranking"):
            return text.split(";") if text else []
        if self.kind != "number":
            return text
        try:
            return float(text)
        except ValueError:
            raise SurveyError(f"question {self.name} must be answered with a number, got {text[:60]!r}") from None

    def encode(self, answer: Any) -> list[int]:
        """The integer code of an answer for each item; an answer that does not fit the question is refused."""
        return self._encode_bin(answer) if self.kind in BINNED else self._encode_options(answer)

    def _encode_bin(self, answer: Any) -> list[int]:
        if self.kind == "date":
            if not _is_day(answer):
                raise SurveyError(f"question {self.name} must be answered with a day such as 2026-12-31")
        elif isinstance(answer, bool) or not isinstance(answer, int | float) or not abs(answer) < math.inf:
            raise SurveyError(f"question {self.name} must be answered with a number")
        return [bisect.bisect_right(self.cuts, answer)]

    def _encode_options(self, answer: Any) -> list[int]:
        chosen = list(answer) if isinstance(answer, list | tuple) else [answer]
        if self.kind == "ranking":
            if not all(isinstance(one, str) for one in chosen) or sorted(chosen) != sorted(self.options):
                raise SurveyError(f"question {self.name} must be answered with all its options, the best one first")
            return [list(permutations(self.options)).index(tuple(chosen))]
        is_single = self.kind != "multiple"
        if any(one not in self.options for one in chosen) or (is_single and len(chosen) != 1):
            raise SurveyError(f"question {self.name} must be answered with its options: {', '.join(self.options)}")
        if not is_single:
            return [int(option in chosen) for option in self.options]
        return [self.options.index(chosen[0])]


def _is_day(text: Any) -> bool:
    """Whether it is a day in ISO 8601, as browsers give it."""
    try:
        return isinstance(text, str) and dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _cut(name: str, kind: str, given: Any) -> float | str:
    """An end of an interval, from a definition."""
    if kind == "date":
        return str(given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise SurveyError(f"question {name}: its cuts must be numbers, got {given!r}")
    return float(given)


def _digits(number: float) -> str:
    """A number as browsers write it, so that their labels are the same."""
    if number.is_integer() and abs(number) < 1e21:
        return str(int(number))
    text = repr(number)
    if 1e-6 <= abs(number) < 1e-4:
        return format(Decimal(text), "f")
    return re.sub(r"e([+-])0*", r"e\1", text)
