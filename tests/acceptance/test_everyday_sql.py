"""Everyday SQL: what people type is answered, within the intervals at their nominal rate."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.mining import ask
from sfumato.mining.sql import cells, formulas

QUESTIONS = (
    "select avg(kids) v from t",
    "select avg(kids) v from t where region = 'north'",
    "select sum(kids) v from t where sex = 'f'",
    "select avg(kids) v from t where ill and age > 40",
    "select 100.0 * count(*) filter (where sex = 'f') / count(*) v from t",
    "select avg(case when ill then 1 else 0 end) v from t",
    "select stddev(age) v from t",
    "select variance(income) v from t",
    "select corr(age, income) v from t",
    "select median(age) v from t",
    "select sum(income) / sum(kids) v from t",
    "select avg(income) - avg(age) v from t",
    "select count(*) filter (where region = 'north') v from t where ill",
    "select count(*) v from t where not (age > 60)",
)
KEYS = 40
POLICY = """
dataset = "t"
[levels]
a = 0.7
[columns]
age = "gaussian"
income = "gaussian"
sex = { role = "uniform", domain = ["f", "m"] }
region = { role = "uniform", domain = ["north", "south", "east", "west"] }
kids = { role = "uniform", domain = { min = 0, max = 8 } }
ill = { role = "uniform", domain = [true, false] }
"""


def people(rows: int = 6000) -> pa.Table:
    rng = np.random.default_rng(25)
    age = rng.normal(45, 15, rows)
    return pa.table(
        {
            "age": age,
            "income": np.exp(rng.normal(10, 0.4, rows)) * (1 + age / 100),
            "sex": np.array(["f", "m"])[rng.integers(0, 2, rows)],
            "region": np.array(["north", "south", "east", "west"])[np.minimum(rng.geometric(0.4, rows) - 1, 3)],
            "kids": np.minimum(rng.poisson(1.2, rows), 8),
            "ill": rng.random(rows) < 1 / (1 + np.exp((60 - age) / 10)),
        }
    )


def exact(table: pa.Table, question: str) -> float:
    session = duckdb.connect()
    session.register("t", table)
    [[value]] = session.execute(question).fetchall()
    return float(value)


def missed(keys: int) -> dict[str, int]:
    """How often the truth is outside the interval of each question."""
    t, rng = people(), np.random.default_rng(3)
    truth = {question: exact(t, question) for question in QUESTIONS}
    scheme = sf.Policy.loads(POLICY).fit(t)
    out = dict.fromkeys(QUESTIONS, 0)
    for _ in range(keys):
        copy = scheme.release(t, "a", sf.Key.from_bytes(rng.bytes(32)))
        for question in QUESTIONS:
            [row] = ask(copy, question).to_pylist()
            out[question] += not row["v_low"] - 1e-9 <= truth[question] <= row["v_high"] + 1e-9
    return out


def test_the_truth_is_in_the_intervals() -> None:
    """Of 40 keys, a nominal 95 % interval misses 14 or more with a probability of 2e-8."""
    assert {question: count for question, count in missed(KEYS).items() if count >= 14} == {}
    assert binom.sf(13, KEYS, 0.05) * len(QUESTIONS) < 5e-7


def test_intervals_that_are_too_narrow_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted faults: replacements that are not inverted, and a formula without the ends of its parts."""
    monkeypatch.setattr(cells, "_inverted", lambda members, factors: members)
    value = formulas._value

    def narrow(*arguments: object) -> object:
        estimate, _, _ = value(*arguments)  # type: ignore[arg-type]
        return estimate, estimate, estimate

    monkeypatch.setattr(formulas, "_value", narrow)
    found = missed(4)
    for question in ("select avg(kids) v from t", "select sum(income) / sum(kids) v from t"):
        assert found[question] == 4


def test_groups_are_named_by_number_filtered_and_ordered() -> None:
    t = people()
    copy = sf.Policy.loads(POLICY).fit(t).release(t, "a", sf.Key.from_bytes(bytes(range(32))))
    query = (
        "select region, count(*), count(*) filter (where sex = 'f') as women from t group by 1 "
        "having count(*) > 500 order by count(*) desc"
    )
    rows = ask(copy, query).to_pylist()
    assert [row["region"] for row in rows] == ["north", "south", "west", "east"]
    assert all(row["women_low"] < row["women"] < row["count"] for row in rows)
    [first] = ask(copy, f"{query} limit 1").to_pylist()
    assert first == rows[0]
    ordered = ask(copy, "select region as r, avg(age) from t group by r order by 2").to_pylist()
    assert [row["avg(age)"] for row in ordered] == sorted(row["avg(age)"] for row in ordered)


def test_margin_preserving_copies_answer_too() -> None:
    t = people()
    copy = sf.Policy.suggest(t, dataset="t").fit(t).release(t, 0.7, sf.Key.from_bytes(bytes(range(32))))
    for question in ("select median(income) v from t", "select stddev(age) v from t", QUESTIONS[4], QUESTIONS[10]):
        [row] = ask(copy, question).to_pylist()
        assert row["v_low"] <= exact(t, question) <= row["v_high"]
    with pytest.raises(sf.SfumatoError, match="states rank correlations"):
        ask(copy, "select corr(age, income) from t")
