"""Corrected answers to SQL queries, which assume nothing of the original.

DuckDB counts the copy in cells: by the groups and conditions on unchanged columns, by the values of perturbed
categories, and by fine bins of a noisy numeric column in a condition. Each cell then gets the weight `h(y)` whose mean,
given the original `x`, is 1 where the condition holds and 0 elsewhere. A count is `Σh`, and as the means of the weights
equal their squares, `Σh² - Σh` estimates its variance; sums are estimated in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import MiningError
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.quantiles import Bins
from sfumato.mining.features.contingency import perturbed_factors
from sfumato.mining.sql.cells import Cells, NoisyRange, estimated_answer
from sfumato.mining.sql.formulas import evaluated
from sfumato.mining.sql.margin_answers import margin_answer
from sfumato.mining.sql.numbers import as_number
from sfumato.mining.sql.outputs import STATISTICS, Output
from sfumato.mining.sql.parser import Query, parse
from sfumato.mining.sql.statistics import check_statistic, statistic
from sfumato.mining.sql.syntax import Predicate, check_case, new_session, quoted, run


def correctable(copy: Copy, query: str) -> tuple[Query, list[Query]]:
    """A query that can be corrected, and its parts."""
    parsed = parse(query, copy.column_names)
    parts = _parts(parsed)
    for part in parts:
        _check(copy, part)
    return parsed, parts


def corrected(copy: Copy, parsed: Query, parts: list[Query], confidence: float) -> pa.Table:
    """The answer to a query that can be corrected."""
    answer = _joined(parsed, parts, [_answered(copy, part, confidence) for part in parts])
    if parsed.ordering is None:
        return answer
    session = new_session()
    session.register("answer", answer)
    return run(session, parsed.ordering)


def _parts(query: Query) -> list[Query]:
    """The queries that answer one: with the conditions of each FILTER, with each width, and for each statistic."""
    groups = tuple(Output(name, "", name) for name in query.groups)
    aggregates = [output for output in query.outputs if output.function and output.function not in STATISTICS]
    parts = []
    for conditions, together in dict.fromkeys((output.filter, output.together) for output in aggregates):
        own = [output for output in aggregates if (output.filter, output.together) == (conditions, together)]
        parts.append(Query((*groups, *own), query.groups, (*query.predicates, *conditions)))
    statistics = [output for output in query.outputs if output.function in STATISTICS]
    return parts + [Query((output,), query.groups, query.predicates) for output in statistics]


def _answered(copy: Copy, query: Query, confidence: float) -> pa.Table:
    """The answer to a query with the same conditions for all its outputs; intervals of several hold at once."""
    one = query.outputs[-1]
    confidence = 1 - (1 - confidence) / one.together
    if one.function in STATISTICS:
        found = statistic(copy, one, confidence)
        ends = {"": found.estimate, "_low": found.low, "_high": found.high}
        return pa.table({f"{one.name}{end}": [value] for end, value in ends.items()})
    width = critical_value(confidence, copy.design_effect(query.columns))
    if any(map(copy.copula_model, query.columns)):
        return margin_answer(copy, query, width)
    return estimated_answer(_counted(copy, query), query, width)


def _joined(query: Query, parts: list[Query], answers: list[pa.Table]) -> pa.Table:
    """The results of a query from the answers to its parts."""
    found, rows = _aligned(query, parts, answers)
    columns: dict[str, Any] = {}
    for result in query.results:
        if isinstance(result.formula, Output) and not result.formula.function:
            columns[result.name] = found[result.formula]
        else:
            ends = zip(("", "_low", "_high"), evaluated(result.formula, found, rows), strict=True)
            columns |= {f"{result.name}{end}": values for end, values in ends}
    return pa.table(columns)


def _aligned(query: Query, parts: list[Query], answers: list[pa.Table]) -> tuple[dict[Output, Any], int]:
    """The columns of each output in the order of all groups, and their number; null where conditions leave none."""
    keys = [list(zip(*(one.column(name).to_pylist() for name in query.groups), strict=True)) for one in answers]
    rows = list(dict.fromkeys(key for part in keys for key in part)) if query.groups else [()]
    found: dict[Output, Any] = {}
    for part, answer, own in zip(parts, answers, keys, strict=True):
        at = {key: i for i, key in enumerate(own)} if query.groups else {(): 0}
        aligned = answer.take(pa.array([at.get(key) for key in rows], pa.int64()))
        for output in part.outputs:
            if output.function:
                found[output] = tuple(aligned.column(f"{output.name}{end}") for end in ("", "_low", "_high"))
            else:
                values = aligned.column(output.name)
                found[output] = pc.coalesce(found[output], values) if output in found else values
    return found, len(rows)


def _check(copy: Copy, query: Query) -> None:
    """Refuse queries that no weights correct."""
    _check_columns(copy, query)
    noisy = {name for predicate in query.predicates for name in noisy_columns(copy, predicate)}
    for predicate in query.predicates:
        _check_predicate(copy, predicate)
    if len(noisy) > 1:
        raise MiningError(
            f"conditions may be on one numeric column with noise, and {' and '.join(sorted(noisy))} are; keep only one"
        )
    for output in query.outputs:
        _check_output(copy, query, output, noisy)


def _check_columns(copy: Copy, query: Query) -> None:
    check_case(query.columns, copy.column_names)
    for name in query.columns:
        copy.model(name)  # refuses a name that is no column
        if copy.rotation_model(name):
            raise MiningError(
                f"{name!r} is a coordinate of rotated records, which have no values; use distances between them"
            )
    for name in query.groups:
        if copy.noise_model(name):
            raise MiningError(
                f"{name!r} is numeric with noise, so its values form no groups; count one range at a time in WHERE"
            )


def noisy_columns(copy: Copy, predicate: Predicate) -> list[str]:
    """The numeric columns with noise that a condition is about."""
    return [name for name in predicate.columns if copy.noise_model(name)]


def _check_predicate(copy: Copy, predicate: Predicate) -> None:
    noisy = noisy_columns(copy, predicate)
    if noisy and (len(predicate.columns) > 1 or predicate.range is None):
        raise MiningError(
            f"a condition on {noisy[0]!r}, which is numeric with noise, must be a range of constants joined to others "
            f"by AND; {predicate.text} cannot be corrected"
        )


def _check_output(copy: Copy, query: Query, output: Output, noisy: set[str]) -> None:
    if not output.column or not output.function:
        return
    if output.function in STATISTICS:
        check_statistic(copy, query, output)
        return
    if output.function != "count":
        _check_sum(copy, output, noisy)
        return
    model = copy.replacement_model(output.column)
    if model is not None and model.perturbs_null:
        raise MiningError(
            f"count({output.column}) must skip missing values, and those were perturbed too; count values with GROUP BY"
        )


def _check_sum(copy: Copy, output: Output, noisy: set[str]) -> None:
    if copy.replacement_model(output.column) and copy.is_number(output.column):
        return  # categories that are numbers, with replacements that are independent of all noise
    if not copy.is_numeric(output.column):
        raise MiningError(
            f"{output.function}({output.column}) needs numbers, and {output.column!r} holds categories; use count(*)"
        )
    for name in noisy:
        if copy.noise_covariance([output.column, name])[0, 1]:
            raise MiningError(
                f"{output.function}({output.column}) over a range of {name!r} cannot be corrected, because their noise "
                "is correlated; leave out the range"
            )


@dataclass(frozen=True)
class _Plan:
    """How a query is split between DuckDB, which counts cells of the copy, and the weights of the cells."""

    filters: list[Predicate]
    """Conditions on unchanged columns, which DuckDB evaluates."""
    ranges: list[Predicate]
    """Conditions on a noisy numeric column."""
    categorical: list[Predicate]
    """Conditions that involve perturbed categories."""
    keys: list[str]
    """Unchanged columns by which cells are distinguished."""
    categories: list[str]
    """Perturbed categorical columns by which cells are distinguished."""
    summed: tuple[str, ...]
    """Columns of aggregates."""


def _plan(copy: Copy, query: Query) -> _Plan:
    filters = [p for p in query.predicates if all(copy.unchanged_model(name) for name in p.columns)]
    ranges = [p for p in query.predicates if noisy_columns(copy, p)]
    categorical = [p for p in query.predicates if p not in filters and p not in ranges]
    by_cell = _cell_columns(query, categorical, list(filter(copy.replacement_model, query.columns)))
    keys = list(filter(copy.unchanged_model, by_cell))
    categories = list(filter(copy.replacement_model, by_cell))
    summed = dict.fromkeys(output.column for output in query.outputs if output.column and output.function)
    return _Plan(filters, ranges, categorical, keys, categories, tuple(summed))


def _cell_columns(query: Query, categorical: list[Predicate], replaced: list[str]) -> list[str]:
    """The columns by which cells are distinguished: of groups, of conditions on categories, and categories summed."""
    needed = {*query.groups, *(name for predicate in categorical for name in predicate.columns)}
    needed |= {one.column for one in query.outputs if one.function in ("sum", "avg")} & set(replaced)
    return [name for name in query.columns if name in needed]


def _counted(copy: Copy, query: Query) -> Cells:
    """Count the cells of a copy with DuckDB."""
    plan = _plan(copy, query)
    noisy_range = _noisy_range(copy, plan.ranges) if plan.ranges else None
    needed = list(query.columns) or copy.column_names[:1]
    schema = pa.schema([copy.source.schema.field(name) for name in needed])
    session = new_session()
    batches = (batch for table in copy.tables(needed) for batch in table.to_batches())
    session.register("copy", pa.RecordBatchReader.from_batches(schema, batches))
    cells = run(session, _cell_query(copy, plan, noisy_range))
    factors = perturbed_factors(copy, plan.categories)
    return Cells(copy, cells, tuple(plan.keys), factors, tuple(plan.categorical), noisy_range, plan.summed, schema)


def _cell_query(copy: Copy, plan: _Plan, noisy_range: NoisyRange | None) -> str:
    """The SQL query that counts the cells of a copy."""
    conditions = [predicate.text for predicate in plan.filters]
    selected = [*map(quoted, [*plan.keys, *plan.categories])]
    if noisy_range is not None:
        conditions.append(f"{quoted(noisy_range.column)} IS NOT NULL")
        number, bins = as_number(copy, noisy_range.column), noisy_range.bins
        selected.append(f'CAST(floor(({number} - {bins.origin!r}) / {bins.width!r}) AS BIGINT) AS "#range"')
    where = f" WHERE {' AND '.join(f'({condition})' for condition in conditions)}" if conditions else ""
    return f"SELECT {', '.join([*selected, *_totals(copy, plan.summed)])} FROM copy{where} GROUP BY ALL"  # noqa: S608


def _totals(copy: Copy, summed: tuple[str, ...]) -> list[str]:
    """The totals of a cell: the number of rows, and for each summed column its count, sum and sum of squares."""
    out = ['count(*) AS "#rows"']
    for i, name in enumerate(summed):
        x = as_number(copy, name) if copy.is_numeric(name) else "0"
        out.append(f'count({quoted(name)}) AS "#n{i}"')
        out += [f'coalesce(sum({x}), 0) AS "#s{i}"', f'coalesce(sum({x} * {x}), 0) AS "#q{i}"']
    return out


def _noisy_range(copy: Copy, predicates: list[Predicate]) -> NoisyRange:
    """The intersection of the ranges that conditions allow for one noisy column."""
    [name] = {name for predicate in predicates for name in predicate.columns}
    low, high = -np.inf, np.inf
    for predicate in predicates:
        lower, upper = predicate.range or (None, None)
        low = low if lower is None else max(low, _bound(copy, name, lower))
        high = high if upper is None else min(high, _bound(copy, name, upper))
    if low >= high:
        raise MiningError(
            f"the conditions on {name!r} must leave a range, and they leave none from {low:g} to {high:g}; widen them"
        )
    model = copy.noise_model(name)
    if model is None:
        raise MiningError(f"{name!r} carries no noise; use it as an unchanged column")
    deviation = model.deviation(name)
    spread = float(f"{deviation / np.sqrt(model.noise) / model.scale[0]:.1e}")
    return NoisyRange(name, low, high, Bins(deviation, spread, copy.rows, float(low if np.isfinite(low) else high)))


def _bound(copy: Copy, name: str, literal: float | str) -> float:
    """A literal as a number; a date or time in the unit of the column's type."""
    if isinstance(literal, float):
        return literal
    try:
        time = pa.array([datetime.fromisoformat(literal)]).cast(copy.source.schema.field(name).type)
    except (ValueError, pa.ArrowException):
        raise MiningError(
            f"{name!r} must be compared with a number, date or time, got {literal!r}; write one such as 2025-01-31"
        ) from None
    return float(copy.values(pa.table({name: time}), [name])[0, 0])
