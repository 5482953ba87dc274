"""Answers to SQL queries about one column whose margin is preserved: the copy is queried as it stands.

A statistic of the copy differs from that of the original like those of two samples of the same distribution which are
not less alike than independent ones: `Var(T(y) - T(x)) ≤ 2·Var(T)`. Intervals use that bound.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.mining.copies.copy import Copy
from sfumato.mining.sql.parser import Output, Query, new_session, quoted, run


def margin_answer(copy: Copy, query: Query, width: float) -> pa.Table:
    """The answer to a query about one column, each aggregate with its interval."""
    if len(query.columns) > 1:
        raise MiningError(
            f"a query may use one of the columns whose margins are preserved, and this one uses "
            f"{' and '.join(query.columns)}: how these are related in the copy is only as good as their rank "
            "correlations; ask about one column, or query the file itself with DuckDB"
        )
    [column] = query.columns
    table = pa.Table.from_batches([batch for part in copy.tables([column]) for batch in part.to_batches()])
    session = new_session()
    session.register("copy", table)
    where = f" WHERE {' AND '.join(f'({one.text})' for one in query.predicates)}" if query.predicates else ""
    number = quoted(column) if copy.is_numeric(column) else "0"
    totals = f"count(*) AS n, count({quoted(column)}) AS m, sum({number}) AS s, sum({number} * {number}) AS q"
    groups = [f"{quoted(name)}" for name in query.groups]
    found = run(session, f"SELECT {', '.join([*groups, totals])} FROM copy{where} GROUP BY ALL")  # noqa: S608
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for output in query.outputs:
        if output.function:
            columns |= _aggregate(output, found, table.num_rows, width)
        else:
            columns[output.name] = found.column(output.column)
    return pa.table(columns)


def _aggregate(output: Output, found: pa.Table, rows: int, width: float) -> dict[str, pa.Array]:
    """An aggregate of every group with the ends of its interval."""
    all_rows, present, sums, squares = (
        np.nan_to_num(np.asarray(found.column(name).to_numpy(), np.float64)) for name in "nmsq"
    )
    count = present if output.column else all_rows
    if output.function == "count":
        value, variance = count, count * (1 - count / rows)
    elif output.function == "sum":
        value, variance = sums, squares - sums**2 / rows
    else:
        held = np.where(present > 1, present, np.nan)
        value = sums / held
        variance = (squares / held - value**2) / held
    error = width * np.sqrt(2 * np.maximum(variance, 0.0))
    ends = (value, value - error, value + error)
    if output.function == "count":
        ends = (value, np.maximum(ends[1], 0.0), np.minimum(ends[2], rows))
    return {
        f"{output.name}{end}": pa.array(part, from_pandas=True)
        for end, part in zip(("", "_low", "_high"), ends, strict=True)
    }
