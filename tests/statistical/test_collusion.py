"""Collusion is useless."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import sfumato as sf

from . import pvalues as p
from . import worlds
from .conftest import Verdict

N = 100_000


@pytest.mark.statistical(checks=3)
def test_thirty_copies_say_no_more_than_the_best(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """The other 29 copies get no weight in the best linear estimate (li2012, Theorem 4)."""
    table = worlds.numbers(rng, N, 2)
    truth = worlds.matrix(table)
    levels = np.linspace(0.8, 0.5, 30)
    scheme = worlds.gaussian(2).fit(table)
    ours = [worlds.matrix(copy) for copy in scheme.release_levels(table, list(levels), key)]
    given = [scheme.given(sf.Level(level)) for level in levels]
    target = truth[:, 1] / truth[:, 1].std()
    copies = [copy / truth.std(axis=0) for copy in ours]
    verdict.accept(p.useless_p(target, copies[0], np.column_stack(copies[1:])), "29 more copies")
    leaky = [*copies[1:-1], copies[-1] - 0.02 * (copies[0] - truth / truth.std(axis=0))]
    verdict.reject(
        p.useless_p(target, copies[0], np.column_stack(leaky)), "2 % of the best copy's noise kept in the last"
    )
    # the error that is left is the best copy's, 1 - f
    error = _llse([copy[:, 1] for copy in copies], [level.noise for level in given], shared=True) - target
    scale = (given[0].error) * float(target.var())
    verdict.accept(p.variance_p(error - error.mean(), scale), "error of the pooled estimate")
    # independent noise: 1/(1 + Σ 1/σi²), Theorem 3
    twin = worlds.gaussian(2, role='{ role = "independent", of = "gaussian" }').fit(table)
    apart = [worlds.matrix(copy) / truth.std(axis=0) for copy in twin.release_levels(table, list(levels), key)]
    loose = _llse([copy[:, 1] for copy in apart], [level.noise for level in given], shared=False) - target
    pooled = 1 / (1 + sum(1 / level.noise for level in given))
    verdict.accept(p.variance_p(loose - loose.mean(), pooled * float(target.var())), "Theorem 3")
    verdict.reject(p.variance_p(loose - loose.mean(), scale), "independent noise taken for ours")
    verdict.reject(p.useless_p(target, apart[0], np.column_stack(apart[1:])), "independent copies")


def _llse(copies: list[worlds.Array], noises: list[float], *, shared: bool) -> worlds.Array:
    """Equation 6 of li2012, literally, for one attribute of variance 1 about its own mean."""
    mean = np.mean(copies[0])
    k_z = np.minimum.outer(noises, noises) if shared else np.diag(noises)
    h = np.ones((len(noises), 1))
    gain = h.T @ np.linalg.pinv(h @ h.T + k_z)
    return (gain @ (np.vstack(copies) - mean))[0] + mean


@pytest.mark.statistical(checks=4)
def test_alice_bob_and_charlie(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """Pr[X | Ya, Yb, Yc] = Pr[X | Yc] for 30, 10 and 50 %, asked in this order (xiao2009, section 7, eq. 14)."""
    size, rows = 5, 600_000
    table = worlds.categories(rng, rows, size)
    scheme = worlds.uniform(size, "only = 0.4\n").fit(table)
    alice, bob, charlie = (worlds.codes(scheme.release(table, level, key)) for level in (0.3, 0.1, 0.5))
    x = worlds.codes(table)
    common = np.bincount(x).argmax()
    for seen, name in ((charlie == common, "the commonest value"), (charlie != common, "another value")):
        right = (x == charlie)[seen]
        verdict.accept(p.unrelated_p(right, (alice == charlie)[seen]), f"Alice, where Charlie has {name}")
        verdict.accept(p.unrelated_p(right, (bob == charlie)[seen]), f"Bob, where Charlie has {name}")
    naive = worlds.uniform(size, "only = 0.4\n")
    twin = sf.Policy.loads(naive.dumps().replace('role = "uniform"', 'role = "independent"\nof = "uniform"')).fit(table)
    alone = [worlds.codes(twin.release(table, level, key)) for level in (0.3, 0.5)]
    verdict.reject(p.unrelated_p(x == alone[1], alone[0] == alone[1]), "independent perturbation")
    half = np.where(rng.random(rows) < 0.02, x, alice)
    verdict.reject(p.unrelated_p(x == charlie, half == charlie), "2 % of the truth shown to Alice")


@pytest.mark.statistical(checks=1)
def test_a_learned_adversary_gains_nothing_on_numbers(verdict: Verdict, rng: np.random.Generator, key: sf.Key) -> None:
    """Gradient boosting on half of the rows with the truth, given all copies, against the best that one copy allows."""
    centres = np.array([-1.5, 0.0, 2.0])
    x = np.clip(rng.choice(centres, N, p=[0.5, 0.3, 0.2]) + 0.3 * rng.normal(size=N), -4, 4)
    table = pa.table({"c0": x})
    scheme = worlds.gaussian(1).fit(table)
    levels = ("partner", 0.45, 0.4, 0.3, "public")
    ours = _learn(np.column_stack([worlds.matrix(c) for c in scheme.release_levels(table, levels, key)]), x)
    sd = x.std()
    best = _posterior_mean(worlds.matrix(scheme.release(table, "partner", key))[:, 0], centres, sd)
    truth = x[1::2]
    gain = np.clip((ours - truth) ** 2 - (best[1::2] - truth) ** 2, -30, 30)
    verdict.accept(p.not_negative_p(gain, 30.0), "no better than the posterior mean given the best copy")
    twin = worlds.gaussian(1, role='{ role = "independent", of = "gaussian" }').fit(table)
    apart = _learn(np.column_stack([worlds.matrix(c) for c in twin.release_levels(table, levels, key)]), x)
    lost = np.clip((apart - truth) ** 2 - (best[1::2] - truth) ** 2, -30, 30)
    verdict.reject(p.not_negative_p(lost, 30.0), "independent noise")


def _learn(seen: worlds.Array, truth: worlds.Array) -> worlds.Array:
    model = HistGradientBoostingRegressor(max_iter=150, random_state=0)
    return model.fit(seen[::2], truth[::2]).predict(seen[1::2])


def _posterior_mean(y: worlds.Array, centres: worlds.Array, noise: float) -> worlds.Array:
    """E[X | Y] for a mixture of normals of deviation 0.3 with normal noise: the best estimate of any kind."""
    total = np.sqrt(0.09 + noise**2)
    weight = np.array([0.5, 0.3, 0.2]) * stats.norm.pdf(y[:, None], centres, total)
    mean = centres + 0.09 / (0.09 + noise**2) * (y[:, None] - centres)
    return (weight * mean).sum(axis=1) / weight.sum(axis=1)


@pytest.mark.statistical(checks=1)
def test_a_learned_adversary_gains_nothing_on_categories(
    verdict: Verdict, rng: np.random.Generator, key: sf.Key
) -> None:
    """Where it differs from the likeliest value given the best copy, it is right at most half of the time."""
    size = 6
    table = worlds.categories(rng, N, size)
    x = worlds.codes(table)
    levels = ("partner", 0.45, 0.4, 0.3, "public")
    prior = np.bincount(x, minlength=size) / N

    def contest(policy: sf.Policy) -> float:
        scheme = policy.fit(table)
        copies = [worlds.codes(copy) for copy in scheme.release_levels(table, levels, key)]
        seen = np.column_stack(copies)
        model = HistGradientBoostingClassifier(
            max_iter=30, random_state=0, categorical_features=list(range(len(levels)))
        )
        learned = model.fit(seen[::2], x[::2]).predict(seen[1::2])
        likelihood = np.full((size, size), 0.5 / size) + 0.5 * np.eye(size)
        likeliest = (likelihood[copies[0]] * prior).argmax(axis=1)[1::2]
        truth = x[1::2]
        return p.at_most_half_p(
            int(((learned == truth) & (likeliest != truth)).sum()),
            int(((learned != truth) & (likeliest == truth)).sum()),
        )

    safe = worlds.uniform(size)
    verdict.accept(contest(safe), "our copies")
    naive = sf.Policy.loads(safe.dumps().replace('role = "uniform"', 'role = "independent"\nof = "uniform"'))
    verdict.reject(contest(naive), "independent perturbation")
