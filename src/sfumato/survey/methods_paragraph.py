"""A paragraph about a survey's method, for a report: what was asked of whom, how it was perturbed and estimated."""

from __future__ import annotations

from importlib.metadata import version

from sfumato.survey.definition import Survey
from sfumato.survey.results import Status


def methods_paragraph(survey: Survey, status: Status, *, invited: bool) -> str:
    """What a report says about the method, with the figures of the survey as it stands."""
    chosen = ", ".join(f"{count:,} at {name}" for name, count in status.levels.items()) or "none yet"
    people = "people with an invitation, one answer for each" if invited else "anybody who had the link"
    said = (
        f"“{survey.title}” asked {len(survey.questions)} questions until {survey.deadline}, open to {people}. "
        f"It received {status.answers:,} answers ({chosen}). "
    )
    said += _guided(survey, status) if survey.mode == "guided" else _randomised(survey)
    alarms = "No test for forged answers raised an alarm. "
    if status.alarms:
        alarms = f"Tests for forged answers raised {len(status.alarms)} alarms: {'; '.join(status.alarms)}. "
    return (
        said + alarms + f"Software: Sfumato {version('sfumato')}; fingerprint of the questions: {status.fingerprint}."
    )


def _guided(survey: Survey, status: Status) -> str:
    return (
        "Answers were perturbed on the respondents’ own devices by the guided scheme of Zhang, Wang and Zhao (2005), "
        f"with its errors corrected; the answer to “{survey.class_question.text}” was sent unperturbed, and "
        f"{status.clear:,} respondents agreed to send all answers unperturbed. Shares are of unperturbed answers, "
        "with Wilson’s 95 % intervals. "
    )


def _randomised(survey: Survey) -> str:
    levels = ", ".join(f"{name} (ε = {epsilon:g} per question)" for name, epsilon in survey.levels)
    totals = ", ".join(f"{total:g} at {name}" for (name, _), total in zip(survey.levels, survey.totals, strict=True))
    return (
        "Each answer was perturbed on the respondent’s own device, before it was sent, by k-ary randomised response "
        "(Warner 1965; Kairouz, Bonawitz and Ramage 2016), at a privacy level that the respondent chose: "
        f"{levels}. This is ε-local differential privacy for each question; over all questions, ε adds up to "
        f"{totals}. Shares are unbiased estimates in which each respondent counts once, with 95 % confidence intervals "
        "that account for sampling and for perturbation. "
    )
