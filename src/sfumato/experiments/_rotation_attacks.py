"""Known-input and known-sample attacks on rotated data: the simulations behind Figures 1 to 11 of giannella2010."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from sfumato.attacks import ATTACKS
from sfumato.attacks.evidence.arrays import breach_rate, linear_map_model, mapped_copy, random_orthogonal
from sfumato.attacks.known_input import Span
from sfumato.attacks.linkage.inner_products import ReleasedRows, link
from sfumato.experiments import Job, _data
from sfumato.experiments._paper_algorithms import algorithm_iv_a3
from sfumato.kernels.hypersphere import uniform_breach_probability

MEAN = np.full(3, 10.0)
COVARIANCE = np.array([[1, 1.5, 0.5], [1.5, 3, 2.5], [0.5, 2.5, 75.0]])
DIAGONAL = np.diag([0.1, 2.0, 40.0])

Sampler = Callable[[np.random.Generator, int, int], tuple[Any, Any]]
"""Draws the data and a separate sample of the same population, given the sizes of both."""


@cache
def gaussian_records(rows: int) -> Any:
    """Records of a 100-variate Gaussian as in footnote 18; its covariance has rank 99."""
    rng = np.random.default_rng(18)
    root = rng.normal(size=(100, 100))
    root -= root.mean(axis=0)
    return rng.normal(size=100) + rng.normal(size=(rows, 100)) @ root / np.sqrt(99)


@cache
def distinct_letters() -> Any:
    """The distinct rows of Letter Recognition: 18,668 x 16 (section IV-E)."""
    return np.unique(_data.letter(), axis=0)


def known_input_breaches(
    data: Any, counts: Iterable[int], runs: int, job: Job, epsilons: Sequence[float]
) -> list[dict[str, Any]]:
    """Link known inputs to rotated rows, and compute ρ(ε), the largest breach probability of any other record."""
    out = []
    for known in counts:
        for run in range(runs):
            rng = job.rng(known, run)
            rows = data @ random_orthogonal(rng, data.shape[1]).T
            inputs = rng.choice(len(rows), known, replace=False)
            start = time.perf_counter()
            i, j = link(data[inputs], ReleasedRows(rows, 1e-9))
            seconds = time.perf_counter() - start
            start = time.perf_counter()
            algorithm_iv_a3(data[inputs], rows)
            paper = time.perf_counter() - start
            wrong = int((inputs[i] != j).sum())
            row = {
                "known": known,
                "run": run,
                "linked": len(i),
                "wrong": wrong,
                "seconds": seconds,
                "paper_seconds": paper,
            }
            span = Span.of(data[inputs[i]], rows[j], translated=False) if len(i) else None
            for epsilon in epsilons:
                rho = 0.0
                if span is not None:
                    away, length = span.distances(np.delete(rows, j, axis=0))
                    rho = float(uniform_breach_probability(span.unknown_dimensions, away, epsilon * length).max())
                out.append({**row, "epsilon": epsilon, "rho": rho})
    return out


def normal_sampler(mean: Any, covariance: Any) -> Sampler:
    """Samples of a normal distribution."""
    return lambda rng, rows, sample: (
        rng.multivariate_normal(mean, covariance, rows),
        rng.multivariate_normal(mean, covariance, sample),
    )


def split_sampler(data: Any) -> Sampler:
    """Random records of a table as the data, and a sample of its other records."""

    def draw(rng: np.random.Generator, rows: int, sample: int) -> tuple[Any, Any]:
        order = rng.permutation(len(data))
        return data[order[:rows]], data[order[rows : rows + sample]]

    return draw


def mixture_sampler(rng: np.random.Generator, rows: int, sample: int) -> tuple[Any, Any]:
    """Samples of the asymmetric mixture of two Gaussians of section V-G."""

    def draw(count: int) -> Any:
        one = rng.multivariate_normal(MEAN, COVARIANCE, count)
        other = rng.multivariate_normal([20, 30, 40], DIAGONAL, count)
        return np.where((rng.random(count) < 0.2)[:, None], one, other)

    return draw(rows), draw(sample)


def known_sample_breaches(
    sampler: Sampler,
    runs: int,
    rows: int,
    sample: int,
    epsilons: Sequence[float],
    job: Job,
    *path: int,
    translated: bool = False,
    **options: Any,
) -> list[dict[str, Any]]:
    """Breach rates of the known-sample attack and their standard errors; each run has its own data and rotation."""
    rates: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    for run in range(runs):
        rng = job.rng(run, *path)
        original, known = sampler(rng, rows, sample)
        size = original.shape[1]
        mapped = original @ random_orthogonal(rng, size).T + (100 * rng.normal(size=size) if translated else 0)
        evidence = mapped_copy(mapped, linear_map_model(size, translated=translated), sample=known)
        estimate = ATTACKS["known-sample"](**options).estimate(evidence).values
        for epsilon, found in rates.items():
            found.append(breach_rate(estimate, original, epsilon))
    return [
        {"epsilon": epsilon, "rate": float(np.mean(found)), "error": float(np.std(found) / np.sqrt(runs))}
        for epsilon, found in rates.items()
    ]
