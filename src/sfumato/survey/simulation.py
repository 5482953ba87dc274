"""Simulated respondents who answer a survey at a running service, with the privacy attitudes that zhang2005 cites."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import GuidanceRefused, SurveyError
from sfumato.survey.definition import Survey
from sfumato.survey.questions import BINNED, Question
from sfumato.survey.respondent import Choice, HttpConnection, Respondent

PRIVACY_SEGMENTS = {"fundamentalist": 0.17, "pragmatist": 0.56, "unconcerned": 0.27}
"""Shares of people by their attitude to privacy (Cranor et al. 1999, cited by zhang2005, section 2.2)."""

_RANDOM_SHARE = 0.25
"""The share of simulated answers that do not depend on the answer to the class question."""


@dataclass(frozen=True)
class SimulationResult:
    """The number of simulated respondents by the outcome of their answers."""

    people: int
    counted: int
    clear: int
    """Unperturbed answers, sent by unconcerned respondents to start a guided survey."""
    waiting: int
    """Answers that were not sent because the survey asks for more than the respondents allow."""
    refused: int
    """Answers that were not sent because the guidance failed a privacy check."""
    segments: dict[str, int]


def simulate(
    url: str,
    name: str,
    people: int,
    rng: np.random.Generator,
    *,
    rows: Sequence[dict[str, Any]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> SimulationResult:
    """Let simulated respondents answer one after the other; those who must wait try once more at the end.

    Args:
        rows: true answers to sample respondents from; without them, `random_answers`.

    """
    connection = HttpConnection(url)
    survey = Respondent(connection, name).survey()
    segments = rng.choice(list(PRIVACY_SEGMENTS), people, p=list(PRIVACY_SEGMENTS.values()))
    outcomes: Counter[str] = Counter()
    waiting: list[tuple[Respondent, dict[str, Any], Choice]] = []
    for segment in segments:
        answers = dict(rows[int(rng.integers(len(rows)))]) if rows else random_answers(survey, rng)
        is_bootstrap = (
            survey.mode == "guided" and segment == "unconcerned" and outcomes["clear"] < survey.guided.bootstrap
        )
        choice = _choice(survey, segment, clear=is_bootstrap)
        respondent = Respondent(connection, name)
        outcome = _attempt(respondent, survey, answers, choice)
        outcomes[outcome] += 1
        if outcome == "waiting":
            waiting.append((respondent, answers, choice))
        if progress:
            progress(1)
    for respondent, answers, choice in waiting:
        outcome = _attempt(respondent, survey, answers, choice)
        outcomes["waiting"] -= 1
        outcomes[outcome] += 1
    return SimulationResult(
        people=people,
        counted=outcomes["counted"],
        clear=outcomes["clear"],
        waiting=outcomes["waiting"],
        refused=outcomes["refused"],
        segments={segment: int((segments == segment).sum()) for segment in PRIVACY_SEGMENTS},
    )


def _attempt(respondent: Respondent, survey: Survey, answers: dict[str, Any], choice: Choice) -> str:
    try:
        if respondent.prepare(survey, answers, choice):
            return "waiting"
    except GuidanceRefused:
        return "refused"
    try:
        counted = respondent.send()
    except SurveyError:
        if not choice.clear:
            raise
        # The bootstrap is complete: send a perturbed answer instead.
        retry = Respondent(respondent.connection, respondent.name, ticket=respondent.ticket)
        return _attempt(retry, survey, answers, _choice(survey, "unconcerned", clear=False))
    return "clear" if choice.clear else "counted" if counted else "repeated"


def _choice(survey: Survey, segment: str, *, clear: bool) -> Choice:
    """The choice of a segment: fundamentalists disclose the least, pragmatists more, the unconcerned most."""
    last = len(survey.levels) - 1
    level = {"fundamentalist": 0, "pragmatist": last // 2 + last % 2, "unconcerned": last}[segment]
    allowed = {"fundamentalist": 1, "pragmatist": 3, "unconcerned": survey.width}[segment]
    return Choice(level, allowed, clear=clear)


def random_answers(survey: Survey, rng: np.random.Generator) -> dict[str, Any]:
    """Random answers to all questions, most of which depend on the answer to the class question, if there is one.

    If none did, nothing could be predicted, and the guidance of a guided survey would be noise that devices refuse.
    """
    answers: dict[str, Any] = {}
    label = int(rng.integers(max(len(survey.classes), 1)))
    for position, question in enumerate(survey.questions):
        count = len(question.labels())
        is_random = not survey.target or rng.random() < _RANDOM_SHARE
        code = int(rng.integers(count)) if is_random else (label + position) % count
        if question.name == survey.target:
            code = label
        answers[question.name] = _answer(question, code, rng)
    return answers


def _answer(question: Question, code: int, rng: np.random.Generator) -> Any:
    """An answer to a question that has this code; to a multiple choice, one with this option and some others."""
    if question.kind == "multiple":
        return [one for other, one in enumerate(question.options) if other == code or rng.random() < _RANDOM_SHARE]
    if question.kind == "ranking":
        return question.labels()[code].split(" > ")
    if question.kind not in BINNED:
        return question.options[code]
    cuts: list[Any] = [
        dt.date.fromisoformat(str(cut)).toordinal() if question.kind == "date" else cut for cut in question.cuts
    ]
    ends = (cuts[0] - 1, *cuts, cuts[-1] + 1)
    value = float(rng.uniform(ends[code], ends[code + 1]))
    return dt.date.fromordinal(int(value)).isoformat() if question.kind == "date" else value
