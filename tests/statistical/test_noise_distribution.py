"""Each copy alone is the classic mechanism."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sfumato as sf
from sfumato.models.gaussian_noise import GaussianNoise

from . import pvalues as p
from . import worlds
from .conftest import Verdict

N = 500_000
COLUMNS = 3


@pytest.mark.statistical(checks=4 * (3 + 3 + 3))
def test_gaussian_noise_has_the_published_covariance(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """Covariance σ²·K_X (li2012, section 3.1), at declared levels and at one on demand."""
    table = worlds.numbers(rng, N, COLUMNS)
    scheme = worlds.gaussian(COLUMNS).fit(table)
    for level in ("internal", "partner", "public", 0.37):
        z = worlds.white_noise(table, scheme.release(table, level, key))
        for column in z:
            verdict.accept(p.variance_p(column, 1.0), f"variance at {level}")
            verdict.accept(p.normal_p(column), f"normality at {level}")
        for a, b in itertools.combinations(z, 2):
            verdict.accept(p.independent_p(a, b), f"shape at {level}")
    verdict.reject(p.variance_p(0.985 * z[0], 1.0), "noise 1.5 % too small")
    verdict.reject(p.independent_p(z[0], z[1] + 0.02 * z[0]), "shape off by 2 %")
    verdict.reject(p.normal_p(np.sign(z[0]) * np.abs(z[0]) ** 1.05), "tails too heavy")


def test_the_published_covariance_is_that_of_the_table(rng: np.random.Generator, key: sf.Key) -> None:
    table = worlds.numbers(rng, 50_000, COLUMNS)
    copy = worlds.gaussian(COLUMNS).fit(table).release(table, "public", key)
    [model] = sf.Manifest.of(copy).models
    assert isinstance(model, GaussianNoise)
    expected = 4 * np.cov(worlds.matrix(table).T)
    for i, line in enumerate(model.covariance):
        np.testing.assert_allclose(line, expected[i, : i + 1], rtol=5e-3)  # rounded, and no variance down
        assert line[i] >= expected[i, i]


@pytest.mark.statistical(checks=3 * 3)
def test_uniform_copy_follows_equation_1(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """Pr[Y = X] and the distribution of what replaces a value (xiao2009, eq. 1), declared and on demand."""
    size = 7
    table = worlds.categories(rng, N, size)
    x, scheme = worlds.codes(table), worlds.uniform(size).fit(table)
    for level in (0.8, 0.2, 0.55):
        copy = scheme.release(table, level, key)
        y, given = worlds.codes(copy), sf.Manifest.of(copy).fidelity
        verdict.accept(p.rate_p(int((x == y).sum()), N, given + (1 - given) / size), f"retention at {level}")
        # a value that changed is uniform over the others, and does not depend on x
        shift = (y - x)[x != y] % size
        spread = (shift - 1 + rng.random(len(shift))) / (size - 1)
        verdict.accept(p.same_distribution_p(spread, rng.random(N)), f"replacement at {level}")
        verdict.accept(p.rate_p(int((shift == 1).sum()), len(shift), 1 / (size - 1)), f"next value at {level}")
    verdict.reject(p.rate_p(int((x == y).sum()), N, given + 0.01 + (0.99 - given) / size), "retention 0.01 too low")
    verdict.reject(p.same_distribution_p(spread**1.1, rng.random(N)), "replacement prefers low values")
    off_by_one = np.where(shift == 1, 2, shift)
    verdict.reject(p.rate_p(int((off_by_one == 1).sum()), len(shift), 1 / (size - 1)), "one value never drawn")


@pytest.mark.statistical(checks=4)
def test_options_change_the_noise_as_they_say(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """`scale` multiplies a column's noise, or scales the axis of a categorical one."""
    table = worlds.numbers(rng, N, 1)
    scaled = worlds.gaussian(1, role='{ role = "gaussian", scale = 3 }').fit(table).release(table, 0.5, key)
    spread = float(np.std(worlds.matrix(table)))
    noise = worlds.matrix(scaled)[:, 0] - worlds.matrix(table)[:, 0]
    ratio = noise / (3 * spread)
    verdict.accept(p.variance_p(ratio, 1.0), "scale 3")
    verdict.reject(p.variance_p(ratio * 1.02, 1.0), "scale off by 2 %")
    cells = worlds.categories(rng, N, 10)
    copy = worlds.uniform(10, extra="scale = 2").fit(cells).release(cells, 0.5, key)
    kept = int((worlds.codes(copy) == worlds.codes(cells)).sum())
    verdict.accept(p.rate_p(kept, N, 0.25 + 0.75 / 10), "p = f²")
    verdict.reject(p.rate_p(kept, N, 0.5 + 0.5 / 10), "scale ignored")
    pair = worlds.categories(rng, N, 4).append_column("y", worlds.categories(rng, N, 5).column("x"))
    policy = sf.Policy.loads(
        'dataset = "j"\norder = "keep"\n[levels]\na = 0.5\n[columns]\n'
        'x = { role = "uniform", joint = "g" }\ny = { role = "uniform", joint = "g" }'
    )
    joint = policy.fit(pair).release(pair, "a", key)
    same = [np.asarray(joint.column(c)) == np.asarray(pair.column(c)) for c in ("x", "y")]
    verdict.accept(p.rate_p(int((same[0] & same[1]).sum()), N, 0.5 + 0.5 / 20), "both kept together")
    verdict.accept(p.rate_p(int(same[0].sum()), N, 0.5 + 0.5 / 4), "one kept")
    verdict.reject(p.rate_p(int((same[0] & same[1]).sum()), N, (0.5 + 0.5 / 4) * (0.5 + 0.5 / 5)), "perturbed apart")
