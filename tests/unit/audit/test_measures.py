"""The field's measures, on tables whose values can be computed by hand, and with protection planted away."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato.audit.measures.accounting import composed_epsilon, privacy_budget, record_rho
from sfumato.audit.measures.anonymity import anonymity, unique_share
from sfumato.audit.measures.excess_risk import excess_risk
from sfumato.audit.measures.inference import attribute_inference, is_correct
from sfumato.audit.measures.information_loss import (
    eigenvalue_difference,
    group_changes,
    il1s,
    interval_overlap,
    utility,
)
from sfumato.audit.measures.interval_disclosure import interval_disclosure, robust_distance_risk
from sfumato.audit.measures.linkability import linkability, record_linkage
from sfumato.audit.measures.membership import membership_inference
from sfumato.audit.measures.mixed_table import MixedTable, encode, total_distance
from sfumato.audit.measures.rare_values import rare_category, rare_numbers
from sfumato.audit.measures.singling_out import singling_out
from sfumato.kernels import Floats
from sfumato.kernels.covariances import correlation_dissimilarity
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

ROWS = 1500
MIXING = np.random.default_rng(0).normal(size=(5, 5))


def population(rows: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 5)) @ MIXING + 10
    return np.column_stack([numbers, rng.integers(0, 6, (rows, 3))])


def mixed(values: Floats) -> MixedTable:
    return MixedTable(tuple("abcdefgh"), values, np.arange(8) < 5)


ORIGINAL, CONTROL = mixed(population(ROWS, 1)), mixed(population(ROWS, 2))
SYNTHETIC = mixed(population(ROWS, 3))
"""Other people: nothing of the original."""


def test_sdcmicro_counts_records_that_share_all_key_variables() -> None:
    """The frequencies of sdcMicro's own test of `freqCalc`: 3, 1, 3, 1, 2, 2, 1, 3."""
    keys = pa.table({"A": [2, 3, 2, 2, 3, 3, 1, 2], "B": [3, 3, 3, 3, 3, 3, 4, 3], "C": [1, 3, 1, 2, 1, 1, 1, 1]})
    sensitive = pa.table({"ill": ["x", "y", "x", "y", "x", "y", "x", "x"]})
    found = anonymity(encode([keys], ["A", "B", "C"])[0], encode([sensitive], ["ill"])[0], 8)
    assert found is not None
    assert (found.k, found.uniques) == (1, 3)
    assert found.below == {2: 3 / 8, 3: 5 / 8, 5: 1.0}
    told = found.attributes[0]
    assert told.diversity == 1
    assert told.closeness == pytest.approx(5 / 8)  # a class with y alone, of which the table has 3 in 8


def test_sdcmicros_measures_of_numbers() -> None:
    """The formulas of `dRisk`, `dRiskRMD`, `IL1s` and `eigen`, written out."""
    rng = np.random.default_rng(0)
    original = rng.normal(size=(300, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0, 0, 1]])
    copy = original + rng.normal(size=(300, 3)) * 0.1
    deviations = copy.std(axis=0, ddof=1)
    inside = ((original >= copy - 0.05 * deviations) & (original <= copy + 0.05 * deviations)).all(axis=1)
    assert interval_disclosure(original, copy) == inside.mean()
    expected = (np.abs(original - copy) / (original.std(axis=0, ddof=1) * math.sqrt(2))).sum()
    assert il1s(original, copy) == pytest.approx(expected)
    before, after = (np.linalg.eigvalsh(np.corrcoef(some.T))[::-1] for some in (original, copy))
    assert eigenvalue_difference(original, copy) == pytest.approx((np.abs(before - after) / before).sum())
    assert robust_distance_risk(original, original).near == 1.0
    far = robust_distance_risk(original, original + 100 * rng.normal(size=(300, 3)))
    assert far.near < 0.01
    assert interval_overlap((0, 1), (0.5, 1.5)) == pytest.approx(0.5)
    assert interval_overlap((0, 1), (2, 3)) == 0.0


def test_population_uniques_are_estimated_from_a_sample() -> None:
    rng = np.random.default_rng(0)
    classes = np.minimum((rng.pareto(0.7, 100_000) * 300).astype(np.int64), 10**7)
    sizes = np.bincount(np.unique(classes, return_inverse=True)[1])
    truth = (sizes == 1).sum() / sizes.sum()
    sample = classes[rng.random(len(classes)) < 0.05]
    counts = np.unique(sample, return_counts=True)[1]
    assert (counts == 1).sum() / counts.sum() > 3 * truth  # sample uniques alone overstate it
    assert unique_share(counts, 100_000) == pytest.approx(truth, rel=0.35)


def test_excess_risk_takes_off_what_succeeds_on_anybody() -> None:
    found = excess_risk("x", 500, 500, 0, 1000)
    assert found.excess.estimate == 0.0
    certain = excess_risk("x", 1000, 0, 0, 1000)
    assert certain.excess.low > 0.99
    assert not excess_risk("x", 10, 10, 900, 1000).is_measurable


@pytest.mark.parametrize("measure", ["singling out", "linkability", "inference", "linkage", "membership"])
def test_a_copy_in_clear_is_found_and_a_synthetic_one_is_not(measure: str) -> None:
    """Planted: the original itself as the copy, and other people's records as the copy."""
    risks = [_risk(measure, copy) for copy in (ORIGINAL, SYNTHETIC)]
    assert risks[0] > 0.6
    assert risks[1] < 0.12


def _risk(measure: str, copy: MixedTable) -> float:
    own = np.arange(500)
    targets, others = ORIGINAL.take(own), CONTROL.take(own)
    if measure == "singling out":
        found = singling_out(ORIGINAL, copy, CONTROL, 5)
        return 0.0 if found is None else found.excess.estimate
    if measure == "linkability":
        return linkability(targets, copy, others).excess.estimate
    if measure == "inference":
        return max(one.excess.estimate for one in attribute_inference(targets, copy, others))
    if measure == "membership":
        return 2 * (membership_inference(targets, copy, others).auc.estimate - 0.5)
    return record_linkage(targets, copy, own).estimate


def test_linkage_by_the_noise_beats_that_by_distance() -> None:
    """Along the direction in which correlated noise is small, records can be recognised."""
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(np.full((5, 5), 0.98) + 0.02 * np.eye(5)) * 3
    noisy = ORIGINAL.values.copy()
    noisy[:, :5] += rng.normal(size=(ROWS, 5)) @ root.T
    names, own = list("abcde"), np.arange(ROWS)
    targets, candidates = ORIGINAL.select(names), mixed(noisy).select(names)
    plain = record_linkage(targets, candidates, own)
    white = record_linkage(targets, candidates, own, np.linalg.inv(root).T)
    assert white.low > plain.high


def test_distances_of_mixed_records_with_missing_values() -> None:
    tables = [
        pa.table({"n": pa.array([0.0, None]), "k": ["a", "b"], "d": pa.array([0, 10], pa.date32())}),
        pa.table({"n": pa.array([10.0, None]), "k": ["a", None], "d": pa.array([10, 10], pa.date32())}),
    ]
    first, second = encode(tables, ["n", "k", "d"])
    assert total_distance(first, second).tolist() == [[2.0, 3.0], [2.0, 1.0]]
    assert is_correct(np.array([100.0, 100.0, np.nan]), np.array([104.0, 106.0, np.nan]), number=True).tolist() == [
        True,
        False,
        True,
    ]


def test_rare_values_are_named_only_where_they_can_be() -> None:
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(5000) < 0.02, rng.normal(50, 5, 5000), 0.0)
    sharp, noisy = truth + rng.normal(size=5000), truth + 100 * rng.normal(size=5000)
    named = {one.values: one for one in rare_numbers("x", truth, sharp)}
    assert named["other than 0"].precision > 0.95
    assert named["other than 0"].found > 0.95
    assert all(one.named == 0 for one in rare_numbers("x", truth, noisy))
    has = rng.random(5000) < 0.03
    certain = rare_category("k", "rare", has, np.where(has, 0.9, 0.01))
    assert certain is not None
    assert certain.named == has.sum()
    assert rare_category("k", "common", rng.random(5000) < 0.5, rng.random(5000)) is None


def test_a_privacy_budget_is_that_of_the_two_records_that_noise_protects_least() -> None:
    noise = GaussianNoise(
        ("a", "b"),
        ((4.0,), (1.0, 1.0)),
        1.0,
        (1.0, 1.0),
        (0.1, 0.1),
        (None, None),
        (0.0, 0.0),
        collusion_resistant=True,
    )
    precision = np.linalg.inv(np.array([[4.0, 1.0], [1.0, 1.0]]))
    corners = [np.array([3.0, sign * 2.0]) for sign in (1, -1)]
    worst = max(float(corner @ precision @ corner) for corner in corners) / 2
    bounds = {"a": (0.0, 3.0), "b": (0.0, 2.0)}
    assert record_rho(noise, bounds) == pytest.approx(worst)
    assert math.isinf(record_rho(noise, {"a": (0.0, 3.0)}))
    replaced = UniformReplacement(
        ("k",), ({"values": ["x", "y", "z"], "count": 3},), 0.4, False, collusion_resistant=True
    )
    budget = privacy_budget([noise, replaced], bounds)
    assert budget is not None
    single = {one.columns: one for one in budget.attributes}
    assert single[("a",)].rho == pytest.approx(9 * precision[0, 0] / 2)
    assert single[("k",)].epsilon == pytest.approx(math.log(1 + 0.4 * 3 / 0.6))
    assert budget.epsilon > composed_epsilon(worst, [], 1) > worst
    twice = privacy_budget([noise, replaced], bounds, versions=2)
    assert twice is not None
    assert twice.rho == pytest.approx(2 * worst)
    assert twice.epsilon > budget.epsilon


def test_noise_of_the_shape_of_the_data_is_not_dissimilar() -> None:
    data = np.cov(ORIGINAL.values[:, :5].T)
    assert correlation_dissimilarity(data, 3 * data) == pytest.approx(0.0, abs=1e-12)
    independent = correlation_dissimilarity(data, np.diag(np.diag(data)))
    correlations = np.corrcoef(ORIGINAL.values[:, :5].T) - np.eye(5)
    assert independent == pytest.approx(np.sqrt((correlations**2).sum()) / 20)


def test_utility_of_a_copy_in_clear_and_of_noise_alone() -> None:
    same = utility(ORIGINAL, ORIGINAL, CONTROL)
    assert (same.il1s, same.eigenvalues, same.overlap) == pytest.approx((0.0, 0.0, 1.0), abs=1e-9)
    assert all(model.copy == model.original for model in same.models)
    noise = mixed(np.column_stack([np.random.default_rng(0).normal(100, 1, (ROWS, 5)), ORIGINAL.values[:, 5:]]))
    lost = utility(ORIGINAL, noise, CONTROL)
    assert lost.overlap == 0.0
    assert lost.propensity > 0.9
    assert same.propensity < 0.3
    number = next(model for model in lost.models if model.measure == "R²")
    assert number.copy < 0.1 < number.original


def test_means_of_groups_that_moved_are_named() -> None:
    """On fixed draws: nothing where nothing changed, and what a planted permutation moves."""
    draw = np.random.default_rng(7)
    group = draw.integers(0, 4, ROWS).astype(float)
    income = draw.normal(size=ROWS) + 2 * group
    other = draw.normal(size=ROWS)

    def table(*columns: Floats) -> MixedTable:
        return MixedTable(("income", "other", "job"), np.column_stack(columns), np.array([True, True, False]))

    original = table(income, other, group)
    assert group_changes(original, original) == []
    permuted = table(income, other, draw.permutation(group))  # margins stay, and groups mean nothing any more
    [found] = group_changes(original, permuted)
    assert (found.column, found.by) == ("income", "job")
    top = income[group == 3].mean() - income[group == 0].mean()
    assert abs(found.moved) == pytest.approx(top / 2 / income.std(), rel=0.1)
    assert utility(original, permuted, original).group_changes == (found,)


def test_small_groups_are_not_compared() -> None:
    group = np.repeat([0.0, 1.0], [ROWS - 31, 31])
    before, after = np.arange(ROWS, dtype=float), np.arange(ROWS, dtype=float)
    after[-31:] = 0
    tables = [MixedTable(("x", "g"), np.column_stack([one, group]), np.array([True, False])) for one in (before, after)]
    assert all(abs(one.moved) < 0.1 for one in group_changes(tables[0], tables[1]))
