"""Small tables in long form: one row a point, picked by what its other columns say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa


def rows_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table from its rows."""
    return pa.Table.from_pylist([dict(row) for row in rows])


def cells(table: pa.Table, name: str, **where: Any) -> Any:
    """The cells of a column in the rows in which other columns have these values, in order."""
    mask = np.ones(len(table), bool)
    for column, wanted in where.items():
        mask &= np.array([value == wanted for value in table.column(column).to_pylist()], bool)
    return np.array(table.column(name).to_pylist())[mask]


def distinct(table: pa.Table, name: str) -> list[Any]:
    """What a column holds, each value once, as they come."""
    return list(dict.fromkeys(table.column(name).to_pylist()))
