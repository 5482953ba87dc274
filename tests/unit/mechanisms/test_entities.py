"""Noise for entities: how it is fitted, what redraws it, what is refused, and what analysts are told."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests import longitudinal

import sfumato as sf
from sfumato.audit.audit_input import AuditInput
from sfumato.errors import MiningError, PolicyError, SourceError
from sfumato.kernels.cholesky import gram
from sfumato.mechanisms import _entity_rows
from sfumato.mechanisms._entity_rows import EntityRows
from sfumato.mining import ask, impute
from sfumato.mining.frequencies import Frequencies
from sfumato.mining.moments import Moments
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.policy.suggest import draft

KEY = sf.Key.from_bytes(bytes(range(32)))


@pytest.fixture(scope="module")
def visits() -> tuple[pa.Table, Any]:
    rng = np.random.default_rng(1)
    return longitudinal.patients(rng, rng.integers(1, 20, 2000))


def _factor(lines: list[list[float]]) -> Any:
    out = np.zeros((len(lines), len(lines)))
    for i, line in enumerate(lines):
        out[i, : i + 1] = line
    return out


def test_the_random_effects_are_estimated(visits: tuple[pa.Table, Any]) -> None:
    """Means of 2,000 entities: a standard error of 3 % of the variances, and rounding upwards; 7 are allowed."""
    state = longitudinal.policy().fit(visits[0]).schemes[0].state()
    between, within = gram(np.array(state["between"])), gram(_factor(state["within"]))
    assert state["constant"] == [True, False, False]
    np.testing.assert_allclose(between[1:, 1:], longitudinal.BETWEEN, atol=0.25 * 4)
    np.testing.assert_allclose(within[1:, 1:], longitudinal.WITHIN, atol=0.05)
    assert not within[0].any()
    whole = np.cov([visits[0][name].to_numpy() for name in ("age", "pressure", "weight")])
    assert np.linalg.eigvalsh(between + within - whole).min() > -1e-9  # never less than without entities


def test_the_fit_does_not_depend_on_how_rows_are_divided(
    visits: tuple[pa.Table, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, policy = visits[0], longitudinal.policy()
    rng = np.random.default_rng(2)
    for cells in (1 << 22, 3000):  # the second keeps some entities only
        monkeypatch.setattr(_entity_rows, "_CELLS", cells)
        shuffled = table.take(rng.permutation(table.num_rows))
        ends = [0, 1, 100, 9000, table.num_rows]
        parts = pa.Table.from_batches(
            [shuffled.slice(a, b - a).combine_chunks().to_batches()[0] for a, b in pairwise(ends)]
        )
        assert policy.fit(table).dumps() == policy.fit(parts).dumps()


def test_the_smallest_hashes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_entity_rows, "_CELLS", 8)
    ids = np.array([5, 1, 9, 1, 7], np.uint64)
    one, other = EntityRows.counted(ids), EntityRows.counted(np.array([1, 0, 9], np.uint64))
    both, reverse = one.merge(other), other.merge(one)
    assert both.ids.tolist() == reverse.ids.tolist() == [0, 1, 5, 7]
    assert both.rows.tolist() == reverse.rows.tolist() == [1, 3, 1, 1]


def test_a_corrected_constant_redraws_the_noise_of_its_entity(visits: tuple[pa.Table, Any]) -> None:
    """Were it kept, the difference of two versions would be the correction."""
    table, patient = visits
    scheme = longitudinal.policy().fit(table)
    ages = table["age"].to_numpy().copy()
    ages[patient == 7] += 10.0
    later = table.set_column(table.column_names.index("age"), "age", pa.array(ages))
    before, after = (scheme.release(one, "partner", KEY) for one in (table, later))
    difference = after["age"].to_numpy() - before["age"].to_numpy()
    assert not difference[patient != 7].any()
    assert np.ptp(difference[patient == 7]) == 0  # one draw for all its rows
    assert abs(difference[patient == 7][0] - 10) > 0.01
    assert (after["weight"].to_numpy() != before["weight"].to_numpy())[patient == 7].all()


def test_a_new_row_shares_the_noise_of_its_entity(visits: tuple[pa.Table, Any]) -> None:
    table, patient = visits
    scheme = longitudinal.policy().fit(table)
    first = int(np.flatnonzero(patient == 3)[0])
    more = pa.concat_tables([table, table.slice(first, 1).set_column(0, "visit", pa.array([table.num_rows]))])
    copy = scheme.release(more, "partner", KEY)
    assert copy["age"][-1] == copy["age"][first]
    assert copy["sex"][-1] == copy["sex"][first]
    assert copy["weight"][-1] != copy["weight"][first]
    assert copy.slice(0, table.num_rows).equals(scheme.release(table, "partner", KEY))


def test_whole_numbers_that_hardly_vary_within_entities_are_hidden_there() -> None:
    """Noise of less than a step would leave the one visit visible at which a number changed."""
    rng = np.random.default_rng(4)
    patient = np.repeat(np.arange(400), 6)
    children = rng.integers(0, 9, 400)[patient] + (rng.random(2400) < 0.02)
    table = pa.table({"patient": patient, "children": children})
    policy = sf.Policy.loads("""
dataset = "t"
order = "keep"
[levels]
a = 0.1
[columns]
patient = "entity"
children = { role = "gaussian", integer = true }
""")
    copy = policy.fit(table).release(table, "a", KEY)["children"].to_numpy().reshape(400, 6)
    assert (np.ptp(copy, axis=1) >= 4).all()


def test_a_number_that_hardly_varies_within_entities_has_noise_there() -> None:
    """Else a correction of it would show in the difference of two versions."""
    rng = np.random.default_rng(6)
    patient = np.repeat(np.arange(500), 6)
    height: Any = rng.normal(170, 10, 500)[patient]
    height[::600] += 0.1  # measured again
    table = pa.table({"patient": patient, "height": height})
    policy = sf.Policy.loads(
        'dataset = "t"\norder = "keep"\n[levels]\na = 0.5\n[columns]\npatient = "entity"\nheight = "gaussian"\n'
    )
    state = policy.fit(table).schemes[0].state()
    assert state["within"][0][0] >= np.sqrt(0.05) * height.std()
    assert state["constant"] == [False]


def _recovered(table: pa.Table, copy: pa.Table, patient: Any, name: str) -> float:
    """The share of the variation of patients' means that a copy recovers."""
    there = table[name].is_valid().to_numpy()
    means = []
    for one in (table, copy):
        values = one[name].to_numpy(zero_copy_only=False)
        means.append(np.bincount(patient[there], values[there]) / np.bincount(patient[there]))
    first, second = means
    return float(np.corrcoef(first, second)[0, 1] ** 2)


def test_gaps_and_changes_in_constant_columns_redraw_no_other() -> None:
    """Else each pattern of missing cells, and each age, would have a draw of its own for all columns."""
    rng = np.random.default_rng(7)
    patient = np.repeat(np.arange(1500), 20)
    rows = len(patient)
    columns = {"patient": patient, "pressure": rng.normal(120, 9, 1500)[patient] + rng.normal(0, 4, rows)}
    ages: Any = rng.normal(50, 10, (3, 1500))
    ages = ages[:, patient]
    holed = {f"c{i}": pa.array(age, mask=rng.random(rows) < 0.3) for i, age in enumerate(ages)}
    text = "".join(f'{name} = "gaussian"\n' for name in ("pressure", *holed))
    policy = sf.Policy.loads(f'dataset = "t"\norder = "keep"\n[levels]\na = 0.5\n[columns]\npatient = "entity"\n{text}')
    table = pa.table({**columns, **holed})
    scheme = policy.fit(table)
    assert scheme.schemes[0].state()["constant"] == [True, True, True, False]
    copy = scheme.release(table, "a", KEY)
    for name in ("pressure", *holed):
        assert 0.4 < _recovered(table, copy, patient, name) < 0.6
    older = table.set_column(2, "c0", pa.array(ages[0] + np.tile(np.arange(20) // 4, 1500)))
    assert 0.4 < _recovered(older, scheme.release(older, "a", KEY), patient, "pressure") < 0.6


def test_constant_columns_that_depend_on_each_other_have_noise_enough() -> None:
    """At least their covariance, in every direction."""
    rng = np.random.default_rng(8)
    patient = np.repeat(np.arange(800), 3)
    common = rng.normal(size=800)
    columns = {f"c{i}": (common + 0.3 * rng.normal(size=800))[patient] for i in range(4)}
    text = "".join(f'{name} = "gaussian"\n' for name in columns)
    policy = sf.Policy.loads(f'dataset = "t"\n[levels]\na = 0.5\n[columns]\npatient = "entity"\n{text}')
    [noise] = of_type(
        [policy.fit(pa.table({"patient": patient, **columns})).schemes[0].model(sf.Level(0.5))], GaussianNoise
    )
    covariance = np.array([[noise.covariance[max(i, j)][min(i, j)] for j in range(4)] for i in range(4)])
    assert np.linalg.eigvalsh(covariance - np.cov(list(columns.values()))).min() > -1e-9
    assert covariance[0][1] == 0  # no column uses the draw of another


def test_a_constant_column_that_others_determine_has_noise_of_its_own() -> None:
    """A baseline that is the entity's effect itself, and a column that never varies."""
    rng = np.random.default_rng(10)
    patient = np.repeat(np.arange(600), 5)
    effect = rng.normal(0, 9, 600)[patient]
    columns = {"baseline": effect, "now": effect + rng.normal(0, 3, 3000), "same": np.full(3000, 5.0)}
    text = "".join(f'{name} = "gaussian"\n' for name in columns)
    policy = sf.Policy.loads(f'dataset = "t"\norder = "keep"\n[levels]\na = 0.5\n[columns]\npatient = "entity"\n{text}')
    table = pa.table({"patient": patient, **columns})
    scheme = policy.fit(table)
    state = scheme.schemes[0].state()
    assert state["constant"] == [True, False, True]
    assert state["between"][0][0] ** 2 >= 0.09 * effect.var()
    copy = scheme.release(table, "a", KEY)
    assert 590 < len(np.unique(copy["same"].to_numpy())) <= 600
    assert _recovered(table, copy, patient, "baseline") < 0.56


def test_intervals_of_groups_with_many_rows_per_entity_hold() -> None:
    """Wards in which patients have 60 rows, among others with 2: 40 keys, of which 95 % hold; fewer than 32: 1e-4."""
    rng = np.random.default_rng(9)
    visits = np.array([60] * 6 + [2] * 600)
    patient = np.repeat(np.arange(len(visits)), visits)
    ward = np.where(patient < 6, "icu", "gp")
    x = rng.normal(50, 10, len(visits))[patient] + rng.normal(0, 3, len(patient))
    table = pa.table({"visit": np.arange(len(patient)), "patient": patient, "x": x, "ward": ward})
    policy = sf.Policy.loads(
        'dataset = "t"\n[levels]\na = 0.5\n[columns]\nvisit = "id"\n'
        'patient = { role = "entity", publish = "pseudonym" }\nx = "gaussian"\nward = "keep"\n'
    )
    scheme, held = policy.fit(table), 0
    for seed in range(40):
        copy = scheme.release(table, "a", sf.Key.from_bytes(np.random.default_rng(seed).bytes(32)))
        rows = ask(copy, "select ward, avg(x) as m from copy group by ward").to_pylist()
        [found] = [row for row in rows if row["ward"] == "icu"]
        held += found["m_low"] <= x[ward == "icu"].mean() <= found["m_high"]
    assert held >= 32
    each = ask(copy, "select patient, avg(x) as m from copy group by patient")
    assert each.num_rows == len(visits)


def test_hidden_entities_are_used_and_not_shown(visits: tuple[pa.Table, Any]) -> None:
    table, _ = visits
    copy = longitudinal.policy(publish=False).fit(table).release(table, "partner", KEY)
    assert "patient" not in copy.column_names
    [noise] = of_type(sf.Manifest.of(copy).models, GaussianNoise)
    assert noise.entity == "patient"
    assert noise.between
    assert noise.entity_rows == 32
    audited = AuditInput.of(table, {"partner": copy})
    assert audited.copies[0].public is not None  # an attacker may know which rows belong together
    assert len(audited.one_per_entity().truth) == 2000


def test_intervals_allow_for_shared_noise(visits: tuple[pa.Table, Any]) -> None:
    """Over 60 keys, intervals of 95 % contain the mean and the share: fewer than 50 times has probability 1e-4."""
    table, _ = visits
    scheme = longitudinal.policy().fit(table)
    mean, share = float(np.mean(table["age"])), float(np.mean(np.array(table["sex"]) == "f"))
    held = np.zeros(2, int)
    for seed in range(60):
        copy = scheme.release(table, "partner", sf.Key.from_bytes(np.random.default_rng(seed).bytes(32)))
        low, high = Moments(columns=["age"]).fit(copy).mean_interval_[0]
        first = Frequencies().fit(copy).table("sex").to_pylist()[0]
        held += [low <= mean <= high, first["low"] <= share <= first["high"]]
    assert (held >= 50).all()


def test_plausible_originals_are_refused(visits: tuple[pa.Table, Any]) -> None:
    copy = longitudinal.policy().fit(visits[0]).release(visits[0], "partner", KEY)
    with pytest.raises(MiningError, match="rows of one patient share noise in"):
        impute(copy, m=2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ('a = "entity"\nb = "entity"', "one column names the entities"),
        ('a = "entity"\nx = "copula"', "the role copula has none"),
        (
            'a = "entity"\nx = { role = "uniform", joint = "g" }\ny = { role = "uniform", joint = "g" }',
            "leave out `joint` of x, y",
        ),
        ('a = "entity"\nx = { role = "gaussian", scale = 2 }', "`scale` or `spread` of 'x' must be left out"),
        ('a = "entity"\nx = "gaussian"\n[gaussian]\nrescale = true', "`rescale` or `epsilon`"),
        ('a = { role = "entity", publish = "x" }\nx = "gaussian"', "`publish` of column 'a' must be true, false or"),
    ],
)
def test_policies_that_make_no_sense_are_refused(columns: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        sf.Policy.loads(f'dataset = "t"\n[levels]\na = 0.5\n[columns]\n{columns}\n')


@pytest.mark.parametrize(
    ("patients", "message"),
    [
        (range(60), "at least 30 entities with two complete rows"),
        ([None, *range(59)], "every record must have an entity"),
    ],
)
def test_tables_without_entities_are_refused(patients: Any, message: str) -> None:
    policy = sf.Policy.loads('dataset = "t"\n[levels]\na = 0.5\n[columns]\npatient = "entity"\nx = "gaussian"\n')
    with pytest.raises(SourceError, match=message):
        policy.fit(pa.table({"patient": list(patients), "x": np.arange(60.0)}))


def test_missing_values_are_left_out_of_the_fit(visits: tuple[pa.Table, Any]) -> None:
    table, _ = visits
    holes = pa.array(table["weight"].to_numpy(), mask=np.random.default_rng(5).random(table.num_rows) < 0.3)
    holed = table.set_column(table.column_names.index("weight"), "weight", holes)
    copy = longitudinal.policy().fit(holed).release(holed, "partner", KEY)
    assert copy["weight"].null_count == holes.null_count


def test_a_draft_sees_entities(visits: tuple[pa.Table, Any]) -> None:
    text = draft(visits[0])
    assert 'patient = { role = "entity", publish = false }' in text
    assert 'role = "copula"' not in text
    policy = sf.Policy.loads(text)
    assert policy.entity == "patient"
    assert sf.Policy.loads(draft(visits[0], roles={"patient": "drop"})).entity is None
