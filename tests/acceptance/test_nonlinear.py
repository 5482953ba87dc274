"""Nonlinear attacks: on data that are not normal, the best linear estimate is no bound for an attacker."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests import realdata

from sfumato.attacks import Estimate, Evidence, score
from sfumato.attacks.evidence.arrays import Array, noisy_copy, records, rmse

ROWS, NOISE = 20_000, 5.0


def noisy(real: Array, deviation: float, rng: np.random.Generator) -> Evidence:
    return noisy_copy(real + deviation * rng.normal(size=real.shape), np.eye(real.shape[1]) * deviation**2)


def oracle(points: Array, weights: Array, observed: Array) -> Array:
    """The posterior mean under the true distribution."""
    joint = weights * stats.norm.pdf(observed[:, None], points, NOISE)
    return joint @ points / joint.sum(axis=1)


GRID = np.linspace(-200, 200, 2001)
DENSITIES = {
    "bimodal": (stats.norm(-10, 1).pdf(GRID) + stats.norm(10, 1).pdf(GRID), 0.9),
    "zero-inflated": (0.9 * (np.abs(GRID) < 1e-9) / 0.2 + 0.1 * stats.norm(0, 30).pdf(GRID), 0.9),
    "exponential": (stats.expon(scale=5).pdf(GRID), 0.95),
    "uniform": (stats.uniform(-10, 20).pdf(GRID), 0.99),
}


@pytest.mark.parametrize(
    "name", [name if name == "bimodal" else pytest.param(name, marks=pytest.mark.slow) for name in DENSITIES]
)
def test_the_density_behind_the_noise_is_estimated(name: str) -> None:
    """UDR is within 2 % of the posterior mean under the true distribution, and UDR and the mixture beat BE-DR."""
    rng = np.random.default_rng(5)
    weights = DENSITIES[name][0] / DENSITIES[name][0].sum()
    real = rng.choice(GRID, (ROWS, 1), p=weights)
    evidence = noisy(real, NOISE, rng)
    best = float(np.sqrt(np.mean((oracle(GRID, weights, evidence.numbers[0].values[:, 0]) - real[:, 0]) ** 2)))
    linear = rmse("bayes", evidence, real)
    assert rmse("udr", evidence, real) == pytest.approx(best, rel=0.02)
    assert rmse("udr", evidence, real) < linear * DENSITIES[name][1]
    assert rmse("mixture", evidence, real) < linear * (DENSITIES[name][1] + 0.01)


def test_on_normal_data_nonlinear_attacks_equal_the_linear_one() -> None:
    rng = np.random.default_rng(6)
    real = rng.normal(0, 10, (ROWS, 1))
    evidence = noisy(real, NOISE, rng)
    linear = rmse("bayes", evidence, real)
    assert rmse("udr", evidence, real) == pytest.approx(linear, rel=0.01)
    assert rmse("mixture", evidence, real) == pytest.approx(linear, rel=0.01)


@pytest.mark.parametrize(("separation", "most"), [(5, 0.9), (10, 0.7), (20, 0.6)])
def test_clusters_are_distinguished(separation: float, most: float) -> None:
    rng = np.random.default_rng(7)
    centres = separation * rng.normal(size=(5, 10))
    real = centres[rng.integers(0, 5, ROWS)] + 2 * rng.normal(size=(ROWS, 10))
    evidence = noisy(real, NOISE, rng)
    assert rmse("mixture", evidence, real, components=5) < most * rmse("bayes", evidence, real)


def test_a_breach_rate_needs_a_baseline() -> None:
    """Guessing the mean of each attribute "breaches" 89 % of the distinct Letter records (ERRATA, G7)."""
    real = np.unique(realdata.letter(), axis=0)
    found = score(Estimate("mean", tuple(f"c{i}" for i in range(16)), real), records(real))
    assert found.breaches["entry"].baseline.estimate == pytest.approx(0.89, abs=0.01)
    assert found.breaches["cosine"].baseline.estimate == pytest.approx(0.51, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deviation", "linear", "mixed"),
    [(1, 0.840, 0.715), (2, 1.332, 1.182), (4, 1.819, 1.763)],
)
def test_letters(deviation: float, linear: float, mixed: float) -> None:
    real = realdata.letter()
    evidence = noisy(real, deviation, np.random.default_rng(8))
    assert rmse("bayes", evidence, real) == pytest.approx(linear, rel=0.01)
    assert rmse("mixture", evidence, real, components=20, rows=20_000) < mixed * 1.01


@pytest.mark.slow
@pytest.mark.parametrize(("deviation", "linear", "mixed", "single"), [(5, 4.04, 3.83, 3.86), (10, 6.63, 6.36, 6.45)])
def test_adults(deviation: float, linear: float, mixed: float, single: float) -> None:
    real = realdata.adult()
    evidence = noisy(real, deviation, np.random.default_rng(9))
    assert rmse("bayes", evidence, real) == pytest.approx(linear, rel=0.01)
    assert rmse("mixture", evidence, real, components=20, rows=40_000) < mixed * 1.01
    assert rmse("udr", evidence, real) == pytest.approx(single, rel=0.01)
