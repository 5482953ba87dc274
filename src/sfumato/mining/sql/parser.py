"""Parser of SQL queries: DuckDB's own parser, reduced to the queries that can be corrected; others are refused."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from sfumato.errors import MiningError
from sfumato.mining.sql.outputs import FUNCTIONS, Output, Result, Selection
from sfumato.mining.sql.syntax import (
    Predicate,
    column_name,
    conjuncts,
    new_session,
    ordering,
    parts,
    predicate,
    reference,
    select_node,
    selected_number,
)

_UNSUPPORTED_CLAUSES = {"qualify": "QUALIFY", "sample": "USING SAMPLE"}


@dataclass(frozen=True)
class Query:
    """A parsed query."""

    outputs: tuple[Output, ...]
    groups: tuple[str, ...]
    predicates: tuple[Predicate, ...]
    results: tuple[Result, ...] = ()
    """The columns of the answer, which are computed from the outputs."""
    ordering: str | None = None
    """A query over a table called `answer` that applies HAVING, ORDER BY and LIMIT, all to the estimates."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the copy that the query uses."""
        conditions = [*self.predicates, *(one for output in self.outputs for one in output.filter)]
        used = [*self.groups, *(name for output in self.outputs for name in (output.column, output.other))]
        return tuple(dict.fromkeys(name for name in [*used, *(n for p in conditions for n in p.columns)] if name))


def parse(sql: str, columns: Sequence[str]) -> Query:
    """Parse a query about a copy with these columns."""
    session = new_session()
    node = select_node(session, sql)
    _refuse_unsupported(node)
    _resolve_columns(node, columns)
    groups = tuple(column_name(_by_number(expression, node), "GROUP BY") for expression in node["group_expressions"])
    selection = Selection(session, groups)
    results = selection.results(node["select_list"])
    predicates = tuple(predicate(session, part) for part in conjuncts(node["where_clause"]))
    ordered = None
    if node["modifiers"] or node.get("having"):
        name_of = _column_names(node, columns)
        names = [result.name for result in results]
        ordered = ordering(
            session, node, names, lambda part, clause: _about_result(selection, part, clause, results, name_of)
        )
    return Query(selection.outputs(results), groups, predicates, results, ordered)


def _by_number(expression: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The selected expression that a number in GROUP BY stands for; any other expression as it is."""
    number = selected_number(expression, len(node["select_list"]))
    chosen: dict[str, Any] = expression if number is None else node["select_list"][number]
    return chosen


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
    for part in parts(node):
        if part.get("class") == "COLUMN_REF":
            name = part["column_names"][-1]
            part["column_names"] = [name_of.get(name.lower(), name)]


def _about_result(
    selection: Selection, expression: Any, clause: str, results: Sequence[Result], name_of: dict[str, str]
) -> Any:
    """An expression with the columns of the result in place of its aggregates."""
    if isinstance(expression, list):
        return [_about_result(selection, part, clause, results, name_of) for part in expression]
    if not isinstance(expression, dict):
        return expression
    if expression.get("class") == "SUBQUERY":
        raise MiningError(f"{clause} must be about what is selected, without subqueries; run the subquery by itself")
    if expression.get("class") == "FUNCTION" and expression["function_name"] in FUNCTIONS:
        renamed = deepcopy(expression)
        _rename_columns(renamed, name_of)
        wanted = selection.result(renamed)
        for result in results:
            if result.formula == wanted.formula:
                return reference(result.name)
        raise MiningError(f"{clause} must be about what is selected, and {wanted.name} is not; add it to SELECT")
    if expression.get("class") == "COLUMN_REF":
        name = expression["column_names"][-1]
        column = Output(name_of.get(name.lower(), name), "", name_of.get(name.lower(), name))
        return reference(next((result.name for result in results if result.formula == column), name))
    return {key: _about_result(selection, part, clause, results, name_of) for key, part in expression.items()}
