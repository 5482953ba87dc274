"""Hash partitioning in constant memory: rows are split by a 64-bit key into partitions that spill to disk, encrypted.

It serves everything that must compare or reorder the rows of a table of any size: finding repeated record ids,
comparing versions, and shuffling rows into a secret order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from sfumato.kernels import Words
from sfumato.keys.encrypted_file import Spill

PARTITIONS = 256
_BITS = np.uint64(56)
"""The partition is what the first 8 bits of a key say."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


def partition(batches: Iterable[tuple[Words, pa.RecordBatch]], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in `PARTITIONS` tables by the first bits of their keys, which are given beside each batch."""
    with ExitStack() as stack:
        spills = [stack.enter_context(Spill()) for _ in range(PARTITIONS)]
        writers = [pa.ipc.new_stream(spill.writer, schema) for spill in spills]
        for keys, batch in batches:
            numbers = keys >> _BITS
            order = np.argsort(numbers, kind="stable")
            bounds = np.searchsorted(numbers[order], np.arange(PARTITIONS + 1, dtype=np.uint64))
            grouped = batch.take(pa.array(order))
            for i in np.flatnonzero(np.diff(bounds)):
                writers[i].write_batch(grouped.slice(bounds[i], bounds[i + 1] - bounds[i]))
        for writer, spill in zip(writers, spills, strict=True):
            writer.close()
            with spill.reader() as content:
                yield pa.ipc.open_stream(content).read_all()


def partition_by_id(batches: Iterable[Words]) -> Iterator[Words]:
    """Rows of 64-bit words in `PARTITIONS` arrays by a hash of the first word, the record id, each sorted by id.

    A batch has one row per record, and all batches have the same number of columns. Equal ids are in the same array.
    """
    iterator = iter(batches)
    first = next(iterator, np.empty((0, 1), np.uint64))
    schema = pa.schema([(str(i), pa.uint64()) for i in range(first.shape[1])])

    def keyed() -> Iterator[tuple[Words, pa.RecordBatch]]:
        for rows in _with_first(first, iterator):
            columns = [pa.array(np.ascontiguousarray(rows[:, i])) for i in range(rows.shape[1])]
            yield rows[:, 0] * _MIX, pa.RecordBatch.from_arrays(columns, schema=schema)

    for table in partition(keyed(), schema):
        rows = np.column_stack([column.to_numpy() for column in table.columns])
        yield rows[np.argsort(rows[:, 0], kind="stable")]


def _with_first(first: Words, rest: Iterator[Words]) -> Iterator[Words]:
    yield first
    yield from rest
