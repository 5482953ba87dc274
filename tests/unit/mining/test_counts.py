"""Frequencies, SQL queries and itemsets, compared with the original."""

from __future__ import annotations

import datetime as dt
import decimal
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from tests import offices

import sfumato as sf
from sfumato.errors import MiningError, SfumatoError
from sfumato.kernels.inversion import (
    em_frequencies,
    inversion_variance,
    inverted_counts,
    maximum_likelihood_frequencies,
    perturbed_counts,
)
from sfumato.mining import Frequencies, Itemsets, ask, column, count

Array = Any


@pytest.fixture(scope="module")
def original() -> pa.Table:
    return offices.table(20_000)


@pytest.fixture(scope="module")
def copy(original: pa.Table) -> pa.Table:
    return offices.copy(original)


def test_inversion_is_the_inverse_of_replacement(rng: np.random.Generator) -> None:
    table, retentions = rng.random((3, 4, 2)), [0.3, 1.0, 0.7]
    assert inverted_counts(perturbed_counts(table, retentions), retentions) == pytest.approx(table)


def test_the_estimated_variance_of_an_inversion_is_unbiased(rng: np.random.Generator) -> None:
    """Over many copies of a small table with two attributes, the mean of the estimated variances is the variance."""
    retentions, shape = [0.4, 0.6], (3, 2)
    truth = np.column_stack([rng.choice(3, 200, p=[0.8, 0.15, 0.05]), rng.choice(2, 200, p=[0.9, 0.1])])
    estimates, variances = [], []
    for _ in range(6000):
        replacements = np.column_stack([rng.integers(0, size, 200) for size in shape])
        observed = np.where(rng.random((200, 2)) < retentions, truth, replacements)
        counts = np.zeros(shape)
        np.add.at(counts, tuple(observed.T), 1)
        estimates.append(inverted_counts(counts, retentions))
        variances.append(inversion_variance(counts, retentions))
    assert np.mean(variances, axis=0) == pytest.approx(np.var(estimates, axis=0), rel=7 * np.sqrt(2 / 6000))


def test_maximum_likelihood_frequencies_are_exact(rng: np.random.Generator) -> None:
    for retention in (0.1, 0.5, 0.9):
        counts = rng.multinomial(300, [0.6, 0.3, 0.06, 0.02, 0.02]).astype(np.float64)

        def loss(z: Array, counts: Array = counts, retention: float = retention) -> float:
            share = np.exp(z) / np.exp(z).sum()
            return float(-counts @ np.log(retention * share + (1 - retention) / 5))

        best = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
        exact = maximum_likelihood_frequencies(counts, retention)
        assert exact.min() >= 0
        assert -counts @ np.log(retention * exact + (1 - retention) / 5) <= best.fun + 1e-6
        assert em_frequencies(counts, [retention]) == pytest.approx(exact, abs=2e-3)


def test_contingency_tables_match_the_original(original: pa.Table, copy: pa.Table) -> None:
    found = Frequencies(columns=["ward", ("ward", "smokes", "site")]).fit(copy)
    truth = original.group_by(["ward", "smokes", "site"]).aggregate([([], "count_all")]).to_pylist()
    rows = {(r["ward"], r["smokes"], r["site"]): r for r in found.table("ward", "smokes", "site").to_pylist()}
    assert len(rows) == 16
    errors = [abs(rows[t["ward"], t["smokes"], t["site"]]["frequency"] - t["count_all"] / 20_000) for t in truth]
    assert max(errors) < 0.02
    assert sum(row["frequency"] for row in rows.values()) == pytest.approx(1)
    with pytest.raises(MiningError, match="to be tabulated"):
        found.table("smokes")


def test_missing_values_and_joint_groups_are_counted(tiny: pa.Table, tiny_scheme: sf.TableScheme) -> None:
    many = pa.concat_tables([tiny.set_column(0, "record", pa.array(np.arange(40) + 40 * i)) for i in range(50)])
    copy = tiny_scheme.release(many, "high", offices.key())
    found = Frequencies(columns=["dictionary", ("code", "day"), "code"]).fit(copy)
    shares = {row["dictionary"]: row["frequency"] for row in found.table("dictionary").to_pylist()}
    assert shares[None] == pytest.approx(np.mean([v is None for v in tiny.column("dictionary").to_pylist()]), abs=0.04)
    codes = {row["code"]: row["frequency"] for row in found.table("code").to_pylist()}
    assert codes[0] == pytest.approx(0.2, abs=0.05)
    assert found.table("code", "day").num_rows == 11 * 4


@pytest.mark.parametrize(
    "columns", [["age"], ["nobody"], [("ward", "age")]], ids=["numeric", "unknown", "numeric and categorical"]
)
def test_frequencies_of_other_columns_are_refused(copy: pa.Table, columns: Any) -> None:
    with pytest.raises(MiningError):
        Frequencies(columns=columns).fit(copy)


def test_too_few_rows_for_a_trust_level_are_refused(original: pa.Table) -> None:
    few = original.slice(0, 60)
    policy = offices.policy(close=0.1, far=0.02)
    low = policy.fit(few).release(few, "far", offices.key())
    with pytest.raises(MiningError, match="more faithful copy"):
        Frequencies(columns=["ward"]).fit(low)
    with pytest.raises(MiningError, match="more faithful copy"):
        count(low, where=column("ward") == "a")


QUERIES = [
    "select count(*) as n from copy where ward = 'a'",
    "select site, count(*) as n from copy where ward in ('a', 'b') and smokes group by site",
    "select ward, count(*) as n from copy group by ward",
    "select ward, site, avg(income) as m, sum(income) as t from copy where ward <> 'd' group by ward, site",
    "select count(*) as n from copy where age > 30 and age <= 60",
    "select count(*) as n from copy where 30 < age",
    "select site, count(*) as n from copy where age between 30 and 60 and ward = 'a' group by site",
    "select count(*) as n from copy where ward = 'a' or site = 'north'",
    "select count(*) as n from copy where not (ward = 'a' and smokes)",
    "select avg(hours) as m from copy where ward like 'a%'",
    "select site, avg(age) as m, count(age) as n from copy group by site",
    "select count(*) as n, sum(hours) as t from copy where hours > 20 and upper(site) = 'NORTH'",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_are_answered_for_the_original(original: pa.Table, copy: pa.Table, query: str) -> None:
    """Within five standard errors of the answer of the original itself."""
    session = duckdb.connect()
    session.register("copy", original)
    truth = session.sql(query).to_arrow_table().to_pylist()
    keys = [name for name in truth[0] if name in ("ward", "site")]
    answer = {tuple(row[k] for k in keys): row for row in ask(copy, query).to_pylist()}
    assert len(answer) == len(truth)
    for row in truth:
        estimate = answer[tuple(row[k] for k in keys)]
        for name in set(row) - set(keys):
            error = (estimate[f"{name}_high"] - estimate[f"{name}_low"]) / 2 / 1.96
            assert abs(estimate[name] - row[name]) <= 5 * error + 1e-9 * abs(row[name]), name


def test_queries_on_unchanged_columns_are_exact(copy: pa.Table) -> None:
    [row] = ask(copy, "select count(*) as n from copy where site = 'north'").to_pylist()
    assert row["n"] == row["n_low"] == row["n_high"] == copy.column("site").to_pylist().count("north")


def test_column_names_are_resolved_as_in_sql(copy: pa.Table) -> None:
    query = "select ward, count(*) as n from copy where smokes and ward <> 'd' group by ward order by n"
    plain = ask(copy, query)
    assert ask(copy, query.upper().replace("'D'", "'d'")).rename_columns(plain.column_names).equals(plain)
    other = "select c.ward as w, count(*) as n from copy c where c.smokes and c.ward <> 'd' group by w order by n"
    assert ask(copy, other).rename_columns(["ward", *plain.column_names[1:]]).equals(plain)


def test_estimates_stay_within_possible_ranges(original: pa.Table) -> None:
    few = original.slice(0, 400)
    copy = offices.policy().fit(few).release(few, "far", offices.key(3))
    rows = ask(copy, "select ward, site, count(*) as n, avg(age) as m from copy group by ward, site").to_pylist()
    assert all(0 <= row["n_low"] <= row["n"] <= row["n_high"] <= 400 for row in rows)
    assert any(row["m"] is None for row in rows)  # ward d of a site has about three records
    assert all(row["m"] is None or row["m_low"] < row["m"] < row["m_high"] for row in rows)


def test_answers_can_be_ordered_and_limited(copy: pa.Table) -> None:
    rows = ask(copy, "select ward, count(*) as n from copy group by ward order by n desc limit 2").to_pylist()
    assert [row["ward"] for row in rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select max(age) from copy", "'max' cannot be corrected"),
        ("select ward from copy", "must be in GROUP BY"),
        ("select ward from copy group by ward", "must select count"),
        ("select age, count(*) from copy group by age", "form no groups"),
        ("select count(*) from copy where age = 30", "cannot be corrected"),
        ("select count(*) from copy where age > 30 or ward = 'a'", "cannot be corrected"),
        ("select count(*) from copy where age > income", "cannot be corrected"),
        ("select count(*) from copy where age > 30 and income > 2", "one numeric column with noise"),
        ("select avg(income) from copy where age > 30", "noise is correlated"),
        ("select count(distinct ward) from copy", "DISTINCT"),
        ("select distinct ward, count(*) from copy group by ward", "DISTINCT"),
        ("select count(*) filter (where age > 3 and income > 2) from copy", "one numeric column with noise"),
        ("select count(*) from copy having avg(age) > 3", "HAVING must be about what is selected"),
        ("select count(*) from copy having (select 1) = 1", "without subqueries"),
        ("select count(*) from copy order by (select content from read_text('/etc/hostname'))", "without subqueries"),
        ("select median(age) from copy where ward = 'a'", "for the whole table only"),
        ("select ward, stddev(age) from copy group by ward", "for the whole table only"),
        ("select corr(age, ward) from copy", "holds categories"),
        ("select quantile_cont(age, 1.5) from copy", "between 0 and 1"),
        ("select ward, count(*) from copy group by 3", "the number of a selected column"),
        ("select sum(case when age > 3 then age else 0 end) from copy", "CASE must be"),
        ("select avg(age) over (partition by ward) from copy", "windows are about single records"),
        ("select count(*) from copy; select 1", "several"),
        ("select count(*) from copy, copy", "one table"),
        ("select count(*) from (select 1)", "one table"),
        ("with c as (select 1) select count(*) from c", "WITH"),
        ("select count(*) from copy where ward in (select 'a')", "without subqueries"),
        ("select count(*) from copy union select 1", "UNION"),
        ("select count(*) from copy where ward = 1", "DuckDB"),
        ("select count(*) from copy where nofunction(ward)", "DuckDB"),
        ("select count(*) from copy where ward = 'A'", "ward is one of a, b, c, d"),
        ("select ward, count(*) as n from copy group by ward order by avg(age)", "ORDER BY must be about what is"),
        ("select avg(age) as m, avg(hours) as m from copy", "different names"),
        ("select count(*) from copy tablesample 10%", "one table"),
        ("select count(*) from copy where age < 50 - 10", "cannot be corrected"),
        ("select count(*) from copy where age < 40.7::int", "cannot be corrected"),
        ("", "empty"),
        ("select sum(ward) from copy", "holds categories"),
        ("select ward, ward / 2, count(*) from copy group by ward", "select it by itself"),
        ("select count(*) from copy where nobody = 1", "no column 'nobody'"),
        ("select count(*) from copy where age > 50 and age < 40", "must leave a range"),
        ("select", "SQL"),
        ("drop table copy", "SELECT"),
    ],
)
def test_queries_that_cannot_be_corrected_are_refused(copy: pa.Table, query: str, reason: str) -> None:
    with pytest.raises(SfumatoError, match=reason):
        ask(copy, query, method="correction")


MISSING = [
    "select count(*) as n from copy where ward = 'a' or site = 'north'",
    "select count(*) as n from copy where coalesce(ward, 'a') = 'a'",
    "select count(*) as n from copy where ward is distinct from 'a'",
    "select count(*) as n from copy where ward is null and site = 'north'",
    "select ward, count(*) as n from copy group by ward",
    "select site, count(ward) as n from copy group by site",
]


@pytest.mark.parametrize("query", MISSING)
def test_a_missing_value_is_an_unperturbed_category(original: pa.Table, query: str) -> None:
    wards = [None if i % 5 == 2 else ward for i, ward in enumerate(original.column("ward").to_pylist())]
    table = original.set_column(4, "ward", pa.array(wards))
    session = duckdb.connect()
    session.register("copy", table)
    truth = {row.get("ward", row.get("site")): row["n"] for row in session.sql(query).to_arrow_table().to_pylist()}
    answer = ask(offices.policy().fit(table).release(table, "far", offices.key()), query).to_pylist()
    assert {row.get("ward", row.get("site")) for row in answer} == truth.keys()
    for row in answer:
        error = (row["n_high"] - row["n_low"]) / 2 / 1.96
        assert abs(row["n"] - truth[row.get("ward", row.get("site"))]) <= 5 * error + 1e-6


def test_perturbed_missing_values_are_corrected(original: pa.Table) -> None:
    text = offices.POLICY.format(close=0.8, far=0.5).replace('"d"] }', '"d"], nulls = "perturb" }')
    table = original.set_column(4, "ward", pa.array([None, "a"] * 10_000))
    copy = sf.Policy.loads(text).fit(table).release(table, "far", offices.key())
    with pytest.raises(MiningError, match="GROUP BY"):
        ask(copy, "select count(ward) from copy", method="correction")
    found = {row["ward"]: row["count"] for row in count(copy, by=["ward"]).to_pylist()}
    assert found[None] == pytest.approx(10_000, rel=0.05)


def test_columns_that_differ_in_case_only_are_refused() -> None:
    table = pa.table({"a": ["x", "y"] * 100, "A": ["y", "x"] * 100})
    policy = sf.Policy.loads('dataset = "t"\n[levels]\nl = 0.5\n[columns]\na = "uniform"\nA = "keep"')
    with pytest.raises(MiningError, match="differ in more than case"):
        count(policy.fit(table).release(table, "l", offices.key()), where=column("a") == "x")


def test_dates_and_decimals_can_be_categories() -> None:
    days = pa.array([dt.date(2025, 1, 1 + i % 3) for i in range(3000)])
    table = pa.table({"day": days, "price": pa.array([decimal.Decimal("1.5")] * 3000)})
    policy = sf.Policy.loads('dataset = "t"\n[levels]\nl = 0.8\n[columns]\nday = "uniform"\nprice = "keep"')
    copy = policy.fit(table).release(table, "l", offices.key())
    found = ask(copy, "select day, count(*) as n from copy where day >= date '2025-01-02' group by day").to_pylist()
    assert [row["day"] for row in found] == [dt.date(2025, 1, 2), dt.date(2025, 1, 3)]
    assert found[0]["n"] == pytest.approx(1000, rel=0.2)


def test_many_keys_in_a_mixed_condition_are_fast(original: pa.Table, copy: pa.Table) -> None:
    """Ten thousand distinct numbers and a perturbed category in one condition, which once took one query per number."""
    table = original.append_column("v", pa.array(np.random.default_rng(0).random(20_000)))
    text = offices.POLICY.format(close=0.8, far=0.5)
    policy = sf.Policy.loads(text.replace('site = "keep"', 'site = "keep"\nv = "keep"'))
    perturbed = policy.fit(table).release(table, "far", offices.key())
    [row] = ask(perturbed, "select count(*) as n from copy where ward = 'a' or v > 0.9").to_pylist()
    truth = np.sum((np.array(table.column("ward").to_pylist()) == "a") | (table.column("v").to_numpy() > 0.9))
    assert abs(row["n"] - truth) < 5 * (row["n_high"] - row["n_low"]) / 3.92


def test_conditions_in_python_are_equivalent_to_sql(copy: pa.Table) -> None:
    expression = count(copy, where=(column("ward") == "a") & ~column("site").isin(["north"]) | (column("ward") != "b"))
    sql = "(ward = 'a' and site not in ('north')) or ward <> 'b'"
    query = ask(copy, f'select count(*) as "count" from copy where {sql}')  # noqa: S608
    assert expression.equals(query)
    within = column("age").between(30, 40.5) & (column("hours") >= 20) & (column("site") > "a")
    ranged = count(copy, where=within, by=["site"])
    assert ranged.num_rows == 2
    with pytest.raises(TypeError):
        bool(column("ward") == "a")


def test_names_with_quotes_are_escaped() -> None:
    table = pa.table({'a "b"; drop': ["it's", "x"] * 500, "rows": ["p", "q"] * 500})
    columns = """'a "b"; drop' = "uniform"\nrows = "keep"\n"""
    policy = sf.Policy.loads(f'dataset = "t"\n[levels]\nl = 0.9\n[columns]\n{columns}')
    copy = policy.fit(table).release(table, "l", offices.key())
    found = count(copy, where=column('a "b"; drop') == "it's", by=["rows"]).to_pylist()
    assert {row["rows"]: round(row["count"] / 500) for row in found} == {"p": 1, "q": 0}


@pytest.fixture(scope="module")
def baskets() -> pa.Table:
    draw = np.random.default_rng(3)
    base = draw.random((30_000, 2)) < 0.5
    items = {
        "bread": base[:, 0] | (draw.random(30_000) < 0.2),
        "butter": base[:, 0] & (draw.random(30_000) < 0.8),
        "milk": base[:, 1],
        "tea": draw.random(30_000) < 0.1,
        "wine": base[:, 1] & base[:, 0] & (draw.random(30_000) < 0.7),
    }
    return pa.table(items)


def _exact(table: pa.Table, least: float, longest: int) -> dict[tuple[str, ...], float]:
    has = {name: table.column(name).to_numpy(zero_copy_only=False) for name in sorted(table.column_names)}
    sets = [group for size in range(1, longest + 1) for group in combinations(has, size)]
    shares = {group: float(np.mean(np.logical_and.reduce([has[name] for name in group]))) for group in sets}
    return {group: share for group, share in shares.items() if share >= least}


@pytest.mark.parametrize("level", [0.9, 0.6])
def test_itemsets_and_rules_are_those_of_the_original(baskets: pa.Table, level: float) -> None:
    columns = "\n".join(f'{name} = "uniform"' for name in baskets.column_names)
    policy = sf.Policy.loads(f'dataset = "baskets"\n[levels]\nl = {level}\n[columns]\n{columns}')
    copy = policy.fit(baskets).release(baskets, "l", offices.key())
    found = Itemsets(min_support=0.15, min_confidence=0.6, max_length=3).fit(copy)
    exact = _exact(baskets, 0.15, 3)
    for items, share in exact.items():  # variance-aware pruning loses no set that is frequent
        assert items in found.supports_, items
        support = found.supports_[items]
        assert abs(support.estimate - share) <= 5 * (support.high - support.low) / 3.92
    clear = {group for group, share in exact.items() if share > 0.17}
    assert clear <= {tuple(items) for items in found.itemsets_.column("items").to_pylist()}
    rules = {(tuple(r["antecedent"]), tuple(r["consequent"])): r["confidence"] for r in found.rules_.to_pylist()}
    assert rules[("butter",), ("bread",)] == pytest.approx(exact["bread", "butter"] / exact["butter",], abs=0.08)
    assert (("tea",), ("bread",)) not in rules


def test_pruning_allows_for_the_standard_error(baskets: pa.Table) -> None:
    """A set whose support is below the minimum by less than its error is kept, to search for longer sets."""
    columns = "\n".join(f'{name} = "uniform"' for name in baskets.column_names)
    policy = sf.Policy.loads(f'dataset = "baskets"\n[levels]\nl = 0.6\n[columns]\n{columns}')
    copy = policy.fit(baskets).release(baskets, "l", offices.key())
    support = Itemsets(min_support=0.05).fit(copy).supports_["milk",]
    again = Itemsets(min_support=(support.estimate + support.high) / 2).fit(copy)
    assert ("milk",) in again.supports_
    assert ["milk"] not in again.itemsets_.column("items").to_pylist()
    assert ("milk",) not in Itemsets(min_support=support.high + 0.01).fit(copy).supports_


def test_items_that_are_missing_or_perturbed_jointly() -> None:
    draw = np.random.default_rng(1)
    one, two = draw.random(20_000) < 0.5, draw.random(20_000) < 0.4
    incomplete = pa.array([None if i % 4 == 0 else bool(value) for i, value in enumerate(one)])
    table = pa.table({"one": incomplete, "two": two})
    head = 'dataset = "t"\n[levels]\nl = 0.6\n[columns]\n'
    policy = sf.Policy.loads(head + 'one = "uniform"\ntwo = "uniform"')
    found = Itemsets(min_support=0.05).fit(policy.fit(table).release(table, "l", offices.key()))
    truth = np.mean((one & two)[np.arange(20_000) % 4 != 0])
    assert abs(found.supports_["one", "two"].estimate - truth) < 0.03
    joint = sf.Policy.loads(head + 'one = { role = "uniform", joint = "j" }\ntwo = { role = "uniform", joint = "j" }')
    with pytest.raises(MiningError, match="perturbed jointly"):
        Itemsets().fit(joint.fit(table).release(table, "l", offices.key()))


def test_many_unchanged_columns_are_cross_tabulated(original: pa.Table) -> None:
    draw = np.random.default_rng(2)
    table = pa.table({f"k{i}": draw.choice(["p", "q"], 4000) for i in range(5)} | {"w": draw.choice(["x", "y"], 4000)})
    columns = "\n".join(f'k{i} = "keep"' for i in range(5))
    policy = sf.Policy.loads(f'dataset = "t"\n[levels]\nl = 0.9\n[columns]\n{columns}\nw = "uniform"')
    copy = policy.fit(table).release(table, "l", offices.key())
    names = tuple(table.column_names)
    found = Frequencies(columns=[names]).fit(copy).table(*names)
    shares = found.group_by("k0").aggregate([("frequency", "sum")]).to_pylist()
    p = table.column("k0").to_pylist().count("p") / 4000
    assert {row["k0"]: row["frequency_sum"] for row in shares}["p"] == pytest.approx(p)


def test_a_column_of_more_than_two_values_is_no_item(copy: pa.Table) -> None:
    with pytest.raises(MiningError, match="must be a column of two values"):
        Itemsets(columns=["ward"]).fit(copy)
