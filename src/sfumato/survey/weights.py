"""Weighted shares: post-stratification of a randomised survey to what is known of the population.

The shares of a question in the population are known, from a census say; among respondents they differ. In each group
the share of an answer is the ratio of two unbiased means, of the products of indicators and of the group's indicators;
the groups count as much as they do in the population (Holt and Smith 1979). The error is that of linearised ratios.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.errors import SurveyError, nearest
from sfumato.kernels import Floats
from sfumato.survey.definition import Survey
from sfumato.survey.frequencies import AnswerShare, Estimate, indicators
from sfumato.survey.guidance_settings import require
from sfumato.survey.perturbation import Integers

_FEWEST = 100
"""Answers that are weighted: the interval takes means to be normally distributed."""
_FEWEST_DEVIATIONS = 4.0
"""A group must be so many standard errors from being empty: else the ratio may be anything."""


def weighted_shares(
    survey: Survey, levels: Integers, rows: Integers, question: str, population: Mapping[str, float]
) -> list[AnswerShare]:
    """The shares of all other answers, if the answers to one question had these shares.

    Args:
        survey: a randomised survey.
        levels: the level of each row.
        rows: the perturbed answers.
        question: the name of the question by which respondents are weighted.
        population: the share of each of its answers in the population.

    """
    groups, weights, labels = _groups(survey, levels, rows, question, population)
    if len(rows) < _FEWEST:
        raise SurveyError(f"weighted shares need at least {_FEWEST} answers, and there are {len(rows)}; wait for more")
    sizes = groups.mean(axis=1)
    errors = groups.std(axis=1, ddof=1) / np.sqrt(groups.shape[1])
    for label, size, error in zip(labels, sizes, errors, strict=True):
        if not size >= _FEWEST_DEVIATIONS * error:
            raise SurveyError(
                f"each group must be surely there, and the share of {label!r} is {size:.1%} with a standard error of "
                f"{error:.1%}; wait for more answers, or weight by a question with fewer answers"
            )
    found = []
    for item in survey.items:
        if item.question == question:
            continue
        for answer, codes in item.outcomes:
            given = indicators(survey, levels, rows, item, codes)
            ratios = (groups * given).mean(axis=1) / sizes
            influence = ((weights / sizes)[:, None] * groups * (given - ratios[:, None])).sum(axis=0)
            error = float(influence.std(ddof=1) / np.sqrt(len(influence)))
            found.append(AnswerShare(item.name, answer, Estimate(float(weights @ ratios), error).interval))
    return found


def weighable(survey: Survey) -> dict[str, tuple[str, ...]]:
    """The questions by which respondents can be weighted, those with one answer, and their answers."""
    if survey.mode != "randomised":
        return {}
    return {item.question: item.labels for item in survey.items if not item.option and not item.ranked}


def _groups(
    survey: Survey, levels: Integers, rows: Integers, question: str, population: Mapping[str, float]
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """The indicators of each group, `(group, row)`, the groups' shares in the population, and their names."""
    require(survey.mode == "randomised", "the survey that is weighted must be randomised", survey.mode)
    singles = {item.question: item for item in survey.items if not item.option and not item.ranked}
    if question not in singles:
        raise SurveyError(f"respondents are weighted by a question with one answer; {nearest(question, list(singles))}")
    item = singles[question]
    for label in population:
        if label not in item.labels:
            raise SurveyError(f"{question} has no answer {label!r}; {nearest(label, list(item.labels))}")
    weights = np.array([population.get(label, np.nan) for label in item.labels])
    if not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-6:
        raise SurveyError(
            f"the shares of all answers to {question} ({', '.join(item.labels)}) must add up to 1, got "
            f"{', '.join(f'{label} {share:g}' for label, share in population.items())}"
        )
    groups = np.stack([indicators(survey, levels, rows, item, [code]) for code in range(item.size)])
    return groups, weights, item.labels
