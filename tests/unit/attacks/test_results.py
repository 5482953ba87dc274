"""Scores of estimates: breaches, intervals, baselines, controls and posterior distributions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.attacks import ATTACKS, Categories, Estimate, Evidence, Knowledge, Posterior, Records, score
from sfumato.attacks.evidence import arrays
from sfumato.attacks.evidence.arrays import Array, categorical_copies
from sfumato.attacks.results.measure import proportion, ratio
from sfumato.attacks.results.score import breached
from sfumato.errors import AttackError
from sfumato.models.uniform_replacement import UniformReplacement


def test_breaches_follow_the_corrected_definition() -> None:
    """At a true entry of 0 the absolute value of the guess counts (ERRATA, G6): the printed form has -9 here."""
    truth, guess = np.array([[0.0, 5.0, 7.0]]), np.array([[-9.0, 1.0, 1.0]])
    assert not breached(guess, truth, 0.79)["entry"][0]
    assert breached(guess, truth, 0.81)["entry"][0]
    near = np.array([[0.04, 1.0, 1.0]])
    assert breached(near, truth, 0.05)["entry"][0]
    assert breached(-near, truth, 0.05)["entry"][0]
    assert not breached(near, truth, 0.03)["entry"][0]


def test_cosines_range_from_minus_one_to_one() -> None:
    truth = np.array([[1.0, 2.0]])
    assert breached(3 * truth, truth, 1e-9)["cosine"][0]
    assert not breached(-truth, truth, 1.9)["cosine"][0]
    assert breached(-truth, truth, 2.0)["cosine"][0]
    assert not breached(np.zeros((1, 2)), truth, 0.5)["cosine"][0]


def test_the_euclidean_breach_is_relative() -> None:
    truth = np.array([[3.0, 4.0]])
    assert breached(truth + np.array([0.25, 0.0]), truth, 0.0501)["euclidean"][0]
    assert not breached(truth + np.array([0.26, 0.0]), truth, 0.0501)["euclidean"][0]


def test_wilsons_interval_holds_near_zero() -> None:
    none = proportion(np.zeros(100, bool), 0.95)
    assert none.estimate == 0
    assert none.low == pytest.approx(0, abs=1e-12)
    assert none.high == pytest.approx(0.0370, abs=1e-4)
    half = proportion(np.arange(100) < 50, 0.95)
    assert (half.low, half.high) == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_the_error_of_a_rare_value_is_known_where_the_attack_fails() -> None:
    """60 of 3,000 have it, and the attack says the mean: each mean square alone would vary by 80 % at 1 - 1e-9."""
    real = (np.arange(3000) < 60).astype(float)
    squares = (real - real.mean()) ** 2
    found = ratio(squares, squares, 1 - 1e-9)
    assert found.estimate == pytest.approx(1)
    assert 0.55 < found.low < 0.7  # Wilson's of 60 of 60: 0.62
    few = (np.arange(3000) < 3).astype(float)
    squares = (few - few.mean()) ** 2
    assert ratio(squares, squares, 0.95).low < 0.5  # three that were not recovered do not say that none would be


def test_the_interval_of_an_error_covers_what_other_noise_gives() -> None:
    """Of one column with heavy tails and 2,000 draws of noise: below the low end of 95 % comes at most 2.5 %.

    100 of 2,000 alarms or more, where 50 are expected at most, have a probability below 1e-9.
    """
    rng = np.random.default_rng(4)
    real = rng.lognormal(0, 1.5, 1000)
    units = (real - real.mean()) ** 2
    errors = (real.std() * rng.standard_normal((2000, 1000))) ** 2
    truth = errors.mean() / units.mean()
    missed = sum(ratio(one, units, 0.95).low > truth for one in errors)
    assert missed < 100


def test_a_score_has_a_baseline_and_a_control(rng: np.random.Generator) -> None:
    real = rng.normal(10, 3, (5000, 2))
    estimate = Estimate("test", ("c0", "c1"), real + rng.normal(0, 1, real.shape))
    found = score(estimate, arrays.records(real), control=arrays.records(rng.normal(10, 3, (50, 2))))
    column = found.number("c0")
    assert column.rmse.attack.low < 1 < column.rmse.attack.high
    assert column.rmse.baseline.estimate == pytest.approx(real[:, 0].std())
    assert column.error.baseline.estimate == pytest.approx(1)
    assert column.error.control.estimate == pytest.approx(
        2.11, abs=0.5
    )  # 2 + 1/9, up to the sampling error of fifty records
    assert column.quantiles[3] == pytest.approx(0.6745, abs=0.05)
    assert found.breaches["entry"].attack.estimate > found.breaches["entry"].control.estimate
    with pytest.raises(AttackError, match="must have the 5,000 records"):
        score(estimate, arrays.records(real[:10]))
    with pytest.raises(AttackError, match="at least one record"):
        score(estimate, arrays.records(real), control=arrays.records(real[:0]))


def test_missing_values_are_not_scored() -> None:
    real = np.array([[1.0], [np.nan], [3.0]])
    found = score(Estimate("test", ("c0",), np.array([[2.0], [9.0], [np.nan]])), arrays.records(real))
    assert found.number("c0").rmse.attack.estimate == 1.0
    empty = score(Estimate("test", ("c0",), np.full((3, 1), np.nan)), arrays.records(real))
    assert np.isnan(empty.number("c0").rmse.attack.estimate)


def posterior(prior: Array, size: int, parts: list[tuple[Array, float]]) -> Array:
    """Bayes' rule, value by value, for independent copies (xiao2009, Appendix 2)."""
    rows = len(parts[0][0])
    joint = np.tile(prior, (rows, 1))
    for codes, kept in parts:
        joint *= np.where(codes[:, None] == np.arange(size), kept + (1 - kept) / size, (1 - kept) / size)
    return joint / joint.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_posterior_follows_bayes_rule(count: int, rng: np.random.Generator) -> None:
    size, rows = 5, 300
    prior = rng.dirichlet(np.ones(size))
    retentions = [0.5, 0.3, 0.2, 0.4][:count]
    codes = [rng.integers(0, size, rows) for _ in retentions]
    evidence = categorical_copies(
        codes, size, retentions, collusion_resistant=False, knowledge=Knowledge(prior={("x",): prior})
    )
    [result] = ATTACKS["collusion"]().estimate(evidence).posteriors
    exact = posterior(prior, size, list(zip(codes, retentions, strict=True)))
    for value in range(size):
        np.testing.assert_allclose(result.probability(np.full(rows, value)), exact[:, value], rtol=1e-12)
    assert (result.mode() == exact.argmax(axis=1)).all()


def test_on_one_path_only_the_best_copy_counts(rng: np.random.Generator) -> None:
    codes = [rng.integers(0, 5, 200) for _ in range(3)]
    prior = Knowledge(prior={("x",): np.full(5, 0.2)})
    many = ATTACKS["collusion"]().estimate(
        categorical_copies(codes, 5, [0.2, 0.6, 0.4], collusion_resistant=True, knowledge=prior)
    )
    one = ATTACKS["collusion"]().estimate(
        categorical_copies([codes[1]], 5, [0.6], collusion_resistant=True, knowledge=prior)
    )
    assert (many.posteriors[0].probability(codes[0]) == one.posteriors[0].probability(codes[0])).all()


def test_marginals_of_a_joint_group(rng: np.random.Generator) -> None:
    model = UniformReplacement(
        ("a", "b"), ({"min": 0, "count": 3}, {"min": 0, "count": 4}), 0.5, False, collusion_resistant=True
    )
    prior, size, rows = rng.dirichlet(np.ones(12)), 12, 100
    codes = [rng.integers(0, size, rows) for _ in range(3)]
    parts = [Categories(model, f"path {i}", one) for i, one in enumerate(codes)]
    evidence = Evidence(rows, (), tuple(parts), knowledge=Knowledge(prior={("a", "b"): prior}))
    [result] = ATTACKS["collusion"]().estimate(evidence).posteriors
    exact = posterior(prior, size, [(one, 0.5) for one in codes]).reshape(rows, 3, 4)
    a, b = result.marginals()
    for value in range(3):
        np.testing.assert_allclose(a.probability(np.full(rows, value)), exact.sum(axis=2)[:, value], rtol=1e-9)
    for value in range(4):
        np.testing.assert_allclose(b.probability(np.full(rows, value)), exact.sum(axis=1)[:, value], rtol=1e-9)
    truth = Records((), np.empty((rows, 0)), {("a", "b"): rng.integers(0, size, rows)})
    found = score(Estimate("collusion", (), np.empty((rows, 0)), (result,)), truth)
    assert [one.columns for one in found.categories] == [("a", "b"), ("a",), ("b",)]


def test_a_domain_of_billions_is_supported() -> None:
    size = 1 << 31
    model = UniformReplacement(("a",), ({"min": 0, "count": size},), 0.5, False, collusion_resistant=True)
    evidence = Evidence(2, (), (Categories(model, "p", np.array([5, size - 1])),))
    [result] = ATTACKS["collusion"]().estimate(evidence).posteriors
    assert result.probability(np.array([5, 7])) == pytest.approx([0.5, 0.5 / size], rel=1e-6)
    assert isinstance(result, Posterior)


def test_votes_are_counted(rng: np.random.Generator) -> None:
    patterns = np.array(list(itertools.product(range(2), repeat=3)))
    evidence = categorical_copies(list(patterns.T), 3, [0.6, 0.5, 0.4], collusion_resistant=False)
    [result] = ATTACKS["vote"]().estimate(evidence).posteriors
    assert (result.mode() == (patterns.sum(axis=1) >= 2)).all()
    tied = categorical_copies([np.array([2, 0]), np.array([1, 2])], 3, [0.4, 0.6], collusion_resistant=False)
    assert ATTACKS["vote"]().estimate(tied).posteriors[0].mode().tolist() == [1, 2]  # the more faithful copy decides
