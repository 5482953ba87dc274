"""Answers to SQL queries about the original, with confidence intervals.

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

from sfumato.errors import MiningError
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.quantiles import Bins
from sfumato.mining.features.contingency import perturbed_factors
from sfumato.mining.sql.cells import Cells, NoisyRange, estimated_answer
from sfumato.mining.sql.margin_answers import margin_answer
from sfumato.mining.sql.numbers import as_number
from sfumato.mining.sql.parser import Output, Predicate, Query, new_session, parse, quoted, run


def ask(copy: Any, query: str, *, confidence: float = 0.95) -> pa.Table:
    """The estimated answer to an SQL query about the original; every aggregate has its interval in `_low` and `_high`.

        ask("copy.parquet", "select region, count(*) from copy where ward = 'A' group by region")

    Queries that cannot be corrected for noise are refused.
    """
    width, best = critical_value(confidence), Copy.of(copy)
    parsed = parse(query, best.column_names)
    _check(best, parsed)
    preserved = any(map(best.copula_model, parsed.columns))
    answer = (
        margin_answer(best, parsed, width) if preserved else estimated_answer(_counted(best, parsed), parsed, width)
    )
    if parsed.ordering is None:
        return answer
    session = new_session()
    session.register("answer", answer)
    return run(session, parsed.ordering)


def _check(copy: Copy, query: Query) -> None:
    """Refuse queries that no weights correct."""
    _check_columns(copy, query)
    noisy = {name for predicate in query.predicates for name in _noisy_columns(copy, predicate)}
    for predicate in query.predicates:
        _check_predicate(copy, predicate)
    if len(noisy) > 1:
        raise MiningError(
            f"conditions may be on one numeric column with noise, and {' and '.join(sorted(noisy))} are; keep only one"
        )
    for output in query.outputs:
        _check_output(copy, output, noisy)


def _check_columns(copy: Copy, query: Query) -> None:
    lower_case = [name.lower() for name in copy.column_names]
    for name in query.columns:
        copy.model(name)  # refuses a name that is no column
        if lower_case.count(name.lower()) > 1:
            raise MiningError(
                f"column names must differ in more than case, since SQL ignores it, and {name!r} does not; drop one of "
                "the columns from the copy"
            )
        if copy.rotation_model(name):
            raise MiningError(
                f"{name!r} is a coordinate of rotated records, which have no values; use distances between them"
            )
    for name in query.groups:
        if copy.noise_model(name):
            raise MiningError(
                f"{name!r} is numeric with noise, so its values form no groups; count one range at a time in WHERE"
            )


def _noisy_columns(copy: Copy, predicate: Predicate) -> list[str]:
    return [name for name in predicate.columns if copy.noise_model(name)]


def _check_predicate(copy: Copy, predicate: Predicate) -> None:
    noisy = _noisy_columns(copy, predicate)
    if noisy and (len(predicate.columns) > 1 or predicate.range is None):
        raise MiningError(
            f"a condition on {noisy[0]!r}, which is numeric with noise, must be a range of constants joined to others "
            f"by AND; {predicate.text} cannot be corrected"
        )


def _check_output(copy: Copy, output: Output, noisy: set[str]) -> None:
    if not output.column or not output.function:
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
    ranges = [p for p in query.predicates if _noisy_columns(copy, p)]
    categorical = [p for p in query.predicates if p not in filters and p not in ranges]
    by_cell = _cell_columns(query, categorical)
    keys = list(filter(copy.unchanged_model, by_cell))
    categories = list(filter(copy.replacement_model, by_cell))
    summed = dict.fromkeys(output.column for output in query.outputs if output.column and output.function)
    return _Plan(filters, ranges, categorical, keys, categories, tuple(summed))


def _cell_columns(query: Query, categorical: list[Predicate]) -> list[str]:
    """The columns by which cells are distinguished: those of groups and of conditions on categories."""
    needed = {*query.groups, *(name for predicate in categorical for name in predicate.columns)}
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
