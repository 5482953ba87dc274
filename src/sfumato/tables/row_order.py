"""Rows in a secret order, in memory that does not grow with the table: dealt into parts, and each part sorted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain

import numpy as np
import pyarrow as pa

from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.stream import Stream
from sfumato.tables.readers import BATCH
from sfumato.tables.record_ids import record_ids
from sfumato.tables.source import Source
from sfumato.tables.view import EVERYTHING, View

PARTS = 256
_SPOOL = 1 << 18  # bytes a part may hold in memory before it goes to disk
_LOT = "sfumato.lot"

ARRANGED = {b"sfumato.arranged": b"as in the copy"}
"""Marks a table whose rows have the order of a shuffled copy."""


def lots(rows: Words, key: Key) -> Words:
    """A number for each record, by which it is sorted: the same for all levels and versions of a dataset."""
    stream = Stream(key.derive("shuffle"))
    return np.ascontiguousarray(stream.bits("order", stream.addresses(rows, [rows]))[::2])


def arranged(
    source: Source, ids: tuple[str, ...], secret: Key, *, shuffle: bool = True, view: View = EVERYTHING
) -> pa.Table:
    """A table with its rows in the order that they have in a shuffled copy, which its metadata say.

    Args:
        source: the original.
        ids: the columns that name a record.
        secret: the key of the dataset.
        shuffle: else they stay as they are.
        view: the rows that the copy shows.

    """
    if not shuffle:
        return pa.Table.from_batches(map(view.filter, source.batches()), source.schema)

    def laid() -> Iterator[tuple[Words, pa.RecordBatch]]:
        for places, batch in source.placed(source.schema.names):
            seen = pa.array(view.holds(batch))
            shown = batch.filter(seen)
            yield lots(record_ids(shown, ids, places[np.asarray(seen)], secret), secret), shown

    return pa.Table.from_batches(shuffled(laid(), source.schema), source.schema).replace_schema_metadata(ARRANGED)


def is_arranged(table: pa.Table) -> bool:
    """Whether a table has the order of a shuffled copy."""
    return next(iter(ARRANGED)) in (table.schema.metadata or {})


def shuffled(batches: Iterable[tuple[Words, pa.RecordBatch]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of some batches by rising lot."""
    wide = schema.append(pa.field(_LOT, pa.uint64()))
    named = (batch.append_column(_LOT, pa.array(drawn)) for drawn, batch in batches)
    held: list[pa.RecordBatch] = []
    for batch in named:
        held.append(batch)
        if sum(map(len, held)) > BATCH:
            yield from _dealt(chain(held, named), wide)
            return
    yield from _sorted(pa.Table.from_batches(held, wide))


def _sorted(part: pa.Table) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = part.sort_by(_LOT).drop_columns([_LOT]).combine_chunks().to_batches()
    return batches


def _dealt(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in parts by the first bits of their lots, each part sorted."""
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.SpooledTemporaryFile(max_size=_SPOOL)) for _ in range(PARTS)]
        writers = [pa.ipc.new_stream(file, schema) for file in files]
        for batch in batches:
            drawn = batch.column(_LOT).to_numpy()
            order = np.argsort(drawn, kind="stable")
            dealt = batch.take(pa.array(order))
            bounds = np.searchsorted(drawn[order] >> np.uint64(56), np.arange(PARTS + 1, dtype=np.uint64))
            for i in np.flatnonzero(np.diff(bounds)):
                writers[i].write_batch(dealt.slice(bounds[i], bounds[i + 1] - bounds[i]))
        for writer, file in zip(writers, files, strict=True):
            writer.close()
            file.seek(0)
            yield from _sorted(pa.ipc.open_stream(file).read_all())
