"""Tables: whatever holds one, as a stream of record batches that can be read again and always breaks at the same rows.

The fixed batch size is what makes the layout of a copy, and its digest, independent of how the source was cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from sfumato.errors import SourceError

BATCH = 1 << 16
"""Rows a batch, all but the last."""

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def format_of(path: str | Path) -> str:
    """The format that a file's ending names."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise SourceError(f"a table's name must end in one of {', '.join(FORMATS)}, got {str(path)!r}")
    return FORMATS[ending]


@dataclass(frozen=True)
class Source:
    """A table that can be read more than once."""

    schema: pa.Schema
    rows: int | None
    _open: Callable[[list[str]], Iterable[pa.RecordBatch]]
    path: Path | None = None

    @classmethod
    def of(cls, table: Any, schema: pa.Schema | None = None) -> Source:
        """A source from a path, a pyarrow table, or anything with `__arrow_c_stream__` (pandas, polars, ...).

        A schema gives the types of a CSV file, which has none of its own.
        """
        if isinstance(table, Source):
            return table
        source = _file(Path(table), schema) if isinstance(table, str | Path) else _memory(table)
        names = source.schema.names
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise SourceError(f"column names must be distinct, and {twice[0]!r} occurs more than once; rename one")
        return source

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, `BATCH` at a time."""
        names = self.schema.names if columns is None else columns
        try:
            yield from cut(self._open(names))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise SourceError(f"{self.path or 'the table'} could not be read to its end: {_brief(error)}") from None


def _memory(table: Any) -> Source:
    """A source from a table in memory."""
    if not hasattr(table, "__arrow_c_stream__"):
        raise SourceError(
            f"a table must be a path or have `__arrow_c_stream__` (pyarrow, pandas, polars), got {type(table).__name__}"
        )
    try:
        whole = _plain(table if isinstance(table, pa.Table) else pa.table(table))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(f"the {type(table).__name__} could not be read as a table: {_brief(error)}") from None
    return Source(whole.schema, whole.num_rows, lambda names: whole.select(names).to_batches(max_chunksize=BATCH))


def _plain(table: pa.Table) -> pa.Table:
    """The table without the index that pandas adds, and with ordinary strings in place of views of strings."""
    table = table.select([name for name in table.column_names if not re.fullmatch(r"__index_level_\d+__", name)])
    schema = _viewless(table.schema)
    return table.cast(schema) if schema != table.schema else table


def _viewless(schema: pa.Schema) -> pa.Schema:
    """Views of strings are not taken by all of Arrow's functions."""
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}

    def plain(kind: pa.DataType) -> pa.DataType:
        if types.is_dictionary(kind):
            return pa.dictionary(kind.index_type, views.get(kind.value_type, kind.value_type))
        return views.get(kind, kind)

    return pa.schema([field.with_type(plain(field.type)) for field in schema], schema.metadata)


def cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, `BATCH` at a time."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        while rows >= BATCH:
            whole = held[0] if len(held) == 1 else pa.concat_batches(held)
            yield whole.slice(0, BATCH)
            rest = whole.slice(BATCH)
            held, rows = ([rest] if rest.num_rows else []), rest.num_rows
    if rows:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)


def _file(path: Path, schema: pa.Schema | None) -> Source:
    kind = format_of(path)
    try:
        if not path.is_file():
            raise SourceError(f"a table must be a file that exists, and {str(path)!r} is none")
        if kind == "csv":
            return _csv(path, schema)
        return _parquet(path) if kind == "parquet" else _arrow(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} could not be read as {format_of(path)}: {_brief(error)}") from None


def _parquet(path: Path) -> Source:
    with pyarrow.parquet.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=BATCH, columns=names):
                yield batch.select(names)

    return Source(schema, rows, read, path)


def _csv(path: Path, schema: pa.Schema | None = None) -> Source:
    """A CSV file, separated by commas, semicolons or tabs; an empty cell that is not quoted is null.

    Without a schema the first rows tell the types, and numbers written with leading zeros stay text.
    """
    with path.open(encoding="utf-8-sig") as file:
        head = file.readline()
    mark = max(",;\t", key=head.count)
    # in a table of one column, an empty line is a null
    parse = pyarrow.csv.ParseOptions(delimiter=mark, ignore_empty_lines=mark in head)

    def opened(known: dict[str, pa.DataType], names: list[str] | None = None) -> Any:
        convert = pyarrow.csv.ConvertOptions(
            column_types=known,
            include_columns=names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return pyarrow.csv.open_csv(path, parse_options=parse, convert_options=convert)

    with opened({field.name: _readable(field.type) for field in schema or ()}) as reader:
        found = reader.schema
    if schema is None and len(set(found.names)) == len(found.names):
        found = _keep_zeros(found, opened(dict.fromkeys(found.names, pa.string())))
    known = {field.name: field.type for field in found}

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with opened(known, names) as reader:
            yield from reader

    return Source(found, None, read, path)


def _readable(kind: pa.DataType) -> pa.DataType:
    """The nearest type that the CSV reader makes."""
    if types.is_dictionary(kind):
        return _readable(kind.value_type)
    if types.is_float16(kind):
        return pa.float32()
    return pa.string() if types.is_decimal256(kind) else kind


def _keep_zeros(schema: pa.Schema, texts: Any) -> pa.Schema:
    """The schema with text in place of integers where some cell has leading zeros, as codes have."""
    with texts as reader:
        first = next(iter(reader), None)
    if first is None:
        return schema
    padded = [name for name in schema.names if pc.any(pc.match_substring_regex(first.column(name), "^0[0-9]")).as_py()]
    coded = [f.name for f in schema if f.name in padded and types.is_integer(f.type)]
    return pa.schema(field.with_type(pa.string()) if field.name in coded else field for field in schema)


def _arrow(path: Path) -> Source:
    def opened() -> Any:
        handle = pa.memory_map(str(path))
        if handle.read(6) == b"ARROW1":
            return pyarrow.ipc.open_file(handle)
        handle.seek(0)
        return pyarrow.ipc.open_stream(handle)

    with opened() as reader:
        schema = _viewless(reader.schema)

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in names])
        with opened() as reader:
            whole = isinstance(reader, pyarrow.ipc.RecordBatchFileReader)
            batches = map(reader.get_batch, range(reader.num_record_batches)) if whole else reader
            yield from (_sound(batch.select(names)).cast(wanted) for batch in batches)

    return Source(schema, None, read, path)


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch that points nowhere but into itself: Arrow trusts its files, and a damaged one would crash us."""
    batch.validate(full=True)
    return batch


def _brief(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
