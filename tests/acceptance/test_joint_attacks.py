"""Attacks on whole records, on real ones and on columns with spikes, beside those on single columns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks import ATTACKS, Evidence, Knowledge, Records, Score, score
from sfumato.attacks._dependent_columns import dependent_groups
from sfumato.audit.audit import audit
from sfumato.audit.known_scores import KnownScores
from sfumato.experiments._data import adult_table
from sfumato.kernels import Floats
from sfumato.release.evidence import copy_evidence, original_records
from sfumato.release.manifest import Manifest
from sfumato.tables.margin import scores_of, shown_scores

ROWS = 12_000


def attacked(table: pa.Table, fidelity: float) -> tuple[Evidence, Records]:
    """A copy with plain noise as evidence, each category replaced alone, and the truth."""
    drafted = sf.Policy.suggest(table, dataset="t", plain_noise=True)
    columns = {
        name: dataclasses.replace(one, options={key: value for key, value in one.options.items() if key != "joint"})
        for name, one in drafted.columns.items()
    }
    policy = dataclasses.replace(drafted, columns=columns, order="keep", digits=16)
    copy = policy.fit(table).release(table, fidelity, sf.Key.from_bytes(bytes(range(32))))
    manifest = Manifest.of(copy)
    return copy_evidence(copy, manifest), original_records(table, manifest.models)


def scored(name: str, evidence: Evidence, truth: Records) -> Score:
    return score(ATTACKS[name]().estimate(evidence), truth)


@pytest.fixture(scope="module", params=[0.7, 0.3])
def adult(request: pytest.FixtureRequest) -> tuple[Evidence, Records]:
    return attacked(adult_table().slice(0, ROWS), request.param)


def test_categories_are_inferred_from_all_other_columns(adult: tuple[Evidence, Records]) -> None:
    """Education and its number tell each other, as do relationship, sex and marital status; no record is known."""
    alone, together = (scored(name, *adult) for name in ("collusion", "noisy-labels"))
    for column, gain in (("education", 0.04), ("relationship", 0.03), ("sex", 0.02), ("marital-status", 0.03)):
        before, after = (one.category(column).success.attack.estimate for one in (alone, together))
        assert after > before + gain, column


def test_numbers_are_estimated_from_categories_too(adult: tuple[Evidence, Records]) -> None:
    alone, together = (scored(name, *adult) for name in ("bayes", "latent-class"))
    for column, gain in (("age", 0.02), ("hours-per-week", 0.01), ("capital-gain", 0.15)):
        before, after = (one.number(column).error.attack.estimate for one in (alone, together))
        assert after < before - gain, column


def test_atoms_are_found_behind_the_noise() -> None:
    """A column of two values is read by its atoms; without them the same classes leave more."""
    rng = np.random.default_rng(0)
    spikes = np.where(rng.random(6000) < 0.3, 10.0, 0.0) + np.where(rng.random(6000) < 0.2, 3.0, 0.0)
    table = pa.table({"spiky": spikes, "smooth": rng.normal(size=6000)})
    policy = sf.Policy.loads(
        'dataset="s"\norder="keep"\n[levels]\nl=0.9\n[columns]\nspiky="gaussian"\nsmooth="gaussian"'
    )
    copy = policy.fit(table).release(table, "l", sf.Key.from_bytes(bytes(range(32))))
    manifest = Manifest.of(copy)
    evidence, truth = copy_evidence(copy, manifest), original_records(table, manifest.models)
    linear = scored("bayes", evidence, truth).number("spiky").error.attack.estimate
    found = scored("latent-class", evidence, truth)
    assert found.number("spiky").error.attack.estimate < linear / 2
    assert found.number("smooth").error.attack.estimate < 0.115  # which has no atoms: 1 - 0.9, and the fit's own error


def test_a_category_that_tells_nothing_of_others_is_not_made_up() -> None:
    rng = np.random.default_rng(0)
    columns = {name: np.array(list("abcd"))[rng.integers(0, 4, ROWS)] for name in ("x", "y", "z")}
    evidence, truth = attacked(pa.table({**columns, "n": rng.normal(size=ROWS)}), 0.4)
    alone, together = (scored(name, evidence, truth) for name in ("collusion", "noisy-labels"))
    for column in columns:
        before, after = (one.category(column).success.attack.estimate for one in (alone, together))
        assert abs(after - before) < 0.02


def test_repeated_records_are_recognised_by_known_ones() -> None:
    """Few kinds of record, of which one in ten is known: each noisy record is one of them, categories included."""
    rng = np.random.default_rng(1)
    kinds = rng.integers(0, 300, 6000)
    numbers, codes = rng.normal(size=(300, 4)), rng.integers(0, 6, (300, 3))
    columns = {f"n{i}": numbers[kinds, i] for i in range(4)}
    columns |= {f"c{i}": np.array(list("uvwxyz"))[codes[kinds, i]] for i in range(3)}
    evidence, truth = attacked(pa.table(columns), 0.7)
    known = np.arange(0, 6000, 10)
    informed = dataclasses.replace(evidence, knowledge=Knowledge(known=truth.take(known), known_rows=known))
    alone, together = (scored(name, informed, truth) for name in ("latent-class", "known-density"))
    for i in range(4):
        before, after = (one.number(f"n{i}").error.attack.estimate for one in (alone, together))
        assert after < before - 0.05
    for i in range(3):
        before, after = (one.category(f"c{i}").success.attack.estimate for one in (alone, together))
        assert after > before + 0.02


def test_complete_records_do_not_stand_for_all() -> None:
    """Hours are those of workers; classes fitted to them alone take pensioners for workers."""
    rng = np.random.default_rng(2)
    works = rng.random(6000) < 0.6
    age = np.where(works, rng.normal(43, 8, 6000), rng.normal(75, 5, 6000))
    pension = np.where(works, 0.0, np.exp(rng.normal(7.3, 0.4, 6000)))
    hours = pa.array(np.where(works, rng.normal(40, 8, 6000), np.nan), from_pandas=True)
    evidence, truth = attacked(pa.table({"age": age, "pension": pension, "hours": hours}), 0.5)
    linear, found = (scored(name, evidence, truth) for name in ("bayes", "latent-class"))
    for column, least in (("age", 0.2), ("pension", 0.05)):
        before, after = (one.number(column).error.attack.estimate for one in (linear, found))
        assert after < before - least, (column, before, after)


def test_values_that_are_not_ordered_are_learned_from_known_records() -> None:
    """A category in the middle of others has the score of none of them: a linear estimate of scores misses it."""
    rng = np.random.default_rng(3)
    kinds = rng.integers(0, 8, 5000)
    centres = 2 * rng.normal(size=(8, 4))
    columns = {f"n{i}": centres[kinds, i] + 0.3 * rng.normal(size=5000) for i in range(4)}
    table = pa.table({**columns, "kind": np.array(list("abcdefgh"))[rng.permutation(8)][kinds]})
    policy = dataclasses.replace(sf.Policy.suggest(table, dataset="t"), order="keep", digits=16)
    copy = policy.fit(table).release(table, 0.6, sf.Key.from_bytes(bytes(range(32))))
    found = audit(table, {"one": copy}, attacks=("llse", "latent-class"), without=("measures", "utility"))
    [kind] = [risk for risk in found.value_risks if risk.column == "kind"]
    assert kind.measure == "success"
    assert kind.independent_noise < 0.4  # by linear estimates of scores
    assert kind.all_copies > 0.65


def test_a_perturbed_group_discloses_what_its_records_share() -> None:
    """A branch has one rent; the branch is perturbed, and so is the rent, and each tells the other."""
    rng = np.random.default_rng(4)
    branch = rng.integers(0, 100, 6000)
    columns = {"branch": np.array([f"b{i:03}" for i in range(100)])[branch], "rent": rng.normal(size=100)[branch]}
    table = pa.table({**columns, "wage": rng.normal(size=6000)})
    evidence, truth = attacked(table, 0.7)
    alone, together = (scored(name, evidence, truth) for name in ("bayes", "hidden-groups"))
    before, after = (one.number("rent").error.attack.estimate for one in (alone, together))
    assert before > 0.27
    assert after < 0.2
    wages = [one.number("wage").error.attack.estimate for one in (alone, together)]
    assert abs(wages[1] - wages[0]) < 0.03  # wages have no group


def test_repeated_records_are_recognised_and_averaged() -> None:
    """Four visits of each patient, in no order and without an identifier; the same table with fresh patients."""
    rng = np.random.default_rng(6)
    mixing = rng.normal(size=(12, 12))

    def table(repeats: int) -> pa.Table:
        people = rng.normal(size=(4000 // repeats, 12)) @ mixing
        visits = rng.permutation(np.repeat(np.arange(len(people)), repeats))
        ward = np.array(list("abcd"))[(people[:, 0] > 0) + 2 * (people[:, 1] > 0)]
        return pa.table({**{f"x{i}": people[visits, i] for i in range(12)}, "ward": ward[visits]})

    errors, wards = {}, {}
    for repeats in (4, 1):
        evidence, truth = attacked(table(repeats), 0.9)
        for name in ("bayes", "repeated-records"):
            found = scored(name, evidence, truth)
            errors[repeats, name] = np.mean([one.error.attack.estimate for one in found.numbers])
        wards[repeats] = found.categories[0].success.attack.estimate
    assert errors[4, "bayes"] > 0.09
    assert errors[4, "repeated-records"] < 0.06
    assert wards[4] > wards[1] + 0.03
    assert errors[1, "repeated-records"] < errors[1, "bayes"] + 0.02  # nobody is there twice, and nobody is found


def test_groups_of_columns_are_attacked_apart() -> None:
    """Three groups of numbers that follow profiles of their own: one distribution of all would need 9³ classes."""
    rng = np.random.default_rng(7)
    columns: dict[str, Floats] = {}
    for group in "abc":
        profiles = rng.gamma(2, 50, (9, 4))[rng.integers(0, 9, 5000)]
        columns |= {f"{group}{i}": profiles[:, i] + rng.normal(0, 6, 5000) for i in range(4)}
    evidence, truth = attacked(pa.table(columns), 0.8)
    assert [group.numbers for group in dependent_groups(evidence)] == [
        tuple(f"{group}{i}" for i in range(4)) for group in "abc"
    ]
    errors = {
        name: np.mean([one.error.attack.estimate for one in scored(name, evidence, truth).numbers])
        for name in ("bayes", "latent-class")
    }
    assert errors["bayes"] > 0.18
    assert errors["latent-class"] < 0.09


def test_a_hierarchy_of_codes_is_recognised_by_its_combinations() -> None:
    """Each of 200 codes has one group and one branch; few codes are known, and the copy shows the others."""
    rng = np.random.default_rng(8)
    code = rng.integers(0, 200, 6000)
    names = {"code": (code, 200), "group": (code // 5, 40), "branch": (code // 20, 10)}
    table = pa.table({name: np.array([f"{name}{i:03}" for i in range(size)])[of] for name, (of, size) in names.items()})
    evidence, truth = attacked(table, 0.7)
    known = Knowledge(known=truth.take(np.arange(60)), known_rows=np.arange(60))
    found = scored("known-density", dataclasses.replace(evidence, knowledge=known), truth)
    right = {one.columns[0]: one.success.attack.estimate for one in found.categories}
    assert right["group"] > 0.8  # and 0.71 by the copy alone
    assert right["branch"] > 0.82


def test_what_varies_between_records_of_one_person_is_learned_from_known_ones() -> None:
    """Six visits of each patient, with measurements of the day and a diagnosis; without known ones it is in the way."""
    rng = np.random.default_rng(9)
    people, visits = rng.normal(size=(800, 14)), rng.permutation(np.repeat(np.arange(800), 6))
    columns = {f"p{i:02}": people[visits, i] for i in range(14)}
    columns |= {f"v{i}": rng.normal(size=4800) + 0.5 * people[visits, i] for i in range(4)}
    table = pa.table({**columns, "diagnosis": np.array(list("abcdef"))[rng.integers(0, 6, 4800)]})
    evidence, truth = attacked(table, 0.8)
    known = np.arange(0, 4800, 10)
    informed = dataclasses.replace(evidence, knowledge=Knowledge(known=truth.take(known), known_rows=known))
    before, after = (scored("repeated-records", one, truth) for one in (evidence, informed))
    for kind, most, gain in (("p", 0.13, 0.02), ("v", 0.2, 0.015)):
        errors = [
            np.mean([one.error.attack.estimate for one in found.numbers if one.column.startswith(kind)])
            for found in (before, after)
        ]
        assert errors[1] < most, (kind, errors)
        assert errors[1] < errors[0] - gain, (kind, errors)
    assert after.categories[0].success.attack.estimate >= before.categories[0].success.attack.estimate


def test_independent_components_are_found_behind_the_noise() -> None:
    """Balances are sums of payments that are mostly nothing: no column shows it, and their differences do."""
    rng = np.random.default_rng(10)
    payments = np.where(rng.random((5000, 12)) < 0.8, 0.0, rng.gamma(20, 50, (5000, 12)))
    balances = np.cumsum(payments, axis=1)
    evidence, truth = attacked(pa.table({f"b{i:02}": balances[:, i] for i in range(12)}), 0.8)
    errors = {
        name: np.mean([one.error.attack.estimate for one in scored(name, evidence, truth).numbers])
        for name in ("udr", "latent-class", "component-density")
    }
    assert errors["component-density"] < 0.1, errors
    assert errors["udr"] > 0.12, errors
    assert errors["latent-class"] > 0.12, errors


def test_kinds_that_differ_in_how_values_vary_together_are_discriminated() -> None:
    """Four kinds of records, of which each has its own covariance of sixteen values, and no value of its own."""
    rng = np.random.default_rng(13)
    kinds, roots = rng.integers(0, 4, 5000), rng.normal(size=(4, 16, 16))
    values = np.einsum("rij,rj->ri", roots[kinds], rng.normal(size=(5000, 16))) + 0.3 * rng.normal(size=(5000, 16))
    table = pa.table({**{f"n{i}": values[:, i] for i in range(16)}, "kind": np.array(list("abcd"))[kinds]})
    policy = dataclasses.replace(sf.Policy.suggest(table, dataset="t"), order="keep", digits=16)
    copy = policy.fit(table).release(table, 0.6, sf.Key.from_bytes(bytes(range(32))))
    found = audit(table, {"one": copy}, attacks=("llse",), without=("measures", "utility"))
    [risk] = [risk for risk in found.value_risks if risk.column == "kind"]
    assert risk.all_copies > 0.735  # 0.718 without discriminants


def test_values_of_many_categories_are_voted_for_by_known_records() -> None:
    """Each of 120 products has a size and a weight; the order of products says nothing of either."""
    rng = np.random.default_rng(11)
    product = rng.integers(0, 120, 6000)
    size, weight = np.exp(rng.normal(3, 1, 120)), np.exp(rng.normal(0, 1, 120))
    names = np.array([f"p{i:03}" for i in range(120)])
    columns = {"size": size[product], "weight": weight[product], "product": names[product]}
    table = pa.table({**columns, "packed": size[product] * rng.integers(1, 4, 6000)})
    policy = dataclasses.replace(sf.Policy.suggest(table, dataset="t"), order="keep", digits=16)
    copy = policy.fit(table).release(table, 0.9, sf.Key.from_bytes(bytes(range(32))))
    found = audit(table, {"one": copy}, attacks=("llse",), without=("measures", "utility"))
    [risk] = [risk for risk in found.value_risks if risk.column == "product"]
    assert risk.independent_noise < 0.15  # by linear estimates of scores
    assert risk.all_copies > 0.3


def test_known_records_are_shown_as_copies_show_them() -> None:
    """Scores are drawn within the intervals of their values, and their simulated copies are like the real one."""
    rng = np.random.default_rng(12)
    base = rng.normal(size=8000)
    table = pa.table(
        {
            "a": base + rng.normal(size=8000),
            "b": np.rint(base),
            "c": np.array(list("xyz"))[(base > 0) + (base > 1) * 1],
            "d": np.array(["no", "yes"])[(base + 0.2 * rng.normal(size=8000) > 0) * 1],
        }
    )
    copy = sf.Policy.suggest(table, dataset="t").fit(table).release(table, 0.6, sf.Key.from_bytes(bytes(range(32))))
    evidence = copy_evidence(copy, Manifest.of(copy))
    [part] = evidence.numbers
    assert part.copula is not None
    scores, means = KnownScores.of(part.copula, table, 2), scores_of(table, part.copula)
    again = shown_scores(scores.drawn, part.copula)
    assert np.abs(again - np.tile(means, (2, 1))).max() < 0.1  # which are those of the same values, or of the same bin
    real, simulated = part.values, scores.copies()
    assert np.abs(np.cov(real.T) - np.cov(simulated.T)).max() < 6 * 2 * 1.7 / np.sqrt(8000)  # six standard errors


def test_a_column_that_does_not_vary_stops_no_attack() -> None:
    rng = np.random.default_rng(13)
    table = pa.table({"a": rng.normal(size=600), "b": rng.normal(size=600), "c": np.array(["x"] * 600)})
    policy = dataclasses.replace(sf.Policy.suggest(table, dataset="t"), order="keep", digits=16)
    copy = policy.fit(table).release(table, 0.5, sf.Key.from_bytes(bytes(range(32))))
    found = audit(table, {"one": copy}, without=("measures", "utility"))
    assert [one.attack for one in found.all_copies.skipped if one.failed] == []
