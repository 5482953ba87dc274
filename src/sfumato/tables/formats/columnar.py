"""Columnar files: Parquet, Arrow and ORC, which state their own types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from sfumato.tables.formats import BATCH, Open, TableReader

_RUN = 1 << 23
"""Bytes, before compression, after which a run of row groups ends."""


def without_views(schema: pa.Schema) -> pa.Schema:
    """The schema with ordinary strings: not all of Arrow's functions take string views."""
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}

    def plain(kind: pa.DataType) -> pa.DataType:
        if types.is_dictionary(kind):
            return pa.dictionary(kind.index_type, views.get(kind.value_type, kind.value_type))
        return views.get(kind, kind)

    return pa.schema([field.with_type(plain(field.type)) for field in schema], schema.metadata)


def read_parquet(opened: Open, row_groups: range | None = None) -> TableReader:
    """A Parquet file, or some of its row groups."""
    with opened() as handle, pyarrow.parquet.ParquetFile(handle) as file:
        schema, chosen = file.schema_arrow, row_groups or range(file.metadata.num_row_groups)
        rows = sum(file.metadata.row_group(number).num_rows for number in chosen)

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with opened() as handle, pyarrow.parquet.ParquetFile(handle, pre_buffer=True) as file:
            for run in _runs(file.metadata, chosen):
                for batch in file.iter_batches(batch_size=BATCH, row_groups=run, columns=names):
                    yield batch.select(names)

    return TableReader(schema, rows, read)


def row_group_sizes(opened: Open) -> list[int]:
    """The number of rows of each row group of a Parquet file."""
    with opened() as handle, pyarrow.parquet.ParquetFile(handle) as file:
        return [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]


def _runs(metadata: Any, chosen: range) -> Iterator[list[int]]:
    """Consecutive row groups that are read into memory at once: few large reads, but never a whole large file."""
    run: list[int] = []
    size = 0
    for number in chosen:
        if size >= _RUN:
            yield run
            run, size = [], 0
        run.append(number)
        size += metadata.row_group(number).total_byte_size
    if run:
        yield run


def read_arrow(opened: Open) -> TableReader:
    """An Arrow file or stream."""

    def streamed() -> Any:
        handle = opened()
        if handle.read(6) == b"ARROW1":
            return pyarrow.ipc.open_file(handle)
        handle.seek(0)
        return pyarrow.ipc.open_stream(handle)

    with streamed() as reader:
        schema = without_views(reader.schema)

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in names])
        with streamed() as reader:
            whole = isinstance(reader, pyarrow.ipc.RecordBatchFileReader)
            batches = map(reader.get_batch, range(reader.num_record_batches)) if whole else reader
            yield from (_validated(batch.select(names)).cast(wanted) for batch in batches)

    return TableReader(schema, None, read)


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, if its offsets are valid: Arrow trusts its files, and a damaged one would crash the process."""
    batch.validate(full=True)
    return batch


def read_orc(opened: Open) -> TableReader:
    """An ORC file, a stripe at a time."""
    from pyarrow import orc  # noqa: PLC0415 - few need it, and it takes a while

    file = orc.ORCFile(opened())

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        again = orc.ORCFile(opened())
        for stripe in range(again.nstripes):
            yield again.read_stripe(stripe, columns=names).select(names)

    return TableReader(file.schema, file.nrows, read)
