"""Known inputs and known samples against turned data: what giannella2010's Figures 1 to 11 vary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from sfumato.attacks import ATTACKS
from sfumato.attacks.known_input import Span
from sfumato.attacks.linkage.inner_products import Rotated, link
from sfumato.experiments import Job, _data
from sfumato.experiments import _array_evidence as lab
from sfumato.kernels.hypersphere import uniform_breach

MEAN = np.full(3, 10.0)
COVARIANCE = np.array([[1, 1.5, 0.5], [1.5, 3, 2.5], [0.5, 2.5, 75.0]])
DIAGONAL = np.diag([0.1, 2.0, 40.0])

Draw = Callable[[np.random.Generator, int, int], tuple[Any, Any]]
"""Data and a sample, of so many records each."""


@cache
def gaussian(rows: int) -> Any:
    """A 100-variate Gaussian as in footnote 18; its covariance has rank 99."""
    rng = np.random.default_rng(18)
    root = rng.normal(size=(100, 100))
    root -= root.mean(axis=0)
    return rng.normal(size=100) + rng.normal(size=(rows, 100)) @ root / np.sqrt(99)


@cache
def letters() -> Any:
    """Letter Recognition without repeated rows: 18,668 x 16 (section IV-E)."""
    return np.unique(_data.letter(), axis=0)


def known_inputs(
    data: Any, counts: Iterable[int], runs: int, job: Job, epsilons: Sequence[float]
) -> list[dict[str, Any]]:
    """Link some known records, and find the probability ρ(ε) with which the most endangered other is breached."""
    out = []
    for known in counts:
        for run in range(runs):
            rng = job.rng(known, run)
            rows = data @ lab.orthogonal(rng, data.shape[1]).T
            places = rng.choice(len(rows), known, replace=False)
            began = time.perf_counter()
            i, j = link(data[places], Rotated(rows, 1e-9))
            took = time.perf_counter() - began
            row = {"known": known, "run": run, "linked": len(i), "wrong": int((places[i] != j).sum()), "seconds": took}
            span = Span.of(data[places[i]], rows[j], translated=False) if len(i) else None
            for epsilon in epsilons:
                rho = 0.0
                if span is not None:
                    away, length = span.away(np.delete(rows, j, axis=0))
                    rho = float(uniform_breach(span.unknown, away, epsilon * length).max())
                out.append({**row, "epsilon": epsilon, "rho": rho})
    return out


def normal(mean: Any, covariance: Any) -> Draw:
    """Normal records."""
    return lambda rng, rows, sample: (
        rng.multivariate_normal(mean, covariance, rows),
        rng.multivariate_normal(mean, covariance, sample),
    )


def parted(data: Any) -> Draw:
    """Some records of a table, and a sample of the others."""

    def draw(rng: np.random.Generator, rows: int, sample: int) -> tuple[Any, Any]:
        order = rng.permutation(len(data))
        return data[order[:rows]], data[order[rows : rows + sample]]

    return draw


def mixed(rng: np.random.Generator, rows: int, sample: int) -> tuple[Any, Any]:
    """The asymmetric mixture of section V-G."""

    def some(count: int) -> Any:
        one = rng.multivariate_normal(MEAN, COVARIANCE, count)
        other = rng.multivariate_normal([20, 30, 40], DIAGONAL, count)
        return np.where((rng.random(count) < 0.2)[:, None], one, other)

    return some(rows), some(sample)


def breaches(
    draw: Draw,
    runs: int,
    rows: int,
    sample: int,
    epsilons: Sequence[float],
    job: Job,
    *path: int,
    moved: bool = False,
    **options: Any,
) -> list[dict[str, Any]]:
    """Breach rates of the known-sample attack, each run with its own data and turn; and their standard errors."""
    rates: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    for run in range(runs):
        rng = job.rng(run, *path)
        real, known = draw(rng, rows, sample)
        size = real.shape[1]
        turned = real @ lab.orthogonal(rng, size).T + (100 * rng.normal(size=size) if moved else 0)
        evidence = lab.turned(turned, lab.turned_model(size, translated=moved), sample=known)
        guess = ATTACKS["known-sample"](**options).estimate(evidence).values
        for epsilon, found in rates.items():
            found.append(lab.breached(guess, real, epsilon))
    return [
        {"epsilon": epsilon, "rate": float(np.mean(found)), "error": float(np.std(found) / np.sqrt(runs))}
        for epsilon, found in rates.items()
    ]
