"""Estimated shares of answers at mixed privacy levels are unbiased, and their confidence intervals cover the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm
from tests.statistical.conftest import Verdict

from sfumato.survey import Survey, plausibility
from sfumato.survey.example import EXAMPLE
from sfumato.survey.frequencies import frequencies, unbiased_indicators
from sfumato.survey.perturbation import randomised_response

Array = Any

_SURVEY = Survey.loads(
    """
title = "t"
consent = "c"
deadline = "2030-01-01"
levels = { careful = 0.5, balanced = 1.0, open = 2.5 }
[questions.q]
options = ["a", "b", "c"]
"""
)
PEOPLE = 400
RUNS = 3000
DISTRIBUTION = np.array([0.5, 0.3, 0.2])


def answered(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """True answers, and levels that depend on them: respondents with a sensitive answer choose the careful level."""
    truth = rng.choice(3, PEOPLE, p=DISTRIBUTION)
    levels = np.where(truth == 2, rng.choice(3, PEOPLE, p=[0.8, 0.15, 0.05]), rng.choice(3, PEOPLE, p=[0.1, 0.3, 0.6]))
    retention = np.array(_SURVEY.retention)[levels, 0]
    draws = rng.integers(0, 2**53, 2 * PEOPLE).reshape(-1, 2)
    sent = np.where(draws[:, 0] / 2**53 < retention, truth, draws[:, 1] % 3)
    return truth, levels, sent[:, None]


@pytest.mark.statistical(checks=6)
def test_shares_are_unbiased_and_covered(rng: np.random.Generator, verdict: Verdict) -> None:
    """The planted fault weights levels by their precision, so that open respondents represent careful ones."""
    means, pooled, covered = np.zeros((RUNS, 3)), np.zeros((RUNS, 3)), np.zeros(3)
    squares = np.array(_SURVEY.retention)[:, 0] ** 2
    for run in range(RUNS):
        _, levels, rows = answered(rng)
        retention = np.array(_SURVEY.retention)[levels, 0]
        found = unbiased_indicators(rows[:, 0], retention, 3)
        means[run] = found.mean(0)
        pooled[run] = np.average(found, axis=0, weights=squares[levels])
        shares = frequencies(_SURVEY, levels, rows)
        covered += [one.share.low <= truth <= one.share.high for one, truth in zip(shares, DISTRIBUTION, strict=True)]
    for at in range(3):
        error = means[:, at].std(ddof=1) / np.sqrt(RUNS)
        verdict.accept(2 * norm.sf(abs(means[:, at].mean() - DISTRIBUTION[at]) / error), f"the mean of share {at}")
        verdict.accept(binom.cdf(covered[at], RUNS, 0.93), f"the coverage of share {at}, at least 93 %")
    error = pooled[:, 2].std(ddof=1) / np.sqrt(RUNS)
    verdict.reject(2 * norm.sf(abs(pooled[:, 2].mean() - DISTRIBUTION[2]) / error), "precision weights")
    verdict.reject(binom.cdf(0.9 * RUNS, RUNS, 0.93), "intervals that cover nine in ten")


@pytest.mark.statistical(checks=1)
def test_honest_answers_raise_no_alarm_and_forged_ones_do(rng: np.random.Generator, verdict: Verdict) -> None:
    """Honest people who all answer alike, which is the hardest case, against a tenth of forged answers at one level."""
    survey, runs, people = Survey.loads(EXAMPLE), 60, 200
    size, alarms = np.array(survey.sizes), {False: 0, True: 0}
    for _ in range(runs):
        levels = rng.integers(0, 3, people)
        draws = rng.integers(0, 2**53, (people, len(size), 2))
        kept = draws[..., 0] / 2**53 < np.array(survey.retention)[levels]
        rows = np.where(kept, 0, draws[..., 1] % size)
        alarms[False] += bool(plausibility.alarms(survey, levels, rows))
        forged = rng.permutation(np.flatnonzero(levels == 0))[: people // 10]
        rows[forged] = size - 1
        alarms[True] += bool(plausibility.alarms(survey, levels, rows))
    rate = plausibility.FALSE_ALARM_RATE
    verdict.accept(binom.sf(alarms[False] - 1, runs, rate), "alarms about honest answers")
    verdict.reject(binom.sf(alarms[True] - 1, runs, rate), "alarms about forged answers")


@pytest.mark.statistical(checks=3)
def test_randomised_response_satisfies_local_differential_privacy(rng: np.random.Generator, verdict: Verdict) -> None:
    """The probabilities of sending an answer differ by a factor of at most e^ε between any two true answers."""
    count, size = 200_000, 3
    for level, (_, epsilon) in enumerate(_SURVEY.levels):
        kept = _SURVEY.retention[level]
        sent = [
            randomised_response(np.full((count, 1), v), [size], kept, rng.integers(0, 2**53, 2 * count)) for v in (0, 1)
        ]
        share = [float((rows == 0).mean()) for rows in sent]
        expected = kept[0] + (1 - kept[0]) / size, (1 - kept[0]) / size
        assert expected[0] / expected[1] == pytest.approx(np.exp(epsilon))
        z = max(abs(s - e) / np.sqrt(e * (1 - e) / count) for s, e in zip(share, expected, strict=True))
        verdict.accept(min(1.0, 4 * norm.sf(z)), f"the distribution at level {level}")
        wrong = expected[0] * 1.02
        verdict.reject(2 * norm.sf(abs(wrong - expected[0]) / np.sqrt(0.25 / count)), "an ε that is too large")
