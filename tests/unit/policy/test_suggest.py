from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.policy.suggest import draft
from sfumato.policy.suggested_roles import special_values
from sfumato.release.manifest import Manifest


@pytest.fixture
def people() -> pa.Table:
    draw = np.random.default_rng(1)
    rows = 2000
    income = draw.lognormal(10, 0.4, rows)
    income[7] = 9e7
    return pa.table(
        {
            "patient_id": np.arange(rows),
            "last_name": [f"name {i}" for i in range(rows)],
            "age": draw.integers(0, 95, rows),
            "income": income,
            "smoker": draw.random(rows) < 0.3,
            "ward": draw.integers(1, 6, rows),
            "region": np.array(["n", "s", "e"])[draw.integers(0, 3, rows)],
            "postcode": pa.array(draw.integers(0, 400, rows)).cast(pa.string()),
            "admitted": [dt.date(2025, 1, 1) + dt.timedelta(days=int(d)) for d in draw.integers(0, 300, rows)],
            "remarks": [f"remark {i % 1900}" for i in range(rows)],
            "nothing": pa.nulls(rows),
            "a strange name": draw.normal(size=rows),
        }
    )


def test_each_column_gets_a_sensible_role(people: pa.Table) -> None:
    policy = sf.Policy.suggest(people, dataset="people", plain_noise=True)
    roles = {name: column.role for name, column in policy.columns.items()}
    assert roles == {
        "patient_id": "id",
        "last_name": "drop",
        "age": "gaussian",
        "income": "gaussian",
        "smoker": "uniform",
        "ward": "uniform",
        "region": "uniform",
        "postcode": "drop",
        "admitted": "gaussian",
        "remarks": "drop",
        "nothing": "drop",
        "a strange name": "gaussian",
    }
    low, high = policy.columns["income"].options["clip"]
    assert low < 10_000
    assert 60_000 < high < 1e6
    assert policy.columns["region"].options["domain"] == ["e", "n", "s"]
    assert "clip" not in policy.columns["age"].options


def test_identifiers_and_free_text_are_told_apart() -> None:
    rows = 100
    table = pa.table(
        {
            "mrn": [i * 7919 % 100_003 for i in range(rows)],
            "pid": range(rows),
            "notes": [f"came in with a cough, day {i}" for i in range(rows)],
            "salary": [i * i * 37 + 1000 for i in range(rows)],
        }
    )
    roles = {name: column.role for name, column in sf.Policy.suggest(table).columns.items()}
    assert roles == {"mrn": "id", "pid": "drop", "notes": "drop", "salary": "gaussian"}
    assert "its row number does" in draft(table.select(["salary"]))


def test_a_clip_is_drafted_only_where_it_moves_something() -> None:
    top_coded = pa.table({"gain": [0.0] * 900 + list(range(50)) + [99_999.0] * 50})
    assert "clip" not in sf.Policy.suggest(top_coded).columns["gain"].options


def test_the_draft_works_as_it_is_and_explains_itself(people: pa.Table, key: sf.Key) -> None:
    text = draft(people, dataset="people", plain_noise=True)
    assert text.count("# ") > len(people.column_names)
    assert "which noise would not hide" in text
    copy = sf.Policy.loads(text).fit(people).release(people, "public", key)
    assert "last_name" not in copy.column_names


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_small_tables_get_a_draft_too(people: pa.Table, rows: int) -> None:
    assert sf.Policy.suggest(people.slice(0, rows)).columns.keys() == set(people.column_names)


def test_copies_that_look_like_the_data(people: pa.Table, key: sf.Key) -> None:
    text = draft(people)
    roles = {column.role for column in sf.Policy.loads(text).columns.values()}
    assert "copula" in roles
    assert not roles & {"gaussian", "uniform"}
    copy = sf.Policy.loads(text).fit(people).release(people, "public", key)
    kept = [name for name in copy.column_names if name in people.column_names]
    assert [copy.schema.field(name).type for name in kept] == [people.schema.field(name).type for name in kept]


def test_values_that_many_records_share_are_stated() -> None:
    """With shares in steps of at least 16 records; ages of which each is as frequent as the next are not special."""
    draw = np.random.default_rng(2)
    hours = np.where(np.arange(4000) < 1804, 40.0, draw.normal(36, 10, 4000))
    table = pa.table({"hours": hours, "age": draw.integers(0, 95, 4000), "free": draw.normal(size=4000)})
    policy = sf.Policy.suggest(table, dataset="d", plain_noise=True)
    stated = {name: column.options["special"] for name, column in policy.columns.items() if column.role == "gaussian"}
    assert stated == {"hours": [[40, 0.45]], "age": [], "free": []}
    assert "Many records share 40: stated for analysts" in draft(table, plain_noise=True)
    copy = policy.fit(table).release(table, 0.5, sf.Key.from_bytes(bytes(32)))
    noise = of_type(Manifest.of(copy).models, GaussianNoise)
    assert {name: one.special_values(name) for one in noise for name in one.columns}["hours"] == ((40.0, 0.45),)
    assert noise[0].narrowed(["age"]).special == ((),)


@pytest.mark.parametrize(("rows", "unit"), [(200, 0.1), (1000, 0.02), (20_000, 0.001)])
def test_stated_shares_hide_at_least_sixteen_records(rows: int, unit: float) -> None:
    values = np.where(np.arange(rows) < 0.437 * rows, 7.0, np.random.default_rng(3).normal(size=rows))
    [[value, share]] = special_values(values)["special"]
    assert value == 7
    assert share == pytest.approx(round(0.437 / unit) * unit)
    assert unit * rows >= 16


def test_a_share_that_rounds_to_all_records_is_not_stated() -> None:
    values = np.concatenate([np.zeros(99_970), np.arange(1.0, 31.0)])
    assert special_values(values) == {}
    sf.Policy.suggest(pa.table({"x": values}), dataset="d", plain_noise=True)


@pytest.mark.parametrize(
    "name", ["household_id", "Haushalts-ID", "Haushalt", "HH_NR", "hh id", "PatientenNr", "Kunden-Nummer", "hhid"]
)
def test_columns_of_households_and_persons_are_found(name: str) -> None:
    table = pa.table({name: np.arange(600) // 3, "x": np.random.default_rng(1).normal(size=600)})
    policy = sf.Policy.suggest(table, dataset="d")
    assert (policy.columns[name].role, policy.columns["x"].role) == ("entity", "gaussian")


def test_codes_for_missing_values_and_weights_are_pointed_at() -> None:
    draw = np.random.default_rng(4)
    age = np.where(np.arange(2000) < 25, 999, draw.integers(18, 97, 2000))
    table = pa.table({"age": age, "income": draw.lognormal(10, 1, 2000).round(), "sample_weight": draw.random(2000)})
    text = {line.split(":")[0]: line for line in draft(table).splitlines() if line.startswith("# ")}
    assert "999 is far from all other values (the next is 96), and 25 records have it" in text["# age"]
    assert "missing" not in text["# income"]
    assert "survey weights" in text["# sample_weight"]
    assert "survey weights" not in text["# income"]
    below = np.where(np.arange(2000) < 5, -9, draw.integers(0, 50, 2000))
    assert "-9 is far from all" in draft(pa.table({"n": below}))
    assert "far from all" not in draft(pa.table({"n": draw.integers(0, 100, 2000)}))  # 99 has neighbours
