"""How right an estimate was."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.attacks import ATTACKS, Belief, Categories, Estimate, Evidence, Knowledge, Records, score
from sfumato.attacks.results.measure import proportion
from sfumato.attacks.results.score import breached
from sfumato.errors import AttackError
from sfumato.experiments import _array_evidence as lab
from sfumato.models.uniform_replacement import UniformReplacement


def test_breaches_follow_the_corrected_definition() -> None:
    """At a true entry of 0 the size of the guess counts (ERRATA, G6): the printed form has -9 here."""
    truth, guess = np.array([[0.0, 5.0, 7.0]]), np.array([[-9.0, 1.0, 1.0]])
    assert not breached(guess, truth, 0.79)["entry"][0]
    assert breached(guess, truth, 0.81)["entry"][0]
    near = np.array([[0.04, 1.0, 1.0]])
    assert breached(near, truth, 0.05)["entry"][0]
    assert breached(-near, truth, 0.05)["entry"][0]
    assert not breached(near, truth, 0.03)["entry"][0]


def test_cosines_reach_from_minus_one_to_one() -> None:
    truth = np.array([[1.0, 2.0]])
    assert breached(3 * truth, truth, 1e-9)["cosine"][0]
    assert not breached(-truth, truth, 1.9)["cosine"][0]
    assert breached(-truth, truth, 2.0)["cosine"][0]
    assert not breached(np.zeros((1, 2)), truth, 0.5)["cosine"][0]


def test_the_euclidean_breach_is_relative() -> None:
    truth = np.array([[3.0, 4.0]])
    assert breached(truth + np.array([0.25, 0.0]), truth, 0.0501)["euclidean"][0]
    assert not breached(truth + np.array([0.26, 0.0]), truth, 0.0501)["euclidean"][0]


def test_wilsons_interval_holds_at_the_ends() -> None:
    none = proportion(np.zeros(100, bool), 0.95)
    assert none.value == 0
    assert none.low == pytest.approx(0, abs=1e-12)
    assert none.high == pytest.approx(0.0370, abs=1e-4)
    half = proportion(np.arange(100) < 50, 0.95)
    assert (half.low, half.high) == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_a_score_stands_beside_a_baseline_and_a_control(rng: np.random.Generator) -> None:
    real = rng.normal(10, 3, (5000, 2))
    estimate = Estimate("test", ("c0", "c1"), real + rng.normal(0, 1, real.shape))
    found = score(estimate, lab.truth(real), control=lab.truth(rng.normal(10, 3, (50, 2))))
    column = found.number("c0")
    assert column.rmse.attack.low < 1 < column.rmse.attack.high
    assert column.rmse.baseline.value == pytest.approx(real[:, 0].std())
    assert column.error.baseline.value == pytest.approx(1)
    assert column.error.control.value == pytest.approx(2.11, abs=0.5)  # 2 + 1/9, less what fifty records can tell
    assert column.quantiles[3] == pytest.approx(0.6745, abs=0.05)
    assert found.breaches["entry"].attack.value > found.breaches["entry"].control.value
    with pytest.raises(AttackError, match="must have the 5,000 records"):
        score(estimate, lab.truth(real[:10]))
    with pytest.raises(AttackError, match="at least one record"):
        score(estimate, lab.truth(real), control=lab.truth(real[:0]))


def test_what_is_missing_does_not_count() -> None:
    real = np.array([[1.0], [np.nan], [3.0]])
    found = score(Estimate("test", ("c0",), np.array([[2.0], [9.0], [np.nan]])), lab.truth(real))
    assert found.number("c0").rmse.attack.value == 1.0
    empty = score(Estimate("test", ("c0",), np.full((3, 1), np.nan)), lab.truth(real))
    assert np.isnan(empty.number("c0").rmse.attack.value)


def posterior(prior: lab.Array, size: int, parts: list[tuple[lab.Array, float]]) -> lab.Array:
    """Bayes' rule, value by value, for independent copies (xiao2009, Appendix 2)."""
    rows = len(parts[0][0])
    likely = np.tile(prior, (rows, 1))
    for codes, kept in parts:
        likely *= np.where(codes[:, None] == np.arange(size), kept + (1 - kept) / size, (1 - kept) / size)
    return likely / likely.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_belief_is_bayes_rule(count: int, rng: np.random.Generator) -> None:
    size, rows = 5, 300
    prior = rng.dirichlet(np.ones(size))
    kept = [0.5, 0.3, 0.2, 0.4][:count]
    seen = [rng.integers(0, size, rows) for _ in kept]
    evidence = lab.categories(seen, size, kept, collusion_resistant=False, knowledge=Knowledge(prior={("x",): prior}))
    [belief] = ATTACKS["collusion"]().estimate(evidence).beliefs
    exact = posterior(prior, size, list(zip(seen, kept, strict=True)))
    for value in range(size):
        np.testing.assert_allclose(belief.probability(np.full(rows, value)), exact[:, value], rtol=1e-12)
    assert (belief.guess() == exact.argmax(axis=1)).all()


def test_on_one_path_only_the_best_copy_counts(rng: np.random.Generator) -> None:
    seen = [rng.integers(0, 5, 200) for _ in range(3)]
    prior = Knowledge(prior={("x",): np.full(5, 0.2)})
    many = ATTACKS["collusion"]().estimate(
        lab.categories(seen, 5, [0.2, 0.6, 0.4], collusion_resistant=True, knowledge=prior)
    )
    one = ATTACKS["collusion"]().estimate(
        lab.categories([seen[1]], 5, [0.6], collusion_resistant=True, knowledge=prior)
    )
    assert (many.beliefs[0].probability(seen[0]) == one.beliefs[0].probability(seen[0])).all()


def test_columns_of_a_joint_group_are_summed_up(rng: np.random.Generator) -> None:
    model = UniformReplacement(
        ("a", "b"), ({"min": 0, "count": 3}, {"min": 0, "count": 4}), 0.5, False, collusion_resistant=True
    )
    prior, size, rows = rng.dirichlet(np.ones(12)), 12, 100
    seen = [rng.integers(0, size, rows) for _ in range(3)]
    parts = [Categories(model, f"path {i}", codes) for i, codes in enumerate(seen)]
    evidence = Evidence(rows, (), tuple(parts), knowledge=Knowledge(prior={("a", "b"): prior}))
    [belief] = ATTACKS["collusion"]().estimate(evidence).beliefs
    exact = posterior(prior, size, [(codes, 0.5) for codes in seen]).reshape(rows, 3, 4)
    a, b = belief.marginals()
    for value in range(3):
        np.testing.assert_allclose(a.probability(np.full(rows, value)), exact.sum(axis=2)[:, value], rtol=1e-9)
    for value in range(4):
        np.testing.assert_allclose(b.probability(np.full(rows, value)), exact.sum(axis=1)[:, value], rtol=1e-9)
    truth = Records((), np.empty((rows, 0)), {("a", "b"): rng.integers(0, size, rows)})
    found = score(Estimate("collusion", (), np.empty((rows, 0)), (belief,)), truth)
    assert [one.columns for one in found.categories] == [("a", "b"), ("a",), ("b",)]


def test_a_domain_of_billions_is_no_matter() -> None:
    size = 1 << 31
    model = UniformReplacement(("a",), ({"min": 0, "count": size},), 0.5, False, collusion_resistant=True)
    evidence = Evidence(2, (), (Categories(model, "p", np.array([5, size - 1])),))
    [belief] = ATTACKS["collusion"]().estimate(evidence).beliefs
    assert belief.probability(np.array([5, 7])) == pytest.approx([0.5, 0.5 / size], rel=1e-6)
    assert isinstance(belief, Belief)


def test_votes_are_counted(rng: np.random.Generator) -> None:
    patterns = np.array(list(itertools.product(range(2), repeat=3)))
    evidence = lab.categories(list(patterns.T), 3, [0.6, 0.5, 0.4], collusion_resistant=False)
    [belief] = ATTACKS["vote"]().estimate(evidence).beliefs
    assert (belief.guess() == (patterns.sum(axis=1) >= 2)).all()
    tied = lab.categories([np.array([2, 0]), np.array([1, 2])], 3, [0.4, 0.6], collusion_resistant=False)
    assert ATTACKS["vote"]().estimate(tied).beliefs[0].guess().tolist() == [1, 2]  # the better copy decides
