"""Invented records: what a page shows in the stead of original ones, which look like them and are nobody's.

Each column is drawn on its own. A number is the mean of many neighbouring ones between the 1st and the 99th percentile,
a category one that many records have, so that no value of a single record is shown.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.tables import numeric

_FEWEST = 10
"""A category that fewer records of the sample have is not shown."""
_NEIGHBOURS = 20
"""The number of records whose mean an invented number is."""


def invented(sample: pa.Table, count: int, ids: Collection[str]) -> pa.Table:
    """So many records with the columns of a sample; those that identify records are numbered."""
    rng = np.random.default_rng(0)  # the same each time, so that a slider changes their noise alone
    columns = [
        _numbered(field.type, count) if field.name in ids else _invented(sample.column(field.name), count, rng)
        for field in sample.schema
    ]
    return pa.table(columns, sample.schema)


def _numbered(kind: pa.DataType, count: int) -> pa.Array:
    """Distinct values of a type, as identifiers need them."""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return pa.array(range(1, count + 1), pa.int64()).cast(kind)
    if numeric.is_temporal(kind):
        return _cast(pa.array(range(1, count + 1), pa.int64()), kind)
    texts = pa.array([f"record {i + 1}" for i in range(count)])
    return texts.cast(kind) if not types.is_dictionary(kind) else texts.dictionary_encode().cast(kind)


def _invented(column: pa.ChunkedArray, count: int, rng: np.random.Generator) -> pa.Array:
    kind = column.type
    plain = column.combine_chunks()
    plain = plain.dictionary_decode() if types.is_dictionary(kind) else plain
    known = plain.drop_null()
    if _is_number(plain.type):
        return _cast(_numbers(known, count, rng), kind)
    if types.is_nested(plain.type) or types.is_null(plain.type):
        return pa.nulls(count, kind)
    frequent = [one for one in known.value_counts().to_pylist() if one["counts"] >= _FEWEST]
    if not frequent:
        return pa.nulls(count, kind)
    shares = np.array([one["counts"] for one in frequent], dtype=float)
    chosen = rng.choice(len(frequent), count, p=shares / shares.sum())
    return pa.array([frequent[i]["values"] for i in chosen], plain.type).cast(kind)


def _is_number(kind: pa.DataType) -> bool:
    is_plain = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(is_plain or numeric.is_temporal(kind))


def _numbers(known: pa.Array, count: int, rng: np.random.Generator) -> pa.Array:
    """Means of neighbours around some quantiles."""
    kind = known.type
    if numeric.is_temporal(kind):
        known = known.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    numbers = np.asarray(known.cast(pa.float64(), safe=False))
    numbers = np.sort(numbers[np.isfinite(numbers)])
    if len(numbers) < 2 * _NEIGHBOURS:
        return pa.nulls(count, pa.float64())
    middle = (0.01 + 0.98 * (rng.permutation(count) + 0.5) / count) * len(numbers)
    first = np.clip(middle - _NEIGHBOURS / 2, 0, len(numbers) - _NEIGHBOURS).astype(int)
    return pa.array([float(numbers[i : i + _NEIGHBOURS].mean()) for i in first])


def _cast(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers as values of a type, rounded where it has whole numbers alone."""
    if types.is_floating(kind):
        return numbers.cast(kind)
    if types.is_decimal(kind):
        return numbers.cast(kind, safe=False)
    whole = pa.array(np.rint(np.asarray(numbers.cast(pa.float64()), dtype=float)), from_pandas=True)
    whole = whole.cast(pa.int64())
    if not numeric.is_temporal(kind):
        return whole.cast(kind)
    return (whole if kind.bit_width == 64 else whole.cast(pa.int32())).cast(kind)
