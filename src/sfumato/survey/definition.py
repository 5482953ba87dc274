"""Survey definition: questions, consent, deadline and privacy levels, read from TOML and published to respondents."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import tomli_w

from sfumato.errors import SurveyError, VaultError, nearest
from sfumato.levels import Level
from sfumato.serialization import load_toml
from sfumato.survey.guidance_settings import GuidanceSettings, require
from sfumato.survey.questions import Item, Question
from sfumato.survey.translations import Translation, checked_language
from sfumato.vault.names import parse_end

MODES = ("randomised", "guided")
_PARTS = ("title", "consent", "mode", "deadline", "class", "levels", "guided", "questions")

_LEVELS = {"careful": 0.5, "balanced": 1.0, "open": 2.5}
"""The default privacy levels that a respondent chooses from, with epsilon per question."""

_MAX_EPSILON = 3.0
"""The largest epsilon per question of a new survey: above it, almost every answer would be sent unchanged."""

_MAX_READABLE_EPSILON = 20.0
"""The largest epsilon that a survey of an earlier version may have."""

_PROTECTION = {0.5: "strong", 1.0: "good", 2.0: "moderate", math.inf: "weak"}
"""How well a level protects an answer, in words, up to an epsilon per question; the browser module has the same."""

_MAX_GUIDED_WIDTH = 512
"""The largest number of options of a guided survey: its guidance is a matrix of that size."""


@dataclass(frozen=True)
class Survey:
    """The definition of a survey. It is immutable, so that it stays what respondents agreed to."""

    title: str
    questions: tuple[Question, ...]
    consent: str
    deadline: str
    mode: str = "randomised"
    target: str = ""
    """The question that a classifier predicts, if any; `class` in TOML."""
    levels: tuple[tuple[str, float], ...] = tuple(_LEVELS.items())
    guided: GuidanceSettings = field(default_factory=GuidanceSettings)
    language: str = ""
    """The language that the questions are written in, such as `en`; empty where nobody said."""
    translations: tuple[Translation, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise SurveyError(f"a survey's mode must be a known one; {nearest(self.mode, MODES)}")
        require(1 <= len(self.title) <= 200, "a survey's title must have 1 to 200 characters", self.title)
        require(1 <= len(self.consent) <= 10_000, "a survey must have a consent text of up to 10,000 characters", "")
        require(1 <= len(self.questions) <= 200, "a survey must have 1 to 200 questions", len(self.questions))
        names = [question.name for question in self.questions]
        require(len(set(names)) == len(names), "each question must have a name of its own", names)
        require(1 <= len(self.levels) <= 10, "a survey must have 1 to 10 levels", len(self.levels))
        for name, epsilon in self.levels:
            requirement = f"the epsilon of level {name} must lie between 0 and {_MAX_EPSILON:g}"
            require(0 < epsilon <= _MAX_READABLE_EPSILON, requirement, epsilon)
        self._check_class()
        _ = self.ends
        try:
            json.dumps(self.as_dict(), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise SurveyError("a survey must be text that can be stored, and has half of a surrogate pair") from None

    def _check_class(self) -> None:
        names = [question.name for question in self.questions]
        if self.target and self.target not in names:
            raise SurveyError(f"the class must be one of the questions; {nearest(self.target, names)}")
        if self.target:
            is_multiple = self.class_question.kind == "multiple"
            require(not is_multiple, "the class must have one answer, so it cannot be a multiple choice", self.target)
        if self.mode == "guided":
            require(bool(self.target), "a guided survey must name its class question", self.target)
            require(len(self.items) >= 2, "a guided survey must ask more than its class question", len(self.items))
            requirement = f"a guided survey must have at most {_MAX_GUIDED_WIDTH} options in all"
            require(self.width <= _MAX_GUIDED_WIDTH, requirement, self.width)

    def check_protection(self) -> Survey:
        """This survey, unless a level hardly perturbs, or two items have one name, as those of earlier versions may."""
        names = [item.name for item in self.items]
        require(len(set(names)) == len(names), "each question and option must have a name of its own in results", names)
        for name, epsilon in self.levels:
            if epsilon > _MAX_EPSILON:
                truth = 1 / (1 + math.exp(-epsilon))
                raise SurveyError(
                    f"the epsilon of level {name} must be at most {_MAX_EPSILON:g} per question, got {epsilon:g}, at "
                    f"which {truth:.3%} of the answers to a yes-no question would be sent unchanged; lower it"
                )
        return self

    @classmethod
    def loads(cls, text: str) -> Survey:
        """Read a definition from TOML."""
        try:
            options = load_toml(text)
        except (ValueError, RecursionError) as error:
            raise SurveyError(f"a survey must be written in TOML: {error}") from None
        return cls.parse(options)

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Survey:
        """Read a definition from the content of a TOML or JSON document."""
        known = (*_PARTS, "language", "translations")
        for name in options:
            if name not in known:
                raise SurveyError(f"a survey has no {name!r}; {nearest(name, known)}")
        questions, levels = _named(options.get("questions", {})), options.get("levels", _LEVELS)
        if isinstance(levels, list):
            levels = {name: one.get("epsilon") for name, one in _named(levels).items()}
        guided, translations = options.get("guided", {}), options.get("translations", {})
        tables = (("questions", questions), ("levels", levels), ("guided", guided), ("translations", translations))
        for name, table in tables:
            require(isinstance(table, Mapping), f"{name} must be a table", type(table).__name__)
        for name, epsilon in levels.items():
            is_number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
            require(is_number, f"the epsilon of level {name} must be a number", epsilon)
        try:
            asked = tuple(Question.parse(name, one) for name, one in questions.items())
            return cls(
                title=_text(options, "title"),
                questions=asked,
                consent=_text(options, "consent"),
                deadline=_text(options, "deadline"),
                mode=_text(options, "mode", "randomised"),
                target=_text(options, "class", ""),
                levels=tuple((str(name), float(epsilon)) for name, epsilon in levels.items()),
                guided=GuidanceSettings(**guided),
                language=checked_language(_text(options, "language")) if options.get("language") else "",
                translations=tuple(Translation.parse(name, one, asked) for name, one in translations.items()),
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise SurveyError(f"a survey must have values of the right types: {error}") from None

    def as_dict(self) -> dict[str, Any]:
        """The definition as a document that `parse` reads; what is newer than a survey keeps its version as it was."""
        document: dict[str, Any] = {
            "title": self.title,
            "consent": self.consent,
            "mode": self.mode,
            "deadline": self.deadline,
            "class": self.target,
            "levels": dict(self.levels),
            "guided": dict(self.guided.__dict__),
            "questions": {question.name: question.as_dict() for question in self.questions},
        }
        if self.language:
            document["language"] = self.language
        if self.translations:
            document["translations"] = {one.language: one.as_dict() for one in self.translations}
        return document

    def as_listed(self) -> dict[str, Any]:
        """The same document with questions and levels in lists, whose order survives in JavaScript."""
        document = self.as_dict()
        questions = [{"name": name, **one} for name, one in document["questions"].items()]
        levels = [{"name": name, "epsilon": epsilon} for name, epsilon in self.levels]
        return document | {"questions": questions, "levels": levels}

    def dumps(self) -> str:
        """The definition in TOML, with questions and levels in their order."""
        return tomli_w.dumps(self.as_dict())

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The variables that are perturbed: single answers and options of multiple choices, but no guided class."""
        return tuple(item for question in self._perturbed_questions for item in question.items())

    @cached_property
    def _perturbed_questions(self) -> tuple[Question, ...]:
        unperturbed = self.target if self.mode == "guided" else ""
        return tuple(question for question in self.questions if question.name != unperturbed)

    @property
    def class_question(self) -> Question:
        """The question that a classifier predicts."""
        return next(question for question in self.questions if question.name == self.target)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of options of each item."""
        return tuple(item.size for item in self.items)

    @property
    def width(self) -> int:
        """The number of bits in a row of a guided survey: one for each option."""
        return sum(self.sizes)

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of the class question."""
        return self.class_question.labels() if self.target else ()

    @cached_property
    def retention(self) -> tuple[tuple[float, ...], ...]:
        """The retention probability of each item at each level."""
        return tuple(
            tuple(Level.from_epsilon(epsilon * item.epsilon_share, domain=item.size).retention for item in self.items)
            for _, epsilon in self.levels
        )

    @property
    def protections(self) -> tuple[str, ...]:
        """How well each level protects an answer, in words."""
        return tuple(
            next(word for limit, word in _PROTECTION.items() if epsilon <= limit) for _, epsilon in self.levels
        )

    @cached_property
    def totals(self) -> tuple[float, ...]:
        """The epsilon of all questions together, at each level."""
        count = len({item.question for item in self.items})
        return tuple(epsilon * count for _, epsilon in self.levels)

    @cached_property
    def ends(self) -> datetime:
        """The time from which no answers are accepted; a deadline given as a day includes that day."""
        try:
            return datetime.fromisoformat(str(parse_end(self.deadline)))
        except VaultError:
            raise SurveyError(
                f"a deadline must be a day such as 2027-01-31 or a date and time, got {self.deadline[:60]!r}"
            ) from None

    @cached_property
    def published(self) -> str:
        """The definition as respondents' devices receive it: one JSON text, whose hash is the survey's version."""
        levels = [
            {"name": name, "epsilon": epsilon, "total": total, "retention": list(row)}
            for (name, epsilon), total, row in zip(self.levels, self.totals, self.retention, strict=True)
        ]
        document = self.as_dict()
        questions = [{"name": name, **one} for name, one in document.pop("questions").items()]
        document |= {"questions": questions, "levels": levels, "ends": self.ends.isoformat()}
        return json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False)

    @cached_property
    def version(self) -> str:
        """The SHA-256 hash of the published definition."""
        return hashlib.sha256(self.published.encode()).hexdigest()

    def encode(self, answers: Mapping[str, Any]) -> np.ndarray:
        """The integer codes of a respondent's answers, one for each item."""
        codes = [code for one in self._perturbed_questions for code in one.encode(answers.get(one.name))]
        return np.array(codes, np.int64)

    def label(self, answers: Mapping[str, Any]) -> int:
        """The integer code of a respondent's class."""
        return self.class_question.encode(answers.get(self.target))[0]


def _named(tables: Any) -> Any:
    """Tables by their names, of a list in which each has one: its order is kept where that of names is not."""
    if not isinstance(tables, list):
        return tables
    named = {str(one["name"]): one for one in tables if isinstance(one, Mapping) and "name" in one}
    require(len(named) == len(tables), "each table of a list must have a name of its own", len(tables) - len(named))
    return {name: {key: value for key, value in one.items() if key != "name"} for name, one in named.items()}


def _text(options: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = options.get(name, default)
    if value is None:
        raise SurveyError(f'a survey must have a {name}; write `{name} = "..."`')
    require(isinstance(value, str), f"{name} must be text", type(value).__name__)
    return str(value)
