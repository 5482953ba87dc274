"""Answers to SQL queries about columns whose margins are preserved: the copy is queried as it stands.

A statistic of one column differs between copy and original like those of two samples of the same distribution which are
not less alike than independent ones: `Var(T(y) - T(x)) ≤ 2·Var(T)`. A relation of several columns is that of the
original as far as rank correlations express it. The rest fades: of the difference between a statistic of the
original and that of records simulated from the published model, a copy shows a part `r`, which the simulation
tells. So the original may differ from the copy by `1/r - 1` times what the copy still shows of it, and intervals
are wider by that. Values of few records are moved to others, and values within a bin spread out: intervals also
allow for the records that this may move over the edge of a condition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Mask
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.simulation import Simulation, correlation, outer_uncertainty, retained
from sfumato.mining.sql.numbers import as_number
from sfumato.mining.sql.outputs import Output
from sfumato.mining.sql.parser import Query
from sfumato.mining.sql.syntax import new_session, quoted, run
from sfumato.tables.columns import numbers_of
from sfumato.tables.margin import Margin

_Key = tuple[object, ...]


def margin_answer(copy: Copy, query: Query, width: float) -> pa.Table:
    """The answer to a query about margin-preserving columns, each aggregate with its interval."""
    others = [name for name in query.columns if not copy.copula_model(name)]
    if others:
        raise MiningError(
            f"{others[0]!r} was not perturbed together with the columns whose margins are preserved, so that relations "
            "between them fade; ask about either kind of columns alone"
        )
    if not copy.rows:
        raise MiningError("an answer needs records, and the copy has none; ask for another copy")
    batches = (batch for part in copy.tables(query.columns) for batch in part.to_batches())
    schema = pa.schema([copy.source.schema.field(name) for name in query.columns])
    found = _Totals.of(copy, query, pa.RecordBatchReader.from_batches(schema, batches), copy.rows)
    relation = _Relation.of(copy, query) if len(query.columns) > 1 else None
    conditions = _conditions(query)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for output in query.outputs:
        if output.function:
            related = len(conditions | ({output.column} if output.column else set())) > 1
            columns |= _aggregate(output, found, relation if related else None, width)
        else:
            columns[output.name] = found.table.column(output.column)
    return pa.table(columns)


@dataclass(frozen=True)
class _Totals:
    """The sums from which all aggregates of a query are computed, one row per group."""

    copy: Copy
    query: Query
    table: pa.Table
    rows: int
    """The number of rows in all groups and outside."""

    @classmethod
    def of(cls, copy: Copy, query: Query, records: pa.Table | pa.RecordBatchReader, rows: int) -> _Totals:
        session = new_session()
        session.register("copy", records)
        totals = ["count(*) AS n"]
        for i, name in enumerate(_summed(query)):
            number = as_number(copy, name) if copy.is_numeric(name) else "0"
            totals += [f"count({quoted(name)}) AS m{i}", f"sum({number}) AS s{i}", f"sum({number} * {number}) AS q{i}"]
        selected = ", ".join([*map(quoted, query.groups), *totals])
        found = run(session, f"SELECT {selected} FROM copy WHERE {_condition(query)} GROUP BY ALL")  # noqa: S608
        return cls(copy, query, found, rows)

    @property
    def keys(self) -> list[_Key]:
        """The values of each group."""
        return _keys(self.table, self.query)

    def estimate(self, output: Output) -> tuple[Floats, Floats]:
        """The aggregate of every group, and its variance as a statistic of a sample."""
        count, squares, sums = self.total("n"), np.empty(0), np.empty(0)
        if output.column:
            i = _summed(self.query).index(output.column)
            count, sums, squares = (self.total(f"{name}{i}") for name in "msq")
        if output.function == "count":
            return count, count * (1 - count / self.rows)
        if output.function == "sum":
            return sums, squares - sums**2 / self.rows
        held = np.where(count > 1, count, np.nan)
        mean = sums / held
        return mean, (squares / held - mean**2) / held

    def total(self, name: str) -> Floats:
        """One of the sums of every group."""
        return np.nan_to_num(np.asarray(self.table.column(name).to_numpy(), np.float64))


@dataclass(frozen=True)
class _Relation:
    """What a query about several columns gives for simulated records, and how much a copy retains of the rest."""

    simulation: Simulation
    totals: _Totals
    has: tuple[list[_Key], Mask]
    """The group of each simulated record, and whether it meets the conditions."""
    shows: tuple[list[_Key], Mask]
    """The same in its copy."""

    @classmethod
    def of(cls, copy: Copy, query: Query) -> _Relation:
        simulation = Simulation.of(copy, query.columns)
        totals = _Totals.of(copy, query, simulation.original, simulation.original.num_rows)
        return cls(simulation, totals, *(_members(query, part) for part in (simulation.original, simulation.copy)))

    def model(self, output: Output, keys: list[_Key], rows: int) -> tuple[Floats, Floats]:
        """The aggregate that the published model gives for some groups, and its variance; NaN where it has none."""
        value, variance = self.totals.estimate(output)
        scale = 1.0 if output.function == "avg" else rows / self.totals.rows
        found = {key: (v * scale, s * scale**2) for key, v, s in zip(self.totals.keys, value, variance, strict=True)}
        pairs = [found.get(key, (np.nan, np.nan)) for key in keys]
        return np.array([v for v, _ in pairs]), np.array([s for _, s in pairs])

    def retained(self, output: Output, keys: list[_Key]) -> Floats:
        """Which part of a difference to the published model a copy shows, for some groups."""
        of_column = 1.0
        if output.column and output.function != "count":
            one, other = (
                numbers_of(t, [output.column])[:, 0] for t in (self.simulation.original, self.simulation.copy)
            )
            of_column = correlation(one, other) ** 2  # a relation of the second order, such as a U, fades by the square
        (of_original, met), (of_copy, met_in_copy) = self.has, self.shows
        number = {key: i for i, key in enumerate(keys)}
        has, shows = (np.array([number.get(key, -1) for key in one]) for one in (of_original, of_copy))
        kept = [retained((has == i) & met, (shows == i) & met_in_copy) for i in range(len(keys))]
        return of_column * np.array(kept)


def _aggregate(output: Output, found: _Totals, relation: _Relation | None, width: float) -> dict[str, pa.Array]:
    """An aggregate of every group with the ends of its interval."""
    value, variance = found.estimate(output)
    error = width * np.sqrt(2 * np.maximum(variance, 0.0))
    if relation is not None:
        error = error + _faded(output, found, relation, width)
    error = error + _moved(output, found)
    low, high = _possible(output, found)
    ends = (value, np.maximum(value - error, low), np.minimum(value + error, high))
    return {
        f"{output.name}{end}": pa.array(part, from_pandas=True)
        for end, part in zip(("", "_low", "_high"), ends, strict=True)
    }


def _faded(output: Output, found: _Totals, relation: _Relation, width: float) -> Floats:
    """How far the original may be from the copy, because only a part of what is peculiar to it is still shown."""
    value, variance = found.estimate(output)
    model, of_model = relation.model(output, found.keys, found.rows)
    seen = np.abs(value - model) + width * np.sqrt(np.maximum(variance + of_model, 0.0))
    part = relation.retained(output, found.keys)
    with np.errstate(divide="ignore", invalid="ignore"):
        faded: Floats = np.where(part > 0, (1 / part - 1) * seen, np.inf)
    return np.where(np.isnan(faded), np.inf, faded)


def _moved(output: Output, found: _Totals) -> Floats:
    """How far an aggregate may be off because rare values are moved to others, and values within a bin spread out."""
    value, _ = found.estimate(output)
    records = sum(_resolution(found.copy, name) for name in _conditions(found.query))
    if output.function == "count" or not output.column:
        return np.full_like(value, records)
    outside = outer_uncertainty(found.copy, output.column) * found.rows
    i = _summed(found.query).index(output.column)
    count, sums, squares = (found.total(f"{name}{i}") for name in "msq")
    held = np.maximum(count, 1.0)
    deviation = np.sqrt(np.maximum(squares / held - (sums / held) ** 2, 0.0))
    if output.function == "avg":
        return np.minimum(records / held, 1.0) * deviation + outside / held
    return records * (np.abs(sums / held) + deviation) + outside


def _resolution(copy: Copy, name: str) -> float:
    """How many records may be on the wrong side of a condition on a column."""
    model = copy.copula_model(name)
    if model is None:
        return 0.0
    margin = Margin.decode(model.margins[model.columns.index(name)])
    shares = np.diff([0.0, *margin.share])[np.array(margin.low) < np.array(margin.high)]
    within = float(np.median(shares)) * copy.rows if len(shares) and not margin.values else 0.0
    return margin.min_count + within


def _possible(output: Output, found: _Totals) -> tuple[Floats, Floats]:
    """The least and the largest value that an aggregate of each group can have."""
    none, rows = np.zeros(found.table.num_rows), np.full(found.table.num_rows, float(found.rows))
    if output.function == "count":
        return none, rows
    model = found.copy.copula_model(output.column)
    if model is None:
        return none - np.inf, none + np.inf
    margin = model.margins[model.columns.index(output.column)]
    low, high = margin["low"][0] * margin["step"], margin["high"][-1] * margin["step"]
    if output.function == "avg":
        return none + low, none + high
    return min(low, 0.0) * rows, max(high, 0.0) * rows


def _members(query: Query, table: pa.Table) -> tuple[list[_Key], Mask]:
    """The group of each row, and whether it meets the conditions."""
    session = new_session()
    session.register("copy", table.append_column("#row", pa.array(np.arange(table.num_rows))))
    selected = ", ".join([*map(quoted, query.groups), f"coalesce({_condition(query)}, false) AS met"])
    found = run(session, f'SELECT {selected} FROM copy ORDER BY "#row"')  # noqa: S608
    return _keys(found, query), np.asarray(found.column("met").to_numpy(zero_copy_only=False), np.bool_)


def _keys(table: pa.Table, query: Query) -> list[_Key]:
    lists = [table.column(name).to_pylist() for name in query.groups]
    return list(zip(*lists, strict=True)) if lists else [()] * table.num_rows


def _conditions(query: Query) -> set[str]:
    """The columns of groups and conditions."""
    return {*query.groups, *(name for predicate in query.predicates for name in predicate.columns)}


def _summed(query: Query) -> list[str]:
    """The columns of aggregates."""
    return list(dict.fromkeys(output.column for output in query.outputs if output.function and output.column))


def _condition(query: Query) -> str:
    return " AND ".join(f"({one.text})" for one in query.predicates) or "true"
