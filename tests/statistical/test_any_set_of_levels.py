"""For any set of levels, asked in any order, row by row in any partition: one Markov path."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf

from . import pvalues as p
from . import worlds
from .conftest import Verdict

N = 400_000
ASKED = (0.3, 0.8, 0.97, 0.5, 0.65, 0.2, 0.08)


@pytest.mark.statistical(checks=2 * len(ASKED) + len(ASKED) * (len(ASKED) - 1) // 2)
def test_noise_is_brownian_in_its_variance(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """Covariance min(σi²,σj²)·K_X (li2012, eq. 15), which is: independent increments (Theorem 5)."""
    table = worlds.numbers(rng, N, 2)
    scheme = worlds.gaussian(2).fit(table)
    copies = [scheme.release(table, level, key) for level in ASKED]  # out of order, one at a time
    noises = [sf.Level(sf.Manifest.of(copy).fidelity).noise for copy in copies]
    paths = [worlds.white_noise(table, c)[1] * np.sqrt(t) for c, t in zip(copies, noises, strict=True)]
    order = np.argsort(noises)
    increments, before, at = [], np.zeros(N), 0.0
    for i in order:
        increments.append((paths[i] - before) / np.sqrt(noises[i] - at))
        before, at = paths[i], noises[i]
    for increment in increments:
        verdict.accept(p.variance_p(increment, 1.0), "variance of an increment")
        verdict.accept(p.normal_p(increment), "normality of an increment")
    for i in range(len(increments)):
        for j in range(i):
            verdict.accept(p.independent_p(increments[j], increments[i]), f"increments {j} and {i}")
    verdict.reject(p.variance_p(0.985 * increments[2], 1.0), "increment 1.5 % too small")
    verdict.reject(p.independent_p(increments[0], increments[1] + 0.02 * increments[0]), "keeps 2 % of a lower level")
    swapped = (paths[order[1]] - paths[order[2]]) / np.sqrt(noises[order[2]])
    verdict.reject(p.variance_p(swapped, 1.0), "levels swapped")


@pytest.mark.statistical(checks=2)
def test_many_levels_at_once_are_on_the_same_path(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """A ladder of 30 levels: the finest increments are right too."""
    rungs = np.linspace(0.9, 0.1, 30)
    table = worlds.numbers(rng, 100_000, 1)
    ladder = "".join(f"l{i} = {f}\n" for i, f in enumerate(rungs))
    scheme = worlds.gaussian(1, ladder).fit(table)
    copies = scheme.release_levels(table, list(rungs), key)
    noises = np.array([sf.Level(f).noise for f in rungs])
    paths = [worlds.white_noise(table, c)[0] * np.sqrt(t) for c, t in zip(copies, noises, strict=True)]
    steps = np.diff(np.vstack([np.zeros(len(table)), *paths]), axis=0) / np.sqrt(np.diff([0, *noises]))[:, None]
    verdict.accept(p.variance_p(steps.ravel(), 1.0), "all increments")
    verdict.accept(p.independent_p(steps[:-1].ravel(), steps[1:].ravel()), "neighbouring increments")
    verdict.reject(p.variance_p(steps.ravel() * 0.99, 1.0), "increments 1 % too small")
    verdict.reject(p.independent_p(steps[:-1].ravel(), (steps[1:] + 0.02 * steps[:-1]).ravel()), "2 % kept")


@pytest.mark.statistical(checks=6)
def test_categories_are_a_markov_chain(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """Pr[Yi+1 | Yi] is a uniform perturbation with pi+1/pi (xiao2009, eq. 10), whatever X is (eq. 9)."""
    size, levels = 6, (0.9, 0.6, 0.35)
    table = worlds.categories(rng, N, size)
    scheme = worlds.uniform(size).fit(table)
    copies = {level: scheme.release(table, level, key) for level in (0.6, 0.35, 0.9)}
    given = [sf.Manifest.of(copies[level]).fidelity for level in levels]
    x, *ys = worlds.codes(table), *(worlds.codes(copies[level]) for level in levels)
    for i in (1, 2):
        ratio = given[i] / given[i - 1]
        stay = ys[i] == ys[i - 1]
        verdict.accept(p.rate_p(int(stay.sum()), N, ratio + (1 - ratio) / size), f"eq. 10 at step {i}")
        # given that the copy before shows c, whether x was c too says nothing about the next copy
        here = ys[i - 1] == np.bincount(ys[i - 1]).argmax()
        verdict.accept(p.unrelated_p((x == ys[i - 1])[here], stay[here]), f"eq. 9 at step {i}")
        moved = (ys[i] - ys[i - 1])[~stay] % size
        verdict.accept(p.rate_p(int((moved == 2).sum()), len(moved), 1 / (size - 1)), f"where it moves at step {i}")
    fresh = np.where(rng.random(N) < given[2], x, rng.integers(0, size, N))
    verdict.reject(p.rate_p(int((fresh == ys[1]).sum()), N, ratio + (1 - ratio) / size), "independent perturbation")
    verdict.reject(p.unrelated_p((x == ys[1])[here], (fresh == ys[1])[here]), "independent perturbation")


def test_partition_order_and_process_do_not_matter(rng: np.random.Generator, key: sf.Key) -> None:
    """Exactly, not only in distribution: the same request gives the same cells."""
    table = worlds.numbers(rng, 3000, 2).append_column("id", pa.array(rng.permutation(3000)))
    policy = sf.Policy.loads(worlds.gaussian(2).dumps().replace("[columns]", '[columns]\nid = "id"'))
    scheme = policy.fit(table)
    whole = scheme.release(table, 0.33, key)
    scheme.release(table, 0.9, key)
    parts = [scheme.release(table.slice(at, 700), 0.33, key) for at in (2800, 0, 2100, 1400, 700)]
    again = pa.concat_tables(parts).sort_by("id")
    assert again.equals(whole.sort_by("id"))
