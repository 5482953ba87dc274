"""Simulated people who answer a survey at a real service, with the temperaments that zhang2005 cites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import GuidanceRefused, SurveyError
from sfumato.survey.definition import Survey
from sfumato.survey.respondent import Choice, Line, Respondent

TEMPERAMENTS = {"fundamentalist": 0.17, "pragmatist": 0.56, "unconcerned": 0.27}
"""Shares of people by how much they care about privacy (Cranor et al. 1999, cited by zhang2005, section 2.2)."""


@dataclass(frozen=True)
class Simulated:
    """What became of simulated people."""

    people: int
    counted: int
    clear: int
    """Unblurred answers, of the unconcerned, to begin a guided survey with."""
    waiting: int
    """Answers that were not sent, since the survey asked for more than their owners allow."""
    refused: int
    """Answers that were not sent, since what the survey asked for failed a check."""
    temperaments: dict[str, int]


def simulate(
    url: str,
    name: str,
    people: int,
    rng: np.random.Generator,
    *,
    rows: Sequence[dict[str, Any]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulated:
    """Let people answer, one after the other; those who must wait try once more at the end.

    Args:
        rows: answers to draw people from; without them everybody answers at random.

    """
    line = Line(url)
    survey = Respondent(line, name).survey()
    kinds = rng.choice(list(TEMPERAMENTS), people, p=list(TEMPERAMENTS.values()))
    found: Counter[str] = Counter()
    waiting: list[tuple[Respondent, dict[str, Any], Choice]] = []
    for kind in kinds:
        answers = dict(rows[int(rng.integers(len(rows)))]) if rows else invented(survey, rng)
        begins = survey.mode == "guided" and kind == "unconcerned" and found["clear"] < survey.guided.bootstrap
        choice = _choice(survey, kind, clear=begins)
        person = Respondent(line, name)
        outcome = _attempt(person, survey, answers, choice)
        found[outcome] += 1
        if outcome == "waiting":
            waiting.append((person, answers, choice))
        if progress:
            progress(1)
    for person, answers, choice in waiting:
        outcome = _attempt(person, survey, answers, choice)
        found["waiting"] -= 1
        found[outcome] += 1
    said = {kind: int((kinds == kind).sum()) for kind in TEMPERAMENTS}
    return Simulated(people, found["counted"], found["clear"], found["waiting"], found["refused"], said)


def _attempt(person: Respondent, survey: Survey, answers: dict[str, Any], choice: Choice) -> str:
    try:
        if person.prepare(survey, answers, choice):
            return "waiting"
    except GuidanceRefused:
        return "refused"
    try:
        counted = person.send()
    except SurveyError:
        if not choice.clear:
            raise
        again = Respondent(person.line, person.name, ticket=person.ticket)  # blurred, then
        return _attempt(again, survey, answers, _choice(survey, "unconcerned", clear=False))
    return "clear" if choice.clear else "counted" if counted else "repeated"


def _choice(survey: Survey, kind: str, *, clear: bool) -> Choice:
    """Fundamentalists take the most careful choice, pragmatists the middle one, the unconcerned the most open one."""
    last = len(survey.levels) - 1
    level = {"fundamentalist": 0, "pragmatist": last // 2 + last % 2, "unconcerned": last}[kind]
    allowed = {"fundamentalist": 1, "pragmatist": 3, "unconcerned": survey.width}[kind]
    return Choice(level, allowed, clear=clear)


def invented(survey: Survey, rng: np.random.Generator) -> dict[str, Any]:
    """Answers at random."""
    out: dict[str, Any] = {}
    for question in survey.questions:
        if question.kind == "number":
            low, high = question.cuts[0], question.cuts[-1]
            out[question.name] = float(rng.uniform(low - (high - low + 1) / 2, high + (high - low + 1) / 2))
        elif question.kind == "multiple":
            out[question.name] = [option for option in question.options if rng.random() < 0.3]
        else:
            out[question.name] = str(rng.choice(list(question.options)))
    return out
