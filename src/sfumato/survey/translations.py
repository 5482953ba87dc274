"""Translations of a survey: its title, consent and questions in other languages, shown to those who read them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import SurveyError, nearest
from sfumato.survey.guidance_settings import require
from sfumato.survey.questions import Question

_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")

_LONGEST_OPTION = 200


def checked_language(tag: str) -> str:
    """The tag of a language, such as `en` or `pt-BR`."""
    if not _TAG.fullmatch(tag):
        raise SurveyError(f"a language must be a tag such as en or pt-BR, got {tag[:60]!r}")
    return tag


@dataclass(frozen=True)
class Translation:
    """The texts of a survey in another language; what is missing is shown as it was written."""

    language: str
    title: str = ""
    consent: str = ""
    questions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """The name of a question, its text, and its options in their order; either may be empty."""

    @classmethod
    def parse(cls, language: str, options: Any, asked: Sequence[Question]) -> Translation:
        """Read a translation from its table in a definition."""
        checked_language(language)
        require(isinstance(options, Mapping), f"translations.{language} must be a table", type(options).__name__)
        known = ("title", "consent", "questions")
        for name in options:
            if name not in known:
                raise SurveyError(f"translations.{language} has no {name!r}; {nearest(name, known)}")
        tables, by_name = options.get("questions", {}), {question.name: question for question in asked}
        require(isinstance(tables, Mapping), "translated questions must be a table", type(tables).__name__)
        questions = tuple(_question(language, name, table, by_name) for name, table in tables.items())
        where = f"translations.{language}"
        title, consent = _text(options, "title", 200, where), _text(options, "consent", 10_000, where)
        return cls(language, title, consent, questions)

    def as_dict(self) -> dict[str, Any]:
        """The translation as a table that `parse` reads."""
        questions = {
            name: {key: value for key, value in (("text", text), ("options", list(options))) if value}
            for name, text, options in self.questions
        }
        tables = {"title": self.title, "consent": self.consent, "questions": questions}
        return {name: value for name, value in tables.items() if value}


def _question(
    language: str, name: str, table: Any, by_name: Mapping[str, Question]
) -> tuple[str, str, tuple[str, ...]]:
    where = f"translations.{language}.questions.{name}"
    if name not in by_name:
        raise SurveyError(f"{where} translates no question; {nearest(name, list(by_name))}")
    require(isinstance(table, Mapping) and set(table) <= {"text", "options"}, f"{where} has text and options", table)
    given = table.get("options", [])
    is_list = isinstance(given, list | tuple)
    texts = is_list and all(isinstance(one, str) and 0 < len(one) <= _LONGEST_OPTION for one in given)
    require(texts, f"{where}.options must be a list of texts of 1 to {_LONGEST_OPTION} characters", given)
    options = tuple(given)
    if options and (len(options) != len(by_name[name].options) or len(set(options)) < len(options)):
        count = len(by_name[name].options)
        raise SurveyError(f"{where} must have all {count} options, in their order and distinct, got {len(options)}")
    return name, _text(table, "text", 1000, where), options


def _text(table: Mapping[str, Any], name: str, most: int, where: str) -> str:
    """A text that may be missing."""
    text = table.get(name, "")
    is_text = isinstance(text, str) and len(text) <= most
    require(is_text, f"{where}.{name} must be text of up to {most} characters", text)
    return str(text)
