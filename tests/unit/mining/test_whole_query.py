"""Queries that are run on whole tables: what they use, what is taken out of them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.errors import MiningError
from sfumato.mining.sql.syntax import new_session, run
from sfumato.mining.sql.whole_query import WholeQuery

COLUMNS = ("Age", "income", "ward", "site")


def read(sql: str, *tables: str) -> WholeQuery:
    return WholeQuery.of(sql, COLUMNS, tables)


def test_having_and_ordering_are_about_the_estimates() -> None:
    query = read("select ward, count(*) n from t group by 1 having avg(age) > 3 order by sum(income), n, 1 limit 2")
    assert query.alias == "t"
    assert query.keys == ("ward",)
    assert list(query.values.values()) == ["count_star", "sum", "avg"]
    assert query.selected == ("ward", "n")
    assert "HAVING" not in query.sql
    assert "ORDER" not in query.sql
    assert "LIMIT 2" in str(query.ordering)


@pytest.mark.parametrize(
    ("sql", "compared"),
    [
        ("select avg(age), corr(age, income) from t", ()),
        ("select avg(age * income) from t where ward = 'a'", ("ward",)),
        ("select median(age) from t", ("Age",)),
        ("select sum(case when age > 3 then income end) from t", ("Age", "income")),
        ("select avg(income) filter (where age > 3) from t", ("Age",)),
        ("select floor(age), count(*) from t group by 1", ("Age",)),
        ("select avg(a) from (select age as a from t) s", ("Age",)),
    ],
)
def test_columns_whose_single_values_matter(sql: str, compared: tuple[str, ...]) -> None:
    assert read(sql).compared == compared


def test_columns_of_the_answer_are_named_as_people_would() -> None:
    query = read("select ward, count(*), avg(income), sum(age) / count(*) as s from t group by ward")
    assert query.selected == ("ward", "count", "avg(income)", "s")


def test_other_tables_are_named() -> None:
    query = read("with b as (select * from copy) select r.x, count(*) from b join r using (site) group by 1", "r")
    assert query.alias == "copy"
    assert query.columns == ("site",)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select max(income) from t", "extremes of single records"),
        ("select count(distinct ward) from t", "DISTINCT"),
        ("select distinct ward, count(*) from t group by 1", "DISTINCT"),
        ("select rank() over (order by income) from t", "windows are about single records"),
        ("select ward from t", "single records are mostly noise"),
        ("select count(*) from read_csv('secret.csv')", "not about functions"),
        ("select count(*) from t where age > (select max(content) from read_text('x'))", "functions|extremes"),
        ("select count(*) from main.t", "without a schema"),
        ("select count(*) from t, 'other.csv'", "the other tables must be given"),
        ("select count(*) from t union select 1", "UNION"),
        ("select count(*) from t using sample 10%", "SAMPLE"),
        ("select avg(age) m, avg(income) m from t", "different names"),
        ("select list(income) from t", "cannot be corrected"),
    ],
)
def test_what_is_about_records_or_other_data_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(MiningError, match=reason):
        read(sql)


def test_a_query_reads_no_files(tmp_path: Path) -> None:
    """The name of a table is that of the copy elsewhere in the query, so that it passes for one: DuckDB refuses it."""
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    sql = """select count(*) from t, (with "F" as (select 1) select * from "F") s, "F" """.replace("F", str(file))
    query = read(sql)
    session = new_session()
    session.register(query.alias, pa.table({"a": [1]}))
    with pytest.raises(MiningError, match="DuckDB could not run the query"):
        run(session, query.sql)


def test_columns_that_differ_in_case_only_are_refused() -> None:
    with pytest.raises(MiningError, match="differ in more than case"):
        WholeQuery.of("select avg(age) from t", ("Age", "age"), ())
