"""Some rows of a table of any size, evenly spread, in one pass and little memory."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from sfumato.kernels import Words


def sampled(batches: Iterable[tuple[Words, pa.RecordBatch]], rows: int) -> tuple[Words, pa.Table]:
    """At most so many rows, and at least half as many if there are: every first, second, fourth or further one.

    Args:
        batches: with the place of each row in the table.

    """
    kept: list[tuple[Words, Words, pa.RecordBatch]] = []
    seen, stride, total = 0, 1, 0
    schema: pa.Schema | None = None
    for places, batch in batches:
        schema = batch.schema
        numbers = np.arange(seen, seen + batch.num_rows, dtype=np.uint64)
        seen += batch.num_rows
        kept.append(_thinned(numbers, places, batch, stride))
        total += len(kept[-1][0])
        while total > rows:
            stride *= 2
            kept = [_thinned(*part, stride) for part in kept]
            total = sum(len(part[0]) for part in kept)
    if schema is None:
        return np.empty(0, np.uint64), pa.table({})
    return np.concatenate([part[1] for part in kept]), pa.Table.from_batches([part[2] for part in kept], schema)


def _thinned(numbers: Words, places: Words, batch: pa.RecordBatch, stride: int) -> tuple[Words, Words, pa.RecordBatch]:
    chosen = np.flatnonzero(numbers % np.uint64(stride) == 0)
    if len(chosen) == len(numbers):
        return numbers, places, batch
    return numbers[chosen], places[chosen], batch.take(pa.array(chosen))
