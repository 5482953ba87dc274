"""Overview of a table's columns for somebody who chooses their roles: type, missing values, shape and spikes.

It holds no value of a single record: histograms end at the 1st and 99th percentile, and only frequent values are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.policy.suggested_roles import FEW
from sfumato.tables import numeric

BINS = 24
"""The number of bins of a histogram."""

NAMED = 12
"""The most values that are named."""

_SPIKE = 0.05
"""A number that at least this share of the records has is a spike."""

_FEWEST = 10
"""A value that fewer records have is not named."""


@dataclass(frozen=True)
class ColumnOverview:
    """What a column looks like."""

    name: str
    kind: str
    """The type of its values, in words."""
    missing: float
    """The share of missing values."""
    distinct: int
    shares: tuple[float, ...]
    """The share of the records in each bin of a histogram, or with each named value."""
    labels: tuple[str, ...]
    """The ends of the histogram, or the named values."""
    spikes: tuple[str, ...]
    """Single numbers that many records have, such as `0 (31 %)`."""


def column_overviews(rows: pa.Table) -> list[ColumnOverview]:
    """The overview of each column."""
    return [_overview(field.name, rows.column(field.name)) for field in rows.schema]


def _overview(name: str, column: pa.ChunkedArray) -> ColumnOverview:
    array = column.combine_chunks()
    array = array.dictionary_decode() if types.is_dictionary(array.type) else array
    missing = array.null_count / max(len(array), 1)
    if types.is_nested(array.type) or types.is_null(array.type):
        return ColumnOverview(name, str(array.type), missing, 0, (), (), ())
    known = array.drop_null()
    counts = sorted(known.value_counts().to_pylist(), key=lambda one: -one["counts"])[:NAMED]
    distinct = pc.count_distinct(known).as_py()
    if distinct > FEW and _is_scale(array.type):
        shares, ends = _histogram(known)
        labels: tuple[str, ...] = ends
        spikes = tuple(_named(one, len(known)) for one in counts if one["counts"] >= _SPIKE * len(known))
    else:
        frequent = [one for one in counts if one["counts"] >= _FEWEST]
        shares = tuple(one["counts"] / len(known) for one in frequent)
        labels, spikes = tuple(str(one["values"]) for one in frequent), ()
    return ColumnOverview(name, _kind(array.type, distinct), missing, distinct, shares, labels, spikes)


def _is_scale(kind: pa.DataType) -> bool:
    """Whether values lie on a scale, so that a histogram shows them."""
    is_number = types.is_floating(kind) or types.is_decimal(kind) or types.is_integer(kind)
    return bool(is_number or numeric.is_temporal(kind))


def _named(one: dict[str, Any], total: int) -> str:
    return f"{one['values']} ({one['counts'] / total:.0%})"


def _kind(kind: pa.DataType, distinct: int) -> str:
    """A type in words."""
    if numeric.is_temporal(kind):
        return "dates" if types.is_date(kind) else "times"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_integer(kind):
        return "whole numbers"
    if types.is_boolean(kind):
        return "yes or no"
    return f"text, {distinct:,} values"


def _histogram(known: pa.Array) -> tuple[tuple[float, ...], tuple[str, str]]:
    """The shares of the bins between the 1st and the 99th percentile, with the rest in the outermost, and these two."""
    is_time = numeric.is_temporal(known.type)
    values = known.cast(pa.int64() if known.type.bit_width == 64 else pa.int32()) if is_time else known
    numbers = np.asarray(values.cast(pa.float64(), safe=False))
    numbers = numbers[np.isfinite(numbers)]
    low, high = np.quantile(numbers, [0.01, 0.99]) if len(numbers) else (0.0, 0.0)
    low, high = (float(low), float(high)) if low < high else (float(low) - 0.5, float(low) + 0.5)
    counts = np.histogram(np.clip(numbers, low, high), BINS, (low, high))[0]
    shares = tuple(float(count) for count in counts / max(len(numbers), 1))
    return shares, (_end(low, known.type), _end(high, known.type))


def _end(value: float, kind: pa.DataType) -> str:
    """An end of a histogram for people."""
    if not numeric.is_temporal(kind):
        return f"{float(f'{value:.3g}'):,.10g}"
    whole = pa.scalar(int(value), pa.int64() if kind.bit_width == 64 else pa.int32())
    return str(whole.cast(kind).as_py())[:10]
