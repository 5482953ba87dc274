"""Small result tables in long format: one row per plotted point, selected by the values of its other columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa


def to_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """An Arrow table from its rows."""
    return pa.Table.from_pylist([dict(row) for row in rows])


def select(table: pa.Table, name: str, **where: Any) -> Any:
    """The values of a column, in order, in the rows whose other columns have the given values."""
    mask = np.ones(len(table), bool)
    for column, wanted in where.items():
        mask &= np.array([value == wanted for value in table.column(column).to_pylist()], bool)
    return np.array(table.column(name).to_pylist())[mask]


def distinct(table: pa.Table, name: str) -> list[Any]:
    """The distinct values of a column, in order of first occurrence."""
    return list(dict.fromkeys(table.column(name).to_pylist()))
