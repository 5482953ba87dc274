"""Queries of any form that whole tables can answer: run on each plausible original, and combined cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sfumato.errors import MiningError
from sfumato.mining.sql.outputs import FUNCTIONS, refused
from sfumato.mining.sql.syntax import (
    check_case,
    new_session,
    ordering,
    parts,
    query_text,
    reference,
    select_node,
    text,
)

_FURTHER = frozenset({"regr_slope", "regr_intercept", "regr_r2", "bool_and", "bool_or", "mad"})
"""Aggregates of many records that are not corrected themselves."""
COUNTS = frozenset({"count", "count_star", "count_if", "countif"})


@dataclass(frozen=True)
class WholeQuery:
    """A query that is run as it is; HAVING, ORDER BY and LIMIT are applied to the estimates."""

    sql: str
    alias: str
    """The name by which the query calls the copy."""
    columns: tuple[str, ...]
    """The columns of the copy that it uses."""
    compared: tuple[str, ...]
    """Those whose single values matter, as in a condition or a quantile, and not only their sums."""
    keys: tuple[str, ...]
    """The columns of the answer by which groups are distinguished."""
    values: dict[str, str]
    """The columns of the answer that are estimated, and the aggregate that each is; none if it is a formula."""
    selected: tuple[str, ...]
    """The columns of the answer that were asked for, in their order."""
    ordering: str | None
    """A query over a table called `answer`."""

    @classmethod
    def of(cls, sql: str, columns: Sequence[str], tables: Sequence[str]) -> WholeQuery:
        """Read a query about a copy with these columns, and other tables of these names."""
        session = new_session()
        node = select_node(session, sql)
        _refuse_records(node)
        alias = _alias(node, tables)
        used = {part["column_names"][-1].lower() for part in parts(node) if part.get("class") == "COLUMN_REF"}
        used |= {name.lower() for part in parts(node) for name in part.get("using_columns") or ()}
        compared = set(_compared(node))
        own = tuple(name for name in columns if name.lower() in used)
        check_case(own, columns)
        return _Answer.of(session, node).query(alias, own, tuple(name for name in own if name.lower() in compared))


@dataclass
class _Answer:
    """The columns of an answer, to which those are added that HAVING and ORDER BY are about."""

    session: Any
    node: dict[str, Any]
    names: dict[str, str]
    """The name of each expression."""

    @classmethod
    def of(cls, session: Any, node: dict[str, Any]) -> _Answer:
        names: dict[str, str] = {}
        for expression in node["select_list"]:
            alias, expression["alias"] = expression["alias"], ""
            written = text(session, expression)
            expression["alias"] = alias or _name(expression, written)
            if expression["alias"] in names.values():
                raise MiningError("the columns of the result must have different names; name them with AS")
            names[written] = expression["alias"]
        if not any(_is_aggregated(expression) for expression in node["select_list"]):
            raise MiningError(
                "the query must select count(*), count, sum or avg, since single records are mostly noise; add one"
            )
        return cls(session, node, names)

    def query(self, alias: str, columns: tuple[str, ...], compared: tuple[str, ...]) -> WholeQuery:
        """The query without its HAVING and ordering, and these apart."""
        selected = tuple(expression["alias"] for expression in self.node["select_list"])
        ordered = None
        if self.node["modifiers"] or self.node["having"]:
            ordered = ordering(self.session, self.node, selected, self._about_answer)
        self.node["having"], self.node["modifiers"] = None, []
        expressions = self.node["select_list"]
        return WholeQuery(
            query_text(self.session, self.node),
            alias,
            columns,
            compared,
            tuple(one["alias"] for one in expressions if not _is_aggregated(one)),
            {one["alias"]: one.get("function_name", "") for one in expressions if _is_aggregated(one)},
            selected,
            ordered,
        )

    def _about_answer(self, part: Any, clause: str) -> Any:
        """An expression with columns of the answer in place of what they are; aggregates are added to these."""
        if isinstance(part, list):
            return [self._about_answer(one, clause) for one in part]
        if not isinstance(part, dict):
            return part
        if "class" in part:
            if part["class"] == "COLUMN_REF" and part["column_names"][-1] in self.names.values():
                return reference(part["column_names"][-1])
            written = text(self.session, {**part, "alias": ""})
            if written not in self.names and part.get("function_name") in _aggregates():
                self.names[written] = f"#{len(self.names)}"
                self.node["select_list"].append({**part, "alias": self.names[written]})
            if written in self.names:
                return reference(self.names[written])
        return {key: self._about_answer(one, clause) for key, one in part.items()}


def _name(expression: dict[str, Any], written: str) -> str:
    """The name of a column of the answer that has no alias."""
    return "count" if expression.get("function_name") == "count_star" else written.replace('"', "")


def _refuse_records(node: dict[str, Any]) -> None:
    """Refuse what is about single records, and what is no table of groups."""
    if node["type"] != "SELECT_NODE":
        raise MiningError("the query must be one SELECT, and set operations such as UNION are not supported")
    if any(modifier["type"] == "DISTINCT_MODIFIER" for part in parts(node) for modifier in part.get("modifiers", ())):
        raise MiningError("DISTINCT cannot be corrected for noise; use GROUP BY with count(*)")
    for part in parts(node):
        if part.get("qualify") or part.get("sample"):
            raise MiningError(
                "QUALIFY and USING SAMPLE are about single records, which are mostly noise; leave them out"
            )
        if part.get("type") == "TABLE_FUNCTION":
            raise MiningError("the query must be about the copy and the tables that are given, not about functions")
        function = part.get("function_name")
        if part.get("class") == "WINDOW" or (
            function in _aggregates() and function not in {*FUNCTIONS, *COUNTS, *_FURTHER}
        ):
            raise refused(part)
        if function and part.get("distinct"):
            raise MiningError("DISTINCT cannot be corrected for noise; use GROUP BY with count(*)")


def _alias(node: dict[str, Any], tables: Sequence[str]) -> str:
    """The name by which a query calls the copy: that of its one table which is not given."""
    own = {entry["key"].lower() for part in parts(node) for entry in (part.get("cte_map") or {}).get("map", ())}
    own |= {name.lower() for name in tables}
    bases = [part for part in parts(node) if part.get("type") == "BASE_TABLE"]
    names = {part["table_name"].lower(): part["table_name"] for part in bases}
    if any(part["schema_name"] or part["catalog_name"] for part in bases):
        raise MiningError("tables are named without a schema; write FROM copy")
    unknown = [name for lower, name in names.items() if lower not in own]
    if len(unknown) != 1:
        raise MiningError(
            f"the query must be about one copy, whatever it is called, and the other tables must be given; it names "
            f"{' and '.join(sorted(unknown)) or 'none'}; give the others, as in --table regions=regions.csv"
        )
    return str(unknown[0])


def _compared(node: Any, summed: bool = False) -> Iterator[str]:
    """The names of columns that are not only summed, in lower case."""
    if isinstance(node, list):
        for one in node:
            yield from _compared(one, summed)
    elif isinstance(node, dict):
        if node.get("class") == "COLUMN_REF" and not summed:
            yield node["column_names"][-1].lower()
        function = node.get("function_name")
        if function in _aggregates():
            summed = FUNCTIONS.get(function) != "quantile"
        elif node.get("class") in {"COMPARISON", "BETWEEN", "CASE", "OPERATOR", "CONJUNCTION", "SUBQUERY"}:
            summed = False
        for key, one in node.items():
            yield from _compared(one, summed and key != "filter")


def _is_aggregated(expression: Any) -> bool:
    """Whether an expression is computed from many records; a subquery is a matter of its own."""
    if isinstance(expression, list):
        return any(map(_is_aggregated, expression))
    if not isinstance(expression, dict) or expression.get("class") == "SUBQUERY":
        return False
    return expression.get("function_name") in _aggregates() or any(map(_is_aggregated, expression.values()))


@cache
def _aggregates() -> frozenset[str]:
    """The names of all aggregates of DuckDB."""
    found = new_session().execute("select function_name from duckdb_functions() where function_type = 'aggregate'")
    return frozenset(name for (name,) in found.fetchall())
