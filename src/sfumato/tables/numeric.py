"""Numeric columns: numbers, dates and timestamps between Arrow and double-precision arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from sfumato.errors import SourceError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MAX_MAGNITUDE = 1e100
"""The largest magnitude of a number that gets noise, and the inverse of the smallest deviation: their squares, and
sums of these, are doubles too."""

_NO_NULLS: Mask = np.empty(0, dtype=np.bool_)


def is_number(kind: pa.DataType) -> bool:
    """Whether noise can be added to values of this type."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


def is_temporal(kind: pa.DataType) -> bool:
    """Whether the type counts units of time: dates, timestamps and durations, but not times of day."""
    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_duration(kind))


def read(array: pa.Array) -> tuple[Floats, Mask]:
    """The values as doubles (arbitrary where null), and a mask of nulls: one entry per row, or empty without nulls."""
    kind = array.type
    null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else _NO_NULLS
    if types.is_null(kind):
        return np.zeros(len(array)), null
    if types.is_date64(kind):
        array = array.cast(pa.date32())
        kind = array.type
    if is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        array = array.cast(width)
    filled = array.fill_null(0) if array.null_count else array
    return filled.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), null


def result_type(kind: pa.DataType, *, integer: bool) -> pa.DataType:
    """The type in a copy: time keeps its type, numbers become doubles or, if `integer`, 64-bit integers."""
    if is_temporal(kind):
        return pa.date32() if types.is_date64(kind) else kind
    return pa.int64() if integer else pa.float64()


def write(values: Floats, null: Mask, kind: pa.DataType, name: str) -> pa.Array:
    """The doubles as a column of type `kind`, a result type."""
    mask = null if null.size else None
    if mask is not None:
        values = np.where(mask, 0.0, values)  # the buffers would show what is under a null
    if types.is_float64(kind):
        return pa.array(values, mask=mask)
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    bound = float(1 << (kind.bit_width - 1))
    if not (np.abs(values) < bound).all():
        raise SourceError(f"column {name!r} with its noise must fit into {kind}, and some values do not; clip it")
    return pa.array(values.astype(np.int64), mask=mask).cast(width).cast(kind)
