"""Mixed tables: columns as numbers or codes, encoded alike in several tables, and distances of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.kernels import Floats, Mask, Rows


@dataclass(frozen=True)
class MixedTable:
    """Records of numbers and categories; NaN where a value is missing."""

    columns: tuple[str, ...]
    values: Floats
    """One row per record; categories as codes that all tables of one encoding share."""
    is_number: Mask

    def take(self, rows: Rows) -> MixedTable:
        """Some of the records."""
        return MixedTable(self.columns, self.values[rows], self.is_number)

    def select(self, columns: Sequence[str]) -> MixedTable:
        """Some of the columns."""
        kept = [self.columns.index(name) for name in columns]
        return MixedTable(tuple(columns), self.values[:, kept], self.is_number[kept])

    def __len__(self) -> int:
        return len(self.values)


def encode(tables: Sequence[pa.Table], columns: Sequence[str]) -> list[MixedTable]:
    """Tables that have the same columns: numbers, times and booleans as numbers, other columns as shared codes."""
    is_number = np.array([_is_number(tables[0].schema.field(name).type) for name in columns], np.bool_)
    parts = [
        _numbers(tables, name) if number else _codes(tables, name)
        for name, number in zip(columns, is_number, strict=True)
    ]
    return [
        MixedTable(tuple(columns), _stacked([part[i] for part in parts], table.num_rows), is_number)
        for i, table in enumerate(tables)
    ]


def distances(queries: MixedTable, candidates: MixedTable, column: int) -> Floats:
    """Gower's distance in one column, between 0 and 1: one row per query, one column per candidate.

    Numbers differ by a share of the column's range, categories by 0 or 1, and a missing value from others by 1.
    """
    first, second = queries.values[:, column], candidates.values[:, column]
    missing, also = np.isnan(first), np.isnan(second)
    if queries.is_number[column]:
        both = np.concatenate([first[~missing], second[~also]])
        span = float(np.ptp(both)) if len(both) else 0.0
        found = np.abs(np.subtract.outer(first, second)) / (span or 1.0)
    else:
        found = (np.not_equal.outer(first, second)).astype(np.float64)
    if missing.any() or also.any():
        found[missing] = 1.0
        found[:, also] = 1.0
        found[np.ix_(missing, also)] = 0.0
    return found


def total_distance(queries: MixedTable, candidates: MixedTable, columns: Sequence[int] | None = None) -> Floats:
    """The sum of Gower's distances over some columns, by default all."""
    total = np.zeros((len(queries), len(candidates)))
    for column in range(len(queries.columns)) if columns is None else columns:
        total += distances(queries, candidates, column)
    return total


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_temporal(kind)
        or types.is_boolean(kind)
    )


def _numbers(tables: Sequence[pa.Table], name: str) -> list[Floats]:
    """Numbers; times count from the first of them, so that shares of them mean something."""
    found = [_as_floats(table.column(name).combine_chunks()) for table in tables]
    if types.is_temporal(tables[0].schema.field(name).type):
        first = min((float(np.nanmin(values)) for values in found if not np.isnan(values).all()), default=0.0)
        return [values - first for values in found]
    return found


def _as_floats(array: pa.Array) -> Floats:
    if types.is_temporal(array.type):
        wide = array.type.bit_width == 64
        array = array.view(pa.int64() if wide else pa.int32())
    numbers: Floats = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def _codes(tables: Sequence[pa.Table], name: str) -> list[Floats]:
    columns = [pc.cast(table.column(name), pa.string()) for table in tables]
    together = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
    encoded = together.combine_chunks().dictionary_encode()
    codes = encoded.indices.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    ends = np.cumsum([table.num_rows for table in tables])
    return list(np.split(codes, ends[:-1]))


def _stacked(columns: Sequence[Floats], rows: int) -> Floats:
    return np.column_stack(columns) if columns else np.empty((rows, 0))
