"""Shares from answers at different levels: right on average whoever chose which level, and covered by intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm
from tests.statistical.conftest import Verdict

from sfumato.survey import Survey
from sfumato.survey.frequencies import frequencies, weights
from sfumato.survey.perturbation import randomise

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
LAW = np.array([0.5, 0.3, 0.2])


def answered(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """True answers, and levels that depend on them: who has something to hide takes the careful one."""
    truth = rng.choice(3, PEOPLE, p=LAW)
    levels = np.where(truth == 2, rng.choice(3, PEOPLE, p=[0.8, 0.15, 0.05]), rng.choice(3, PEOPLE, p=[0.1, 0.3, 0.6]))
    retention = np.array(_SURVEY.retention)[levels, 0]
    draws = rng.integers(0, 2**53, 2 * PEOPLE).reshape(-1, 2)
    told = np.where(draws[:, 0] / 2**53 < retention, truth, draws[:, 1] % 3)
    return truth, levels, told[:, None]


@pytest.mark.statistical(checks=6)
def test_shares_are_unbiased_and_covered(rng: np.random.Generator, verdict: Verdict) -> None:
    """A planted fault: weighting levels by how sure they are, which lets trusting people speak for careful ones."""
    means, pooled, covered = np.zeros((RUNS, 3)), np.zeros((RUNS, 3)), np.zeros(3)
    squares = np.array(_SURVEY.retention)[:, 0] ** 2
    for run in range(RUNS):
        _, levels, rows = answered(rng)
        retention = np.array(_SURVEY.retention)[levels, 0]
        found = weights(rows[:, 0], retention, 3)
        means[run] = found.mean(0)
        pooled[run] = np.average(found, axis=0, weights=squares[levels])
        shares = frequencies(_SURVEY, levels, rows)
        covered += [share.low <= law <= share.high for share, law in zip(shares, LAW, strict=True)]
    for at in range(3):
        error = means[:, at].std(ddof=1) / np.sqrt(RUNS)
        verdict.accept(2 * norm.sf(abs(means[:, at].mean() - LAW[at]) / error), f"the mean of share {at}")
        verdict.accept(binom.cdf(covered[at], RUNS, 0.93), f"the coverage of share {at}, at least 93 %")
    error = pooled[:, 2].std(ddof=1) / np.sqrt(RUNS)
    verdict.reject(2 * norm.sf(abs(pooled[:, 2].mean() - LAW[2]) / error), "levels weighted by how sure they are")
    verdict.reject(binom.cdf(0.9 * RUNS, RUNS, 0.93), "intervals that cover nine in ten")


@pytest.mark.statistical(checks=3)
def test_randomised_response_keeps_its_promise(rng: np.random.Generator, verdict: Verdict) -> None:
    """No answer is told more than e^ε times as often by one person than by another."""
    count, size = 200_000, 3
    for level, (_, epsilon) in enumerate(_SURVEY.levels):
        kept = _SURVEY.retention[level]
        told = [randomise(np.full((count, 1), v), [size], kept, rng.integers(0, 2**53, 2 * count)) for v in (0, 1)]
        share = [float((rows == 0).mean()) for rows in told]
        expected = kept[0] + (1 - kept[0]) / size, (1 - kept[0]) / size
        assert expected[0] / expected[1] == pytest.approx(np.exp(epsilon))
        z = max(abs(s - e) / np.sqrt(e * (1 - e) / count) for s, e in zip(share, expected, strict=True))
        verdict.accept(min(1.0, 4 * norm.sf(z)), f"the law at level {level}")
        wrong = expected[0] * 1.02
        verdict.reject(2 * norm.sf(abs(wrong - expected[0]) / np.sqrt(0.25 / count)), "an ε that is too large")
