"""Secret row order: the rows of a copy shuffled by a key, in memory that does not grow with the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.stream import Stream
from sfumato.tables.formats import BATCH
from sfumato.tables.partitioner import PARTITION_BITS, partition, sorted_order
from sfumato.tables.record_ids import record_ids
from sfumato.tables.source import Source
from sfumato.tables.view import EVERYTHING, View

_SORT_KEY = "sfumato.sort_key"

SECRET, KEEP = "secret", "keep"
"""The orders of a copy's rows: by a key, or as in the table."""

WITHIN_FILES = "secret within files"
"""The order of a copy in many files: each of its files holds the rows of one file of the table, shuffled."""

BY_OWNER = "arranged by the owner"
"""The order of rows that the owner matched with the original, for attacks in the house: no recipient gets one."""

_LONGEST = 1 << 31
"""Bytes of a column beyond which the offsets of its texts may not fit into one array."""

ARRANGED = {b"sfumato.arranged": b"as in the copy"}
"""The metadata of a table whose rows are in the order of a shuffled copy."""


def sort_keys(rows: Words, key: Key) -> Words:
    """A pseudo-random number for each record id, by which it is sorted: equal for all levels and versions."""
    stream = Stream(key.derive("shuffle"))
    return np.ascontiguousarray(stream.bits("order", stream.addresses(rows, [rows]))[::2])


def arranged(
    source: Source, ids: tuple[str, ...], dataset_key: Key, *, shuffle: bool = True, view: View = EVERYTHING
) -> pa.Table:
    """The original with its rows in the order that they have in a shuffled copy, which its metadata state.

    Args:
        source: the original.
        ids: the columns that identify a record.
        dataset_key: the key of the dataset.
        shuffle: whether copies are shuffled; else the rows stay in their order.
        view: the rows that the copy shows.

    """
    if not shuffle:
        return pa.Table.from_batches(map(view.filter, source.batches()), source.schema)

    def keyed() -> Iterator[tuple[Words, pa.RecordBatch]]:
        for row_numbers, batch in source.numbered_batches(source.schema.names):
            visible = pa.array(view.holds(batch))
            rows = batch.filter(visible)
            identities = record_ids(rows, ids, row_numbers[np.asarray(visible)], dataset_key)
            yield sort_keys(identities, dataset_key), rows

    return pa.Table.from_batches(shuffled(keyed(), source.schema), source.schema).replace_schema_metadata(ARRANGED)


def is_arranged(table: pa.Table) -> bool:
    """Whether a table is in the order of a shuffled copy."""
    return next(iter(ARRANGED)) in (table.schema.metadata or {})


def shuffled(batches: Iterable[tuple[Words, pa.RecordBatch]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of some batches in the order of their sort keys, in memory that does not grow with them."""
    wide = schema.append(pa.field(_SORT_KEY, pa.uint64()))
    keyed = ((keys, batch.append_column(_SORT_KEY, pa.array(keys))) for keys, batch in batches)
    first: list[tuple[Words, pa.RecordBatch]] = []
    for pair in keyed:
        first.append(pair)
        if sum(len(batch) for _, batch in first) > BATCH:
            for rows in partition(chain(first, keyed), wide, partial(_sorted, shared_bits=PARTITION_BITS)):
                yield from rows
            return
    yield from _sorted(pa.Table.from_batches([batch for _, batch in first], wide))


def shuffled_in_memory(
    batches: Iterable[tuple[Words, pa.RecordBatch]], schema: pa.Schema, threads: int
) -> Iterator[pa.RecordBatch]:
    """The same for rows that are in memory anyway, column by column, but for texts too long for one array."""
    pairs = list(batches)
    if not pairs:
        return
    table = pa.Table.from_batches([batch for _, batch in pairs], schema)
    if any(column.nbytes >= _LONGEST for column in table.columns):
        yield from shuffled(pairs, schema)
        return
    order = sorted_order(np.concatenate([keys for keys, _ in pairs]))
    del pairs

    def arrange(column: pa.ChunkedArray) -> pa.Array:
        return pa.concat_arrays(column.chunks).take(order)

    if threads == 1 or len(order) <= BATCH:
        columns = list(map(arrange, table.columns))
    else:
        with ThreadPoolExecutor(threads) as pool:
            columns = list(pool.map(arrange, table.columns))
    del table  # it takes as much memory as the shuffled rows
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _sorted(table: pa.Table, shared_bits: int = 0) -> list[pa.RecordBatch]:
    order = sorted_order(table.column(_SORT_KEY).to_numpy(), shared_bits)
    rows: list[pa.RecordBatch] = table.drop_columns([_SORT_KEY]).combine_chunks().take(order).to_batches()
    return rows
