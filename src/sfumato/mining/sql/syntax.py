"""Syntax of SQL queries: DuckDB's own parser and engine, and the parts of a syntax tree that conditions are made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from sfumato.errors import MiningError

_LOWER = {"COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"}
_UPPER = {"COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO"}
_OPPOSITE = {
    "COMPARE_GREATERTHAN": "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_GREATERTHANOREQUALTO": "COMPARE_LESSTHAN",
    "COMPARE_LESSTHAN": "COMPARE_GREATERTHANOREQUALTO",
    "COMPARE_LESSTHANOREQUALTO": "COMPARE_GREATERTHAN",
}


@dataclass(frozen=True)
class Predicate:
    """One of the conditions of WHERE that are joined by AND."""

    text: str
    columns: tuple[str, ...]
    range: tuple[float | str | None, float | str | None] | None = None
    """The ends of a range, if the predicate only restricts one column to a range."""


@cache
def _database() -> Any:
    import duckdb  # noqa: PLC0415 - most of mining needs none

    return duckdb.connect(config={"enable_external_access": "false"})  # a query reads nothing but what it is given


def new_session() -> Any:
    """A DuckDB session with tables of its own."""
    return _database().cursor()


def run(session: Any, sql: str) -> pa.Table:
    """The result of a query in DuckDB; its errors are refusals of one sentence."""
    import duckdb  # noqa: PLC0415

    try:
        return session.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise MiningError(f"DuckDB could not run the query: {str(error).splitlines()[0]}") from None


def quoted(name: str) -> str:
    """The name of a column as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def select_node(session: Any, sql: str) -> dict[str, Any]:
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


def column_name(expression: dict[str, Any], clause: str) -> str:
    """The column that an expression is, in a clause that takes nothing else."""
    if expression["class"] != "COLUMN_REF":
        raise MiningError(
            f"{clause} takes column names only, not expressions; ask the owner to add the column before the release"
        )
    return str(expression["column_names"][-1])


def conjuncts(expression: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The conditions that AND joins."""
    if expression is None:
        return []
    if expression["type"] == "CONJUNCTION_AND":
        return [part for child in expression["children"] for part in conjuncts(child)]
    if expression["type"] == "OPERATOR_NOT" and expression["children"][0]["type"] in _OPPOSITE:
        inner = expression["children"][0]
        return [{**inner, "type": _OPPOSITE[inner["type"]]}]
    return [expression]


def predicate(session: Any, expression: dict[str, Any]) -> Predicate:
    """A condition, with its columns."""
    columns = tuple(dict.fromkeys(_referenced_columns(expression)))
    return Predicate(text(session, expression), columns, _range(expression))


def _referenced_columns(expression: dict[str, Any]) -> Iterator[str]:
    for part in parts(expression):
        if part.get("class") == "SUBQUERY":
            raise MiningError(
                "a condition must be about the record itself, without subqueries; run the subquery by itself"
            )
        if part.get("class") == "COLUMN_REF":
            yield column_name(part, "WHERE")


def parts(node: Any) -> Iterator[dict[str, Any]]:
    """All parts of a syntax tree, each before its own parts."""
    if isinstance(node, list):
        for one in node:
            yield from parts(one)
    elif isinstance(node, dict):
        yield node
        for one in node.values():
            yield from parts(one)


def _range(expression: dict[str, Any]) -> tuple[Any, Any] | None:
    """The ends of `a < x`, `x <= b` or `x between a and b`; none for any other condition."""
    kind = expression["type"]
    if kind == "COMPARE_BETWEEN" and expression["input"]["class"] == "COLUMN_REF":
        ends = constant(expression["lower"]), constant(expression["upper"])
        return None if None in ends else ends
    if expression["class"] != "COMPARISON" or kind not in _LOWER | _UPPER:
        return None
    left, right, upper = expression["left"], expression["right"], kind in _UPPER
    if left["class"] != "COLUMN_REF":
        left, right, upper = right, left, not upper
    end = constant(right)
    if left["class"] != "COLUMN_REF" or end is None:
        return None
    return (None, end) if upper else (end, None)


def constant(expression: dict[str, Any]) -> float | str | None:
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


def text(session: Any, expression: dict[str, Any]) -> str:
    """An expression as SQL text."""
    node = select_node(session, "select 1")
    node["select_list"] = [expression]
    return query_text(session, node).removeprefix("SELECT ").strip()


def query_text(session: Any, node: dict[str, Any]) -> str:
    """A SELECT as SQL text."""
    statement = {"error": False, "statements": [{"node": node}]}
    sql: str = session.execute("select json_deserialize_sql(?::json)", [json.dumps(statement)]).fetchone()[0]
    return sql


def ordering(session: Any, node: dict[str, Any], names: Sequence[str], about_answer: Callable[[Any, str], Any]) -> str:
    """The HAVING, ORDER BY and LIMIT of a query, as a query over a table called `answer`.

    Args:
        session: a session.
        node: the query.
        names: the columns of its answer, in the order in which they are selected.
        about_answer: makes an expression about the copy, in a clause, one about the answer.

    """
    outer = select_node(session, "select * from answer")
    for modifier in node["modifiers"]:
        for order in modifier.get("orders", []):
            number = selected_number(order["expression"], len(names))
            chosen = None if number is None else reference(names[number])
            order["expression"] = chosen or about_answer(order["expression"], "ORDER BY")
    outer["modifiers"], outer["where_clause"] = node["modifiers"], about_answer(node.get("having"), "HAVING")
    return query_text(session, outer)


def selected_number(expression: dict[str, Any], count: int) -> int | None:
    """Which of the selected columns a number such as 1 in GROUP BY 1 stands for; none for any other expression."""
    number = constant(expression) if expression["class"] == "CONSTANT" else None
    if not isinstance(number, float):
        return None
    if not 1 <= number <= count:
        raise MiningError(f"{number:g} must be the number of a selected column, of which there are fewer")
    return int(number) - 1


def check_case(used: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse columns whose names SQL does not distinguish from others."""
    lower_case = [name.lower() for name in columns]
    for name in used:
        if lower_case.count(name.lower()) > 1:
            raise MiningError(
                f"column names must differ in more than case, since SQL ignores it, and {name!r} does not; drop one of "
                "the columns from the copy"
            )


def reference(name: str) -> dict[str, Any]:
    """The syntax of a column."""
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": [name]}
