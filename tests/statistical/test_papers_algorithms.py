"""The papers' own algorithms, written literally, agree with ours in distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.experiments._paper_algorithms import Array, MultiPert, algorithm_1, algorithm_2, algorithm_3

from . import pvalues as p
from . import worlds
from .conftest import Verdict

N = 200_000
FIDELITIES = (0.8, 0.6, 0.5, 0.3)


def _one(rng: np.random.Generator, noises: Array, k_x: Array) -> Array:
    return algorithm_1(rng, N, noises, k_x)


def _two(rng: np.random.Generator, noises: Array, k_x: Array) -> Array:
    return algorithm_2(rng, N, noises, k_x)


def _three(rng: np.random.Generator, noises: Array, k_x: Array) -> Array:
    """The second and last level first, the others on demand."""
    old = algorithm_1(rng, N, noises[[1, 3]], k_x)
    new = algorithm_3(rng, old, noises[[1, 3]], noises[[0, 2]], k_x)
    return np.stack([new[:, 0], old[:, 0], new[:, 1], old[:, 1]], axis=1)


@pytest.mark.parametrize("algorithm", [_one, _two, _three])
@pytest.mark.statistical(checks=6)
def test_li2012(
    verdict: Verdict,
    rng: np.random.Generator,
    key: sf.Key,
    algorithm: Callable[[np.random.Generator, Array, Array], Array],
) -> None:
    """Any linear combination of noises over levels and attributes has one distribution in both."""
    values = rng.normal(size=(N, 2)) @ np.array([[2.0, 0.7], [0.0, 1.1]])
    table = pa.table({"c0": values[:, 0], "c1": values[:, 1]})
    scheme = worlds.gaussian(2, "a = 0.8\nb = 0.5\n").fit(table)  # 0.6 and 0.3 are on demand
    copies = scheme.release_levels(table, FIDELITIES, key)
    given = np.array([sf.Level(sf.Manifest.of(c).fidelity).noise for c in copies])
    ours = np.stack([worlds.matrix(copy) - values for copy in copies], axis=1)
    theirs = algorithm(rng, given, np.cov(values.T))
    for _ in range(6):
        weights = rng.normal(size=ours.shape[1:])
        one, other = (np.tensordot(noise, weights, 2) for noise in (ours, theirs))
        verdict.accept(p.same_distribution_p(one, other), "a random combination")
    verdict.reject(p.same_distribution_p(one, other * 1.1), "noise 10 % too large")
    independent = np.sqrt(given)[None, :, None] * rng.normal(size=ours.shape) @ np.linalg.cholesky(np.cov(values.T)).T
    increment = [noise[:, 1, 0] - noise[:, 0, 0] for noise in (ours, independent)]
    verdict.reject(p.same_distribution_p(*increment), "independent noise")


@pytest.mark.statistical(checks=9)
def test_xiao2009(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """`multi-pert` with its history, in the order 30, 10, 50 %: the same joint frequencies."""
    size, rows, levels = 4, 100_000, (0.3, 0.1, 0.5)
    data = rng.choice(size, rows, p=[0.5, 0.25, 0.15, 0.1])
    table = pa.table({"x": data})
    scheme = worlds.uniform(size, "a = 0.5\nb = 0.3\nc = 0.1\n").fit(table)
    ours = [worlds.codes(scheme.release(table, level, key)) for level in levels]
    paper = MultiPert(rng, data, size)
    theirs = [paper.release(level) for level in levels]

    def pattern(ys: list[Array]) -> Array:
        """Which of X, Ya, Yb, Yc are equal."""
        a, b, c = ys
        return (c == data) + 2 * (a == c) + 4 * (b == a) + 8 * (b == data)

    counts = [np.bincount(pattern(ys), minlength=16) for ys in (ours, theirs)]
    common = np.argsort(counts[1])[::-1][:9]
    for cell in common:
        verdict.accept(_equal_rates_p(counts[0][cell], counts[1][cell]), f"pattern {cell}")
    naive = [np.where(rng.random(rows) < level, data, rng.integers(0, size, rows)) for level in levels]
    rejected = np.bincount(pattern(naive), minlength=16)
    worst = min(_equal_rates_p(rejected[cell], counts[1][cell]) for cell in common)
    verdict.reject(worst, "independent perturbation")
    assert max(map(len, paper.history)) > 1


def _equal_rates_p(one: int, other: int) -> float:
    """Two counts of rare or common cells in tables of equal size: given their sum, the first is hypergeometric."""
    distribution = stats.hypergeom(200_000, int(one + other), 100_000)
    return float(min(1.0, 2 * min(distribution.cdf(one), distribution.sf(one - 1))))
