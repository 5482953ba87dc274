"""A question in SQL, taken apart by DuckDB's own parser into what can be corrected; the rest is refused by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from sfumato.errors import MiningError

_AGGREGATES = {"count_star", "count", "sum", "avg", "mean"}
_LOWER = {"COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"}
_UPPER = {"COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO"}


@dataclass(frozen=True)
class Term:
    """A condition: what stands between two ANDs."""

    text: str
    columns: tuple[str, ...]
    range: tuple[float | str | None, float | str | None] | None = None
    """Where it only says between which ends one column lies."""


@dataclass(frozen=True)
class Output:
    """A column of the answer: a column that is grouped by, or an aggregate."""

    name: str
    function: str
    column: str = ""


@dataclass(frozen=True)
class Question:
    """What is asked."""

    outputs: tuple[Output, ...]
    groups: tuple[str, ...]
    terms: tuple[Term, ...]
    arranged: str | None = None
    """How to order and cut the answer, as SQL over a table called `answer`."""
    columns: tuple[str, ...] = field(default=())


@cache
def _database() -> Any:
    try:
        import duckdb  # noqa: PLC0415 - an extra
    except ImportError:
        raise MiningError("questions need DuckDB, which is not installed; pip install 'sfumato[sql]'") from None
    return duckdb.connect()


def duck() -> Any:
    """A session of DuckDB, with tables of its own."""
    return _database().cursor()


def told(session: Any, sql: str) -> pa.Table:
    """What DuckDB answers, or its refusal in one sentence."""
    import duckdb  # noqa: PLC0415 - it is there, as there is a session

    try:
        return session.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise MiningError(f"DuckDB could not answer the question: {str(error).splitlines()[0]}") from None


def _resolve(node: Any, names: dict[str, str]) -> None:
    """Write every column as the copy does: SQL does not mind case, and may say which table a column is of."""
    if isinstance(node, list):
        for part in node:
            _resolve(part, names)
    elif isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            said = node["column_names"][-1]
            node["column_names"] = [names.get(said.lower(), said)]
        for part in node.values():
            _resolve(part, names)


def _known(node: dict[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """What columns may be called, in small letters: their names, and what the answer calls them."""
    known = {name.lower(): name for name in columns}
    for expression in node["select_list"]:
        if expression["class"] == "COLUMN_REF" and expression["alias"]:
            shown = expression["column_names"][-1]
            known.setdefault(expression["alias"].lower(), known.get(shown.lower(), shown))
    return known


def parse(sql: str, columns: Sequence[str]) -> Question:
    """Take a question about some columns apart."""
    session = duck()
    if not sql.strip():
        raise MiningError("the question must be one SELECT in SQL, and it is empty")
    parsed = json.loads(session.execute("select json_serialize_sql(?)", [sql]).fetchone()[0])
    if parsed.get("error"):
        raise MiningError(f"the question must be one SELECT in SQL: {parsed.get('error_message', 'it is none')}")
    if len(parsed["statements"]) != 1:
        raise MiningError("the question must be one SELECT, and there are several; ask one at a time")
    node = parsed["statements"][0]["node"]
    _refuse_what_is_more(node)
    known = _known(node, columns)
    for part in ("select_list", "where_clause", "group_expressions"):
        _resolve(node[part], known)
    groups = tuple(_column(expression, "GROUP BY") for expression in node["group_expressions"])
    outputs = tuple(_output(expression, groups) for expression in node["select_list"])
    if not any(output.function for output in outputs):
        raise MiningError("the question must ask for count(*), count, sum or avg: single records of a copy are noise")
    names = [output.name for output in outputs]
    if len(set(names)) < len(names):
        raise MiningError("the columns of the answer must have different names; give them with AS")
    terms = tuple(_term(session, part) for part in _conjuncts(node["where_clause"]))
    names = [*groups, *(output.column for output in outputs), *(name for term in terms for name in term.columns)]
    arranged = _arranged(session, node) if node["modifiers"] else None
    return Question(outputs, groups, terms, arranged, tuple(dict.fromkeys(name for name in names if name)))


def _refuse_what_is_more(node: dict[str, Any]) -> None:
    if node["type"] != "SELECT_NODE":
        raise MiningError("the question must be one SELECT, without UNION and the like")
    if node["from_table"]["type"] != "BASE_TABLE" or node["from_table"]["sample"]:
        raise MiningError("the question must be about one table: write FROM copy, without joins or queries within")
    more = {"having": "HAVING", "qualify": "QUALIFY", "sample": "a sample"}
    for part, said in more.items():
        if node.get(part):
            raise MiningError(f"{said} cannot be corrected for noise; ask without it, and choose among the answers")
    if node["cte_map"]["map"] or len(node.get("group_sets") or []) > 1:
        raise MiningError("the question must be one plain SELECT, without WITH or several groupings")
    if any(modifier["type"] == "DISTINCT_MODIFIER" for modifier in node["modifiers"]):
        raise MiningError("DISTINCT cannot be corrected for noise; ask for counts in groups")


def _column(expression: dict[str, Any], where: str) -> str:
    if expression["class"] != "COLUMN_REF":
        raise MiningError(f"{where} takes names of columns only; make the column you need before the release")
    return str(expression["column_names"][-1])


def _output(expression: dict[str, Any], groups: tuple[str, ...]) -> Output:
    alias = expression["alias"]
    if expression["class"] == "COLUMN_REF":
        name = _column(expression, "SELECT")
        if name not in groups:
            raise MiningError(f"{name!r} must be grouped by to be shown; add it to GROUP BY")
        return Output(alias or name, "", name)
    function = expression.get("function_name", expression["type"].lower())
    if expression["class"] != "FUNCTION" or function not in _AGGREGATES:
        raise MiningError(
            f"{function!r} cannot be corrected for noise; ask for count(*), count, sum or avg (for quantiles there is "
            "Moments.quantile)"
        )
    if expression["distinct"] or expression["filter"]:
        raise MiningError("DISTINCT and FILTER cannot be corrected for noise; put conditions into WHERE")
    column = _column(expression["arguments"][0]["expression"], f"{function}(...)") if expression["arguments"] else ""
    kind = {"count_star": "count", "mean": "avg"}.get(function, function)
    return Output(alias or (f"{kind}({column})" if column else "count"), kind, column)


def _conjuncts(expression: dict[str, Any] | None) -> list[dict[str, Any]]:
    if expression is None:
        return []
    if expression["type"] == "CONJUNCTION_AND":
        return [part for child in expression["children"] for part in _conjuncts(child)]
    return [expression]


def _term(session: Any, expression: dict[str, Any]) -> Term:
    columns = tuple(dict.fromkeys(_mentioned(expression)))
    return Term(_text(session, expression), columns, _range(expression))


def _mentioned(expression: Any) -> list[str]:
    if isinstance(expression, list):
        return [name for part in expression for name in _mentioned(part)]
    if not isinstance(expression, dict):
        return []
    if expression.get("class") == "SUBQUERY":
        raise MiningError("a condition must be about the record itself; queries within are not corrected")
    if expression.get("class") == "COLUMN_REF":
        return [_column(expression, "WHERE")]
    return [name for part in expression.values() for name in _mentioned(part)]


def _range(expression: dict[str, Any]) -> tuple[Any, Any] | None:
    """The ends of `a < x`, `x <= b`, `x between a and b`."""
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
    """A number, or the text of a moment; none where there is more to it."""
    sign = 1.0
    if expression["class"] == "FUNCTION" and expression["function_name"] == "-" and len(expression["arguments"]) == 1:
        sign, expression = -1.0, expression["arguments"][0]["expression"]
    if expression["class"] == "CAST" and _kind(expression) in {"date", "timestamp"}:
        expression = expression["child"]
    if expression["class"] != "CONSTANT":
        return None
    said = expression.get("literal", {}).get("text")
    try:
        return sign * float(said)
    except (TypeError, ValueError):
        return None if said is None else str(said)


def _kind(cast: dict[str, Any]) -> str:
    return str(cast.get("type_expr", {}).get("type_name", "")).lower()


def _text(session: Any, expression: dict[str, Any]) -> str:
    """The expression as SQL."""
    whole = json.loads(session.execute("select json_serialize_sql('select 1')").fetchone()[0])
    whole["statements"][0]["node"]["select_list"] = [expression]
    said: str = session.execute("select json_deserialize_sql(?::json)", [json.dumps(whole)]).fetchone()[0]
    return said.removeprefix("SELECT ").strip()


def _arranged(session: Any, node: dict[str, Any]) -> str:
    for modifier in node["modifiers"]:
        for order in modifier.get("orders", []):
            if order["expression"]["class"] != "COLUMN_REF":
                raise MiningError("ORDER BY takes names of columns of the answer; give aggregates a name with AS")
    whole = json.loads(session.execute("select json_serialize_sql('select * from answer')").fetchone()[0])
    whole["statements"][0]["node"]["modifiers"] = node["modifiers"]
    said: str = session.execute("select json_deserialize_sql(?::json)", [json.dumps(whole)]).fetchone()[0]
    return said
