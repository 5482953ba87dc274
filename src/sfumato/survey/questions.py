"""Survey questions: their kinds, their options, and the encoding of answers as integer codes."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sfumato.errors import SurveyError, nearest

KINDS = ("choice", "multiple", "number")


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
    cuts: tuple[float, ...] = ()
    """The lower ends of all bins of a number but the first: `cuts[i] <= x` puts x above the i-th bin."""
    unit: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SurveyError(f"question {self.name}: its kind must be a known one; {nearest(self.kind, KINDS)}")
        if not (1 <= len(self.name) <= 100 and 1 <= len(self.text) <= 1000 and len(self.unit) <= 20):
            raise SurveyError(f"question {self.name[:100]}: its name, text and unit must be short texts; shorten them")
        if self.kind == "number":
            self._check_cuts()
        else:
            self._check_options()

    def _check_cuts(self) -> None:
        is_increasing = all(map(math.isfinite, self.cuts)) and list(self.cuts) == sorted(set(self.cuts))
        if self.options or not 1 <= len(self.cuts) <= 63 or not is_increasing:
            raise SurveyError(
                f"question {self.name}: a number must have 1 to 63 cuts in increasing order, and no options"
            )

    def _check_options(self) -> None:
        fewest = 1 if self.kind == "multiple" else 2
        if self.cuts or not fewest <= len(self.options) <= 64:
            raise SurveyError(
                f"question {self.name}: a {self.kind} must have options, {fewest} to 64 of them, and no cuts"
            )
        if len(set(self.options)) < len(self.options) or not all(0 < len(one) <= 200 for one in self.options):
            raise SurveyError(f"question {self.name}: its options must be distinct texts of 1 to 200 characters")

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
        return cls(
            name=name,
            text=str(options.get("text", name)),
            kind=str(options.get("kind", "choice")),
            options=tuple(map(str, options.get("options", ()))),
            cuts=tuple(map(float, options.get("cuts", ()))),
            unit=str(options.get("unit", "")),
        )

    def as_dict(self) -> dict[str, Any]:
        """The question as a table that `parse` reads."""
        answers = {"cuts": list(self.cuts), "unit": self.unit} if self.cuts else {"options": list(self.options)}
        return {"text": self.text, "kind": self.kind, **answers}

    def labels(self) -> tuple[str, ...]:
        """The possible answers to a question with a single answer, as text."""
        if self.kind != "number":
            return self.options
        ends = [f"{cut:g}" for cut in self.cuts]
        between = [f"{low} to {high}" for low, high in pairwise(ends)]
        unit = f" {self.unit}" if self.unit else ""
        return tuple(f"{bin_}{unit}" for bin_ in (f"below {ends[0]}", *between, f"{ends[-1]} or more"))

    def items(self) -> tuple[Item, ...]:
        """The variables that are perturbed: the answer, or each option of a multiple choice."""
        if self.kind != "multiple":
            labels = self.labels()
            return (Item(self.name, "", len(labels), 1.0, labels),)
        share = 1 / len(self.options)
        return tuple(Item(self.name, option, 2, share, ("no", "yes")) for option in self.options)

    def parse_answer(self, text: str) -> Any:
        """An answer from a cell of a CSV file; options of a multiple choice are separated by semicolons."""
        if self.kind == "multiple":
            return text.split(";") if text else []
        if self.kind == "choice":
            return text
        try:
            return float(text)
        except ValueError:
            raise SurveyError(f"question {self.name} must be answered with a number, got {text[:60]!r}") from None

    def encode(self, answer: Any) -> list[int]:
        """The integer code of an answer for each item; an answer that does not fit the question is refused."""
        return self._encode_number(answer) if self.kind == "number" else self._encode_options(answer)

    def _encode_number(self, answer: Any) -> list[int]:
        if isinstance(answer, bool) or not isinstance(answer, int | float) or not abs(answer) < math.inf:
            raise SurveyError(f"question {self.name} must be answered with a number")
        return [bisect.bisect_right(self.cuts, answer)]

    def _encode_options(self, answer: Any) -> list[int]:
        chosen = answer if isinstance(answer, list | tuple) else [answer]
        if any(one not in self.options for one in chosen) or (self.kind == "choice" and len(chosen) != 1):
            raise SurveyError(f"question {self.name} must be answered with its options: {', '.join(self.options)}")
        if self.kind == "multiple":
            return [int(option in chosen) for option in self.options]
        return [self.options.index(chosen[0])]
