"""Answers about margin-preserving columns: intervals hold the original's statistics, of one column and of relations."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import MiningError
from sfumato.experiments._data import adult_table
from sfumato.mining import ask
from sfumato.mining.report.profile import profile
from sfumato.release.scheme import TableScheme

KEY = sf.Key.from_bytes(bytes(range(32)))
GROUPS = ("sex", "race", "workclass", "relationship", "income", "education")
TARGETS = ("age", "hours-per-week", "education-num", "fnlwgt", "capital-gain")
ALONE = (
    *(f'select "{name}", count(*) as n from copy group by "{name}"' for name in GROUPS),  # noqa: S608
    *(f'select avg("{name}") as n from copy' for name in TARGETS),  # noqa: S608
    *(f"select count(*) as n from copy where age between {low} and {low + 7}" for low in range(20, 70, 3)),  # noqa: S608
)
RELATIONS = (
    *(f'select "{group}", avg("{name}") as n from copy group by "{group}"' for group in GROUPS for name in TARGETS),  # noqa: S608
    *(f'select "{group}", count(*) as n from copy where income = \'>50K\' group by "{group}"' for group in GROUPS[:-2]),  # noqa: S608
    *(f'select sex, avg("hours-per-week") as n from copy where age > {age} group by sex' for age in (30, 45, 60)),  # noqa: S608
)


@cache
def _adult() -> tuple[pa.Table, TableScheme]:
    table = adult_table()
    roles = "".join(f'"{name}" = "copula"\n' for name in table.column_names)
    policy = f'dataset = "adult"\n[levels]\nhigh = 0.9\nmiddle = 0.6\nlow = 0.2\n[columns]\n{roles}'
    return table, sf.Policy.loads(policy).fit(table)


def _covered(level: str, queries: tuple[str, ...]) -> tuple[int, int, list[float]]:
    """How many answers hold the truth, how many there are, and the widths of the intervals."""
    table, scheme = _adult()
    session = duckdb.connect()
    session.register("copy", table)
    truth = {query: session.sql(query).to_arrow_table().to_pylist() for query in queries}
    released = scheme.release(table, level, KEY)
    hits, total, widths = 0, 0, []
    for query in queries:
        known = {_key(row): row["n"] for row in truth[query]}
        for row in ask(released, query).to_pylist():
            right = known.get(_key(row), 0)
            hits, total = hits + (row["n_low"] <= right <= row["n_high"]), total + 1
            widths.append(row["n_high"] - row["n_low"])
    return hits, total, widths


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in row.items() if not name.startswith("n") or name == "native-country")


@pytest.mark.parametrize("level", ["high", *(pytest.param(name, marks=pytest.mark.slow) for name in ("middle", "low"))])
def test_intervals_hold_the_truth(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for queries in (ALONE, RELATIONS):
        hits, total, _ = _covered(level, queries)
        assert hits / total >= 0.94
    for name in ("retained", "correlation"):
        monkeypatch.setattr(f"sfumato.mining.sql.margin_answers.{name}", lambda one, other: 1.0)
    hits, total, _ = _covered(level, RELATIONS)
    assert hits / total < 0.85  # relations taken as if nothing of them had faded


def test_a_category_that_is_not_shown_may_have_some_records() -> None:
    rng = np.random.default_rng(2)
    ward = rng.permutation(["A"] * 600 + ["B"] * 380 + ["rare"] * 20)
    table = pa.table({"ward": ward, "age": rng.integers(20, 60, 1000)})
    policy = 'dataset = "d"\n[levels]\na = 0.8\n[columns]\nward = "copula"\nage = "copula"\n'
    copy = sf.Policy.loads(policy).fit(table).release(table, "a", KEY)
    [row] = ask(copy, "select count(*) as n from copy where ward = 'rare'").to_pylist()
    assert row["n"] == 0
    assert row["n_high"] >= 20


def test_relations_with_other_columns_are_refused() -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"ward": rng.choice(["A", "B"], 1000), "age": rng.normal(40, 9, 1000), "id": np.arange(1000)})
    policy = 'dataset = "d"\n[levels]\na = 0.8\n[columns]\nid = "id"\nward = "keep"\nage = "copula"\n'
    copy = sf.Policy.loads(policy).fit(table).release(table, "a", KEY)
    with pytest.raises(MiningError, match="was not perturbed together with"):
        ask(copy, "select ward, avg(age) from copy group by ward")
    assert ask(copy, "select ward, count(*) from copy group by ward").num_rows == 2


@pytest.mark.parametrize("level", ["high", "low"])
def test_the_profile_states_margins_and_rank_correlations(level: str) -> None:
    table, scheme = _adult()
    found = profile(scheme.release(table, level, KEY))
    original = table.to_pandas()
    for number in found.numbers:
        column = original[number.name]
        assert number.mean.low < column.mean() < number.mean.high
        assert number.standard_deviation.low < column.std() < number.standard_deviation.high
        assert number.quantiles[2].low <= column.median() <= number.quantiles[2].high
    assert {category.name for category in found.categories} >= {"sex", "income", "education"}
    for category in found.categories:
        shares = original[category.name].value_counts(normalize=True)
        held = [i.low <= shares.get(v, 0) <= i.high for v, i in zip(category.values, category.frequencies, strict=True)]
        assert np.mean(held) > 0.7
    for pair in found.pairs:
        right = original[pair.one].corr(original[pair.other], method="spearman")
        assert pair.of_ranks
        assert pair.correlation.low < right < pair.correlation.high


ONE = 'dataset = "d"\n[levels]\nhigh = 0.9\nlow = 0.5\n[columns]\n'


@pytest.mark.parametrize("tail", ["lognormal", "pareto"])
def test_means_of_heavy_tails_allow_for_the_outermost_bins(tail: str) -> None:
    rng = np.random.default_rng(5)
    x = np.exp(1.5 * rng.normal(size=50_000)) if tail == "lognormal" else 1 + rng.pareto(1.5, 50_000)
    table = pa.table({"x": x})
    scheme = sf.Policy.loads(ONE + 'x = "copula"\n').fit(table)
    for seed in range(3):
        copy = scheme.release(table, "low", sf.Key.from_bytes(bytes([seed] * 32)))
        [row] = ask(copy, "select avg(x) as n, sum(x) as m from copy").to_pylist()
        assert row["n_low"] < x.mean() < row["n_high"]
        assert row["m_low"] < x.sum() < row["m_high"]
        [number] = profile(copy).numbers
        assert number.standard_deviation.low < x.std() < number.standard_deviation.high


@pytest.mark.parametrize("level", ["high", "low"])
def test_a_relation_that_no_correlation_expresses(level: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    y = x**2 + 0.3 * rng.normal(size=20_000)
    side = np.where(np.abs(x) > 1.2, "out", np.where(rng.random(20_000) < 0.5, "A", "B"))
    table = pa.table({"x": x, "y": y, "side": side})
    scheme = sf.Policy.loads(ONE + 'x = "copula"\ny = "copula"\nside = "copula"\n').fit(table)
    [row] = ask(scheme.release(table, level, KEY), "select avg(y) as n from copy where side = 'out'").to_pylist()
    assert row["n_low"] < y[side == "out"].mean() < row["n_high"]


def test_an_empty_copy_is_refused() -> None:
    table = pa.table({"x": pa.array([], pa.float64())})
    copy = sf.Policy.loads(ONE + 'x = "copula"\n').fit(table).release(table, "low", KEY)
    with pytest.raises(MiningError, match="needs records"):
        ask(copy, "select avg(x) from copy")
