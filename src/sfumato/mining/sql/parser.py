"""Parser of SQL queries: DuckDB's own parser, reduced to the queries that can be corrected; others are refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from sfumato.errors import MiningError, install_hint

_AGGREGATES = {"count_star", "count", "sum", "avg", "mean"}
_LOWER = {"COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"}
_UPPER = {"COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO"}
_UNSUPPORTED_CLAUSES = {"having": "HAVING", "qualify": "QUALIFY", "sample": "USING SAMPLE"}


@dataclass(frozen=True)
class Predicate:
    """One of the conditions of WHERE that are joined by AND."""

    text: str
    columns: tuple[str, ...]
    range: tuple[float | str | None, float | str | None] | None = None
    """The ends of a range, if the predicate only restricts one column to a range."""


@dataclass(frozen=True)
class Output:
    """A column of the result: a grouping column, or an aggregate."""

    name: str
    function: str
    """The aggregate: count, sum or avg; empty for a grouping column."""
    column: str = ""


@dataclass(frozen=True)
class Query:
    """A parsed query."""

    outputs: tuple[Output, ...]
    groups: tuple[str, ...]
    predicates: tuple[Predicate, ...]
    ordering: str | None = None
    """A query over a table called `answer` that applies ORDER BY and LIMIT."""
    columns: tuple[str, ...] = field(default=())
    """All columns of the copy that the query uses."""


@cache
def _database() -> Any:
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ImportError:
        raise MiningError(f"SQL queries need DuckDB; {install_hint('sql')}") from None
    return duckdb.connect()


def new_session() -> Any:
    """A DuckDB session with tables of its own."""
    return _database().cursor()


def run(session: Any, sql: str) -> pa.Table:
    """The result of a query in DuckDB; its errors are refusals of one sentence."""
    import duckdb  # noqa: PLC0415 - it is installed, since there is a session

    try:
        return session.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise MiningError(f"DuckDB could not run the query: {str(error).splitlines()[0]}") from None


def quoted(name: str) -> str:
    """The name of a column as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def parse(sql: str, columns: Sequence[str]) -> Query:
    """Parse a query about a copy with these columns."""
    session = new_session()
    node = _select_node(session, sql)
    _refuse_unsupported(node)
    _resolve_columns(node, columns)
    groups = tuple(_column(expression, "GROUP BY") for expression in node["group_expressions"])
    outputs = _outputs(node, groups)
    predicates = tuple(_predicate(session, part) for part in _conjuncts(node["where_clause"]))
    used = [*groups, *(output.column for output in outputs), *(name for p in predicates for name in p.columns)]
    ordering = _ordering(session, node) if node["modifiers"] else None
    return Query(outputs, groups, predicates, ordering, tuple(dict.fromkeys(name for name in used if name)))


def _select_node(session: Any, sql: str) -> dict[str, Any]:
    """The syntax tree of the one SELECT of a query, as DuckDB serialises it."""
    if not sql.strip():
        raise MiningError("the query must be one SELECT statement, and it is empty; write one")
    parsed = json.loads(session.execute("select json_serialize_sql(?)", [sql]).fetchone()[0])
    if parsed.get("error"):
        reason = parsed.get("error_message", "it cannot be parsed")
        raise MiningError(f"the query must be one SELECT statement in valid SQL: {reason}")
    if len(parsed["statements"]) != 1:
        raise MiningError("the query must be one SELECT statement, and there are several; run one at a time")
    node: dict[str, Any] = parsed["statements"][0]["node"]
    return node


def _refuse_unsupported(node: dict[str, Any]) -> None:
    """Refuse clauses that cannot be corrected for noise."""
    if node["type"] != "SELECT_NODE":
        raise MiningError("the query must be one SELECT, and set operations such as UNION are not supported")
    if node["from_table"]["type"] != "BASE_TABLE" or node["from_table"]["sample"]:
        raise MiningError("the query must be about one table: write FROM copy, without joins, subqueries or samples")
    for part, clause in _UNSUPPORTED_CLAUSES.items():
        if node.get(part):
            raise MiningError(f"{clause} cannot be corrected for noise; leave it out, and filter the result instead")
    if node["cte_map"]["map"] or len(node.get("group_sets") or []) > 1:
        raise MiningError("the query must be one plain SELECT, without WITH, ROLLUP, CUBE or GROUPING SETS")
    if any(modifier["type"] == "DISTINCT_MODIFIER" for modifier in node["modifiers"]):
        raise MiningError("DISTINCT cannot be corrected for noise; use GROUP BY with count(*)")


def _resolve_columns(node: dict[str, Any], columns: Sequence[str]) -> None:
    """Write every column as in the copy, since SQL ignores case and allows table names and aliases."""
    name_of = _column_names(node, columns)
    for part in ("select_list", "where_clause", "group_expressions"):
        _rename_columns(node[part], name_of)


def _column_names(node: dict[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """The column that each name in lower case refers to: the names of columns, and their aliases in SELECT."""
    known = {name.lower(): name for name in columns}
    for expression in node["select_list"]:
        if expression["class"] == "COLUMN_REF" and expression["alias"]:
            name = expression["column_names"][-1]
            known.setdefault(expression["alias"].lower(), known.get(name.lower(), name))
    return known


def _rename_columns(node: Any, name_of: dict[str, str]) -> None:
    if isinstance(node, list):
        for part in node:
            _rename_columns(part, name_of)
    elif isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            name = node["column_names"][-1]
            node["column_names"] = [name_of.get(name.lower(), name)]
        for part in node.values():
            _rename_columns(part, name_of)


def _column(expression: dict[str, Any], clause: str) -> str:
    if expression["class"] != "COLUMN_REF":
        raise MiningError(
            f"{clause} takes column names only, not expressions; ask the owner to add the column before the release"
        )
    return str(expression["column_names"][-1])


def _outputs(node: dict[str, Any], groups: tuple[str, ...]) -> tuple[Output, ...]:
    """The columns of the result, of which at least one must be an aggregate."""
    outputs = tuple(_output(expression, groups) for expression in node["select_list"])
    if not any(output.function for output in outputs):
        raise MiningError(
            "the query must select count(*), count, sum or avg, since single records are mostly noise; add one"
        )
    if len({output.name for output in outputs}) < len(outputs):
        raise MiningError("the columns of the result must have different names; name them with AS")
    return outputs


def _output(expression: dict[str, Any], groups: tuple[str, ...]) -> Output:
    alias = expression["alias"]
    if expression["class"] == "COLUMN_REF":
        name = _column(expression, "SELECT")
        if name not in groups:
            raise MiningError(f"{name!r} must be in GROUP BY to be selected, and is not; add it there")
        return Output(alias or name, "", name)
    function = expression.get("function_name", expression["type"].lower())
    if expression["class"] != "FUNCTION" or function not in _AGGREGATES:
        raise MiningError(
            f"{function!r} cannot be corrected for noise; use count(*), count, sum or avg, or Moments.quantile for "
            "quantiles"
        )
    if expression["distinct"] or expression["filter"]:
        raise MiningError("DISTINCT and FILTER cannot be corrected for noise; put conditions into WHERE")
    column = _column(expression["arguments"][0]["expression"], f"{function}(...)") if expression["arguments"] else ""
    aggregate = {"count_star": "count", "mean": "avg"}.get(function, function)
    return Output(alias or (f"{aggregate}({column})" if column else "count"), aggregate, column)


def _conjuncts(expression: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The conditions that AND joins."""
    if expression is None:
        return []
    if expression["type"] == "CONJUNCTION_AND":
        return [part for child in expression["children"] for part in _conjuncts(child)]
    return [expression]


def _predicate(session: Any, expression: dict[str, Any]) -> Predicate:
    columns = tuple(dict.fromkeys(_referenced_columns(expression)))
    return Predicate(_text(session, expression), columns, _range(expression))


def _referenced_columns(expression: Any) -> list[str]:
    if isinstance(expression, list):
        return [name for part in expression for name in _referenced_columns(part)]
    if not isinstance(expression, dict):
        return []
    if expression.get("class") == "SUBQUERY":
        raise MiningError("a condition must be about the record itself, without subqueries; run the subquery by itself")
    if expression.get("class") == "COLUMN_REF":
        return [_column(expression, "WHERE")]
    return [name for part in expression.values() for name in _referenced_columns(part)]


def _range(expression: dict[str, Any]) -> tuple[Any, Any] | None:
    """The ends of `a < x`, `x <= b` or `x between a and b`; none for any other condition."""
    kind = expression["type"]
    if kind == "COMPARE_BETWEEN" and expression["input"]["class"] == "COLUMN_REF":
        ends = _constant(expression["lower"]), _constant(expression["upper"])
        return None if None in ends else ends
    if expression["class"] != "COMPARISON" or kind not in _LOWER | _UPPER:
        return None
    left, right, upper = expression["left"], expression["right"], kind in _UPPER
    if left["class"] != "COLUMN_REF":
        left, right, upper = right, left, not upper
    end = _constant(right)
    if left["class"] != "COLUMN_REF" or end is None:
        return None
    return (None, end) if upper else (end, None)


def _constant(expression: dict[str, Any]) -> float | str | None:
    """The number, or the text of the date or time, that a literal stands for; none for any other expression."""
    sign = 1.0
    if expression["class"] == "FUNCTION" and expression["function_name"] == "-" and len(expression["arguments"]) == 1:
        sign, expression = -1.0, expression["arguments"][0]["expression"]
    if expression["class"] == "CAST" and _cast_type(expression) in {"date", "timestamp"}:
        expression = expression["child"]
    if expression["class"] != "CONSTANT":
        return None
    text = expression.get("literal", {}).get("text")
    try:
        return sign * float(text)
    except (TypeError, ValueError):
        return None if text is None else str(text)


def _cast_type(cast: dict[str, Any]) -> str:
    return str(cast.get("type_expr", {}).get("type_name", "")).lower()


def _text(session: Any, expression: dict[str, Any]) -> str:
    """An expression as SQL text."""
    statement = json.loads(session.execute("select json_serialize_sql('select 1')").fetchone()[0])
    statement["statements"][0]["node"]["select_list"] = [expression]
    return _deserialised(session, statement).removeprefix("SELECT ").strip()


def _ordering(session: Any, node: dict[str, Any]) -> str:
    """The ORDER BY and LIMIT of a query, as a query over its result."""
    for modifier in node["modifiers"]:
        for order in modifier.get("orders", []):
            if order["expression"]["class"] != "COLUMN_REF":
                raise MiningError("ORDER BY takes column names of the result; name aggregates with AS to order by them")
    statement = json.loads(session.execute("select json_serialize_sql('select * from answer')").fetchone()[0])
    statement["statements"][0]["node"]["modifiers"] = node["modifiers"]
    return _deserialised(session, statement)


def _deserialised(session: Any, statement: dict[str, Any]) -> str:
    sql: str = session.execute("select json_deserialize_sql(?::json)", [json.dumps(statement)]).fetchone()[0]
    return sql
