"""Hash partitioning in constant memory: rows are split by a 64-bit key into partitions that spill to disk, encrypted.

It serves everything that must compare or reorder the rows of a table of any size: finding repeated record ids,
comparing versions, and shuffling rows into a secret order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from sfumato.kernels import Words
from sfumato.keys.encrypted_file import Spill
from sfumato.tables.read_ahead import read_ahead

T = TypeVar("T")

PARTITION_BITS = 8
"""The partition is what the first bits of a key say."""
PARTITIONS = 1 << PARTITION_BITS
_THREADS = 2
_MERGED = 1 << 25
"""Bytes of rows that are split at once."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


def partition(
    batches: Iterable[tuple[Words, pa.RecordBatch]], schema: pa.Schema, finish: Callable[[pa.Table], T]
) -> Iterator[T]:
    """What `finish` makes of the rows in each of `PARTITIONS` tables, by the first bits of the keys beside each batch.

    Two threads read and finish partitions, at most two ahead of the one that is used.
    """
    with ExitStack() as stack:
        spills = [stack.enter_context(Spill()) for _ in range(PARTITIONS)]
        writers = [pa.ipc.new_stream(spill.writer, schema) for spill in spills]
        for grouped, counts in read_ahead(map(_grouped, _merged(batches)), 1):
            ends = np.cumsum(counts)
            for i in np.flatnonzero(counts):
                writers[i].write_batch(grouped.slice(ends[i] - counts[i], counts[i]))
        for writer in writers:
            writer.close()

        def read(spill: Spill) -> T:
            with spill.reader() as content:
                return finish(pa.ipc.open_stream(content).read_all())

        pool = stack.enter_context(ThreadPoolExecutor(_THREADS))
        ahead: deque[Future[T]] = deque()
        for spill in spills:
            ahead.append(pool.submit(read, spill))
            if len(ahead) > _THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _grouped(keyed: tuple[Words, pa.RecordBatch]) -> tuple[pa.RecordBatch, np.ndarray[Any, np.dtype[np.int64]]]:
    """The rows of each partition together, and their numbers."""
    keys, rows = keyed
    numbers = (keys >> np.uint64(64 - PARTITION_BITS)).astype(np.uint8)
    order = np.argsort(numbers, kind="stable")  # of bytes, this is a radix sort
    return rows.take(_positions(order)), np.bincount(numbers, minlength=PARTITIONS)


def _merged(batches: Iterable[tuple[Words, pa.RecordBatch]]) -> Iterator[tuple[Words, pa.RecordBatch]]:
    """Larger parts of the rows, so that each partition is not written in many small pieces."""
    keys: list[Words] = []
    pending: list[pa.RecordBatch] = []
    size = 0
    for some, batch in batches:
        keys.append(some)
        pending.append(batch)
        size += batch.nbytes
        if size >= _MERGED:
            yield np.concatenate(keys), pa.concat_batches(pending)
            keys, pending, size = [], [], 0
    if pending:
        yield np.concatenate(keys), pa.concat_batches(pending)


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

    yield from partition(keyed(), schema, _sorted_by_id)


def split_by_id(rows: Words) -> list[Words]:
    """Some rows in the same arrays as `partition_by_id` would give, without a temporary file."""
    numbers = (rows[:, 0] * _MIX >> np.uint64(64 - PARTITION_BITS)).astype(np.uint8)
    order = np.lexsort((rows[:, 0], numbers))
    ends = np.cumsum(np.bincount(numbers, minlength=PARTITIONS))
    return np.split(rows[order], ends[:-1])


def _sorted_by_id(table: pa.Table) -> Words:
    rows: Words = np.column_stack([column.to_numpy() for column in table.columns])
    return rows[np.argsort(rows[:, 0], kind="stable")]


def sorted_order(keys: Words, shared_bits: int = 0) -> pa.Array:
    """The stable order of some keys, whose first `shared_bits` bits are equal.

    Their next bits and the index of each are sorted as one number, which takes a quarter of the time; the few keys
    that are equal in these bits are put into order afterwards.
    """
    index_bits = np.uint64(max(len(keys) - 1, 1).bit_length())
    below = (np.uint64(1) << index_bits) - np.uint64(1)
    shifted = keys << np.uint64(shared_bits)
    packed = np.sort((shifted & ~below) | np.arange(len(keys), dtype=np.uint64))
    order = (packed & below).astype(np.int64)
    equal = np.flatnonzero(packed[1:] >> index_bits == packed[:-1] >> index_bits)
    if equal.size:
        unsettled = np.union1d(equal, equal + 1)
        some = order[unsettled]
        order[unsettled] = some[np.lexsort((some, keys[some]))]
    return _positions(order)


def _positions(order: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Positions of rows as Arrow takes them fastest."""
    return pa.array(order.astype(np.uint32 if len(order) < 2**32 else np.uint64))


def _with_first(first: Words, rest: Iterator[Words]) -> Iterator[Words]:
    yield first
    yield from rest
