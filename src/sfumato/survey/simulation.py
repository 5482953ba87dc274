"""Simulated respondents who answer a survey at a running service, with the privacy attitudes that zhang2005 cites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import GuidanceRefused, SurveyError
from sfumato.survey.definition import Survey
from sfumato.survey.respondent import Choice, HttpConnection, Respondent

PRIVACY_SEGMENTS = {"fundamentalist": 0.17, "pragmatist": 0.56, "unconcerned": 0.27}
"""Shares of people by their attitude to privacy (Cranor et al. 1999, cited by zhang2005, section 2.2)."""


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
        rows: true answers to sample respondents from; without them answers are random.

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
    """Random answers to all questions of a survey."""
    answers: dict[str, Any] = {}
    for question in survey.questions:
        if question.kind == "number":
            low, high = question.cuts[0], question.cuts[-1]
            answers[question.name] = float(rng.uniform(low - (high - low + 1) / 2, high + (high - low + 1) / 2))
        elif question.kind == "multiple":
            answers[question.name] = [option for option in question.options if rng.random() < 0.3]
        else:
            answers[question.name] = str(rng.choice(list(question.options)))
    return answers
