"""A survey: its questions, what each respondent is promised, and how answers are blurred before they leave a device."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import tomli_w

from sfumato.errors import SurveyError, VaultError, nearest
from sfumato.levels import Level
from sfumato.survey.guidance_settings import GuidanceSettings, hold
from sfumato.survey.questions import Item, Question
from sfumato.vault.names import moment

MODES = ("randomised", "guided")

_LEVELS = {"careful": 0.5, "balanced": 1.0, "open": 2.5}
"""Epsilon of each question at the three stops of a respondent's slider."""

_LARGEST = 20.0


@dataclass(frozen=True)
class Survey:
    """A survey's definition. Immutable: what a respondent agreed to is what stays in force."""

    title: str
    questions: tuple[Question, ...]
    consent: str
    deadline: str
    mode: str = "randomised"
    target: str = ""
    """The question that a classifier shall answer, if any; `class` in TOML."""
    levels: tuple[tuple[str, float], ...] = tuple(_LEVELS.items())
    guided: GuidanceSettings = field(default_factory=GuidanceSettings)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise SurveyError(f"a survey's mode must be one that there is; {nearest(self.mode, MODES)}")
        hold(1 <= len(self.title) <= 200, "a survey's title must have 1 to 200 letters", self.title)
        hold(1 <= len(self.consent) <= 10_000, "a survey must have a consent text of up to 10,000 letters", "")
        hold(1 <= len(self.questions) <= 200, "a survey must have 1 to 200 questions", len(self.questions))
        names = [question.name for question in self.questions]
        hold(len(set(names)) == len(names), "each question must have a name of its own", names)
        hold(1 <= len(self.levels) <= 10, "a survey must have 1 to 10 levels", len(self.levels))
        for name, epsilon in self.levels:
            hold(0 < epsilon <= _LARGEST, f"the epsilon of level {name} must lie between 0 and {_LARGEST:g}", epsilon)
        self._check_class()
        _ = self.ends

    def _check_class(self) -> None:
        names = [question.name for question in self.questions]
        if self.target and self.target not in names:
            raise SurveyError(f"the class must be one of the questions; {nearest(self.target, names)}")
        if self.target:
            many = self._asked_for.kind == "multiple"
            hold(not many, "the class must have one answer, so it cannot be a multiple choice", self.target)
        if self.mode == "guided":
            hold(bool(self.target), "a guided survey must name its class question", self.target)
            hold(len(self.items) >= 2, "a guided survey must ask more than its class question", len(self.items))
            most = 512
            hold(self.width <= most, f"a guided survey must have at most {most} options in all", self.width)

    @classmethod
    def loads(cls, text: str) -> Survey:
        """Read TOML."""
        try:
            said = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
            raise SurveyError(f"a survey must be written in TOML: {error}") from None
        return cls.parse(said)

    @classmethod
    def parse(cls, said: Mapping[str, Any]) -> Survey:
        """Read what TOML or JSON held."""
        known = ("title", "consent", "mode", "deadline", "class", "levels", "guided", "questions")
        for name in said:
            if name not in known:
                raise SurveyError(f"a survey has no {name!r}; {nearest(name, known)}")
        questions, levels = said.get("questions", {}), said.get("levels", _LEVELS)
        steering = said.get("guided", {})
        for name, found in (("questions", questions), ("levels", levels), ("guided", steering)):
            hold(isinstance(found, Mapping), f"{name} must be a table", type(found).__name__)
        try:
            return cls(
                title=_text(said, "title"),
                questions=tuple(Question.parse(name, one) for name, one in questions.items()),
                consent=_text(said, "consent"),
                deadline=_text(said, "deadline"),
                mode=_text(said, "mode", "randomised"),
                target=_text(said, "class", ""),
                levels=tuple((str(name), float(epsilon)) for name, epsilon in levels.items()),
                guided=GuidanceSettings(**steering),
            )
        except (TypeError, ValueError) as error:
            raise SurveyError(f"a survey must have values of the right kinds: {error}") from None

    def as_dict(self) -> dict[str, Any]:
        """The definition, as `parse` reads it."""
        return {
            "title": self.title,
            "consent": self.consent,
            "mode": self.mode,
            "deadline": self.deadline,
            "class": self.target,
            "levels": dict(self.levels),
            "guided": dict(self.guided.__dict__),
            "questions": {question.name: question.as_dict() for question in self.questions},
        }

    def dumps(self) -> str:
        """The definition in TOML, with questions and levels in their order."""
        return tomli_w.dumps(self.as_dict())

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """What is blurred, each by itself: a question, or an option of a multiple choice; not a guided class."""
        return tuple(item for question in self._blurred for item in question.items())

    @cached_property
    def _blurred(self) -> tuple[Question, ...]:
        clear = self.target if self.mode == "guided" else ""
        return tuple(question for question in self.questions if question.name != clear)

    @property
    def _asked_for(self) -> Question:
        """The class question."""
        return next(question for question in self.questions if question.name == self.target)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The options of each item."""
        return tuple(item.size for item in self.items)

    @property
    def width(self) -> int:
        """The bits of a guided row: one for each option."""
        return sum(self.sizes)

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of the class question."""
        return self._asked_for.labels() if self.target else ()

    @cached_property
    def retention(self) -> tuple[tuple[float, ...], ...]:
        """The probability that an item is told as it is, at each level."""
        return tuple(
            tuple(Level.from_epsilon(epsilon * item.share, domain=item.size).retention for item in self.items)
            for _, epsilon in self.levels
        )

    @cached_property
    def totals(self) -> tuple[float, ...]:
        """Epsilon of all questions together, at each level."""
        count = len({item.question for item in self.items})
        return tuple(epsilon * count for _, epsilon in self.levels)

    @cached_property
    def ends(self) -> datetime:
        """The moment from which nothing is taken; a day is over when it ends."""
        try:
            return datetime.fromisoformat(str(moment(self.deadline)))
        except VaultError:
            raise SurveyError(
                f"a deadline must be a day such as 2027-01-31 or a moment, got {self.deadline[:60]!r}"
            ) from None

    @cached_property
    def published(self) -> str:
        """What respondents' devices are told: everything, in one text whose hash is the survey's schema."""
        levels = [
            {"name": name, "epsilon": epsilon, "total": total, "retention": list(row)}
            for (name, epsilon), total, row in zip(self.levels, self.totals, self.retention, strict=True)
        ]
        said = self.as_dict()
        questions = [{"name": name, **one} for name, one in said.pop("questions").items()]
        said |= {"questions": questions, "levels": levels}
        return json.dumps({**said, "ends": self.ends.isoformat()}, sort_keys=True, ensure_ascii=False, allow_nan=False)

    @cached_property
    def schema(self) -> str:
        """The hash of what is published."""
        return hashlib.sha256(self.published.encode()).hexdigest()

    def code(self, answers: Mapping[str, Any]) -> np.ndarray:
        """A respondent's answers as one number for each item."""
        return np.array([code for one in self._blurred for code in one.code(answers.get(one.name))], np.int64)

    def label(self, answers: Mapping[str, Any]) -> int:
        """The number of a respondent's class."""
        return self._asked_for.code(answers.get(self.target))[0]


def _text(said: Mapping[str, Any], name: str, default: str | None = None) -> str:
    found = said.get(name, default)
    if found is None:
        raise SurveyError(f'a survey must have a {name}; write `{name} = "..."`')
    hold(isinstance(found, str), f"{name} must be text", type(found).__name__)
    return str(found)
