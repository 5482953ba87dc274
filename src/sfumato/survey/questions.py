"""Questions: what is asked, which answers there are, and how an answer becomes a number."""

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
    """What is blurred by itself."""

    question: str
    option: str
    """The option of a multiple choice that this is about, else nothing."""
    size: int
    share: float
    """The part of the question's epsilon that is spent on it."""
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.question}: {self.option}" if self.option else self.question


@dataclass(frozen=True)
class Question:
    """One question."""

    name: str
    text: str
    kind: str
    options: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    """Where a number falls into the next bin: `cuts[i] <= x` puts it above the i-th."""
    unit: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SurveyError(f"question {self.name}: its kind must be one that there is; {nearest(self.kind, KINDS)}")
        if not (1 <= len(self.name) <= 100 and 1 <= len(self.text) <= 1000 and len(self.unit) <= 20):
            raise SurveyError(f"question {self.name[:100]}: its name, text and unit must be short texts; shorten them")
        if self.kind == "number":
            sound = all(map(math.isfinite, self.cuts)) and list(self.cuts) == sorted(set(self.cuts))
            if self.options or not 1 <= len(self.cuts) <= 63 or not sound:
                raise SurveyError(f"question {self.name}: a number must have 1 to 63 cuts, each above the last")
        elif self.cuts or not (1 if self.kind == "multiple" else 2) <= len(self.options) <= 64:
            raise SurveyError(f"question {self.name}: a {self.kind} must have options, 2 to 64 of them, and no cuts")
        if len(set(self.options)) < len(self.options) or not all(0 < len(one) <= 200 for one in self.options):
            raise SurveyError(f"question {self.name}: its options must be short texts that differ")

    @classmethod
    def parse(cls, name: str, said: Any) -> Question:
        """Read what TOML or JSON held."""
        known = ("text", "kind", "options", "cuts", "unit")
        if not isinstance(said, Mapping):
            raise SurveyError(f"question {name} must be a table such as [questions.{name}]")
        for word in said:
            if word not in known:
                raise SurveyError(f"question {name} has no {word!r}; {nearest(word, known)}")
        for word in ("options", "cuts"):
            if not isinstance(said.get(word, []), list | tuple):
                raise SurveyError(f"question {name}: its {word} must be a list")
        return cls(
            name=name,
            text=str(said.get("text", name)),
            kind=str(said.get("kind", "choice")),
            options=tuple(map(str, said.get("options", ()))),
            cuts=tuple(map(float, said.get("cuts", ()))),
            unit=str(said.get("unit", "")),
        )

    def as_dict(self) -> dict[str, Any]:
        """As `parse` reads it."""
        answers = {"cuts": list(self.cuts), "unit": self.unit} if self.cuts else {"options": list(self.options)}
        return {"text": self.text, "kind": self.kind, **answers}

    def labels(self) -> tuple[str, ...]:
        """The answers that there are to a question with one answer."""
        if self.kind != "number":
            return self.options
        ends = [f"{cut:g}" for cut in self.cuts]
        between = [f"{low} to {high}" for low, high in pairwise(ends)]
        unit = f" {self.unit}" if self.unit else ""
        return tuple(f"{bin_}{unit}" for bin_ in (f"below {ends[0]}", *between, f"{ends[-1]} or more"))

    def items(self) -> tuple[Item, ...]:
        """What is blurred: the answer, or each option of a multiple choice."""
        if self.kind != "multiple":
            labels = self.labels()
            return (Item(self.name, "", len(labels), 1.0, labels),)
        share = 1 / len(self.options)
        return tuple(Item(self.name, option, 2, share, ("no", "yes")) for option in self.options)

    def read(self, text: str) -> Any:
        """An answer from a cell of a CSV file; options of a multiple choice are separated by semicolons."""
        if self.kind == "multiple":
            return text.split(";") if text else []
        if self.kind == "choice":
            return text
        try:
            return float(text)
        except ValueError:
            raise SurveyError(f"question {self.name} must be answered with a number, got {text[:60]!r}") from None

    def code(self, answer: Any) -> list[int]:
        """An answer as a number for each item; refused if it is none."""
        if self.kind == "number":
            if isinstance(answer, bool) or not isinstance(answer, int | float) or not abs(answer) < math.inf:
                raise SurveyError(f"question {self.name} must be answered with a number")
            return [bisect.bisect_right(self.cuts, answer)]
        chosen = answer if isinstance(answer, list | tuple) else [answer]
        if any(one not in self.options for one in chosen) or (self.kind == "choice" and len(chosen) != 1):
            raise SurveyError(f"question {self.name} must be answered with its options: {', '.join(self.options)}")
        if self.kind == "multiple":
            return [int(option in chosen) for option in self.options]
        return [self.options.index(chosen[0])]
