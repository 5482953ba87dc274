"""Readers of table files (Parquet, CSV, Arrow): the columns of a file, and its rows as a stream of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.keys.file_reader import BinaryFile
from sfumato.tables.csv_quotes import QuoteCheck
from sfumato.tables.filesystem import is_file, open_file

BATCH = 1 << 16
"""Rows per batch, except in the last one."""

_RUN = 1 << 23
"""Bytes, before compression, after which a run of row groups ends."""

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


class TableReader(NamedTuple):
    """A table that can be read more than once."""

    schema: pa.Schema
    rows: int | None
    batches: Callable[[list[str]], Iterable[pa.RecordBatch]]
    """Reads some columns."""


class TableFile(NamedTuple):
    """A file that is not read by its path, such as an encrypted one."""

    name: str
    """Its suffix says its format."""
    open: Callable[[], BinaryFile]
    """Opens it anew, to be read from at any position."""


_Open = Callable[[], pa.NativeFile]


def format_of(path: str | Path) -> str:
    """The format that a file name's suffix stands for."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise SourceError(f"a table's name must end in one of {', '.join(FORMATS)}, got {str(path)!r}")
    return FORMATS[ending]


def read_file(uri: str | Path, schema: pa.Schema | None = None) -> TableReader:
    """A file; a schema gives the types of CSV, which has none of its own."""
    if not Path(uri).suffix and not is_file(uri):
        raise SourceError(f"a table must be a file or a folder that exists, and {str(uri)!r} is none")
    kind = format_of(uri)
    if not is_file(uri):
        raise SourceError(f"a table must be a file that exists, and {str(uri)!r} is none")
    return _read(str(uri), kind, partial(open_file, uri, mapped=kind == "arrow"), schema)


def read_opened(file: TableFile, schema: pa.Schema | None = None) -> TableReader:
    """A file that is not read by its path; a schema gives the types of CSV."""
    return _read(file.name, format_of(file.name), lambda: pa.PythonFile(file.open(), mode="r"), schema)


def _read(name: str, kind: str, opened: _Open, schema: pa.Schema | None) -> TableReader:
    try:
        reader = _csv(opened, schema) if kind == "csv" else _parquet(opened) if kind == "parquet" else _arrow(opened)
        list(reader.schema.names)  # names that are not UTF-8 are refused here
        return reader
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{name} could not be read as {kind}: {brief(error)}") from None


def without_views(schema: pa.Schema) -> pa.Schema:
    """The schema with ordinary strings: not all of Arrow's functions take string views."""
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}

    def plain(kind: pa.DataType) -> pa.DataType:
        if types.is_dictionary(kind):
            return pa.dictionary(kind.index_type, views.get(kind.value_type, kind.value_type))
        return views.get(kind, kind)

    return pa.schema([field.with_type(plain(field.type)) for field in schema], schema.metadata)


def _parquet(opened: _Open) -> TableReader:
    with opened() as handle, pyarrow.parquet.ParquetFile(handle) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        with opened() as handle, pyarrow.parquet.ParquetFile(handle, pre_buffer=True) as file:
            for run in _runs(file.metadata):
                for batch in file.iter_batches(batch_size=BATCH, row_groups=run, columns=names):
                    yield batch.select(names)

    return TableReader(schema, rows, read)


def _runs(metadata: Any) -> Iterator[list[int]]:
    """Consecutive row groups that are read into memory at once: few large reads, but never a whole large file."""
    run: list[int] = []
    size = 0
    for number in range(metadata.num_row_groups):
        if size >= _RUN:
            yield run
            run, size = [], 0
        run.append(number)
        size += metadata.row_group(number).total_byte_size
    if run:
        yield run


def _csv(opened: _Open, schema: pa.Schema | None = None) -> TableReader:
    """A CSV file, separated by commas, semicolons or tabs; an empty cell that is not quoted is null.

    Without a schema the types are inferred from the first rows, and numbers with leading zeros stay text.
    """
    with opened() as file:
        head = file.read(1 << 20).partition(b"\n")[0].decode("utf-8-sig")
    separator = max(",;\t", key=head.count)
    # in a table of one column, an empty line is a null
    parse = pyarrow.csv.ParseOptions(delimiter=separator, ignore_empty_lines=separator in head)

    def parsed(known: dict[str, pa.DataType], names: list[str] | None = None, file: Any = None) -> Any:
        convert = pyarrow.csv.ConvertOptions(
            column_types=known,
            include_columns=names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        return pyarrow.csv.open_csv(file or opened(), parse_options=parse, convert_options=convert)

    with parsed({field.name: _readable(field.type) for field in schema or ()}) as reader:
        found = reader.schema
    if schema is None and len(set(found.names)) == len(found.names):
        found = _keep_zeros(found, parsed(dict.fromkeys(found.names, pa.string())))
    known = {field.name: field.type for field in found}

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        checked = QuoteCheck(opened(), separator)
        with parsed(known, names, checked) as reader:
            yield from reader
        checked.check()

    return TableReader(found, None, read)


def _readable(kind: pa.DataType) -> pa.DataType:
    """The nearest type that the CSV reader makes."""
    if types.is_dictionary(kind):
        return _readable(kind.value_type)
    if types.is_float16(kind):
        return pa.float32()
    return pa.string() if types.is_decimal256(kind) else kind


def _keep_zeros(schema: pa.Schema, texts: Any) -> pa.Schema:
    """The schema with text instead of integers where some cell has leading zeros, as codes have."""
    with texts as reader:
        first = next(iter(reader), None)
    if first is None:
        return schema
    padded = [name for name in schema.names if pc.any(pc.match_substring_regex(first.column(name), "^0[0-9]")).as_py()]
    coded = [f.name for f in schema if f.name in padded and types.is_integer(f.type)]
    return pa.schema(field.with_type(pa.string()) if field.name in coded else field for field in schema)


def _arrow(opened: _Open) -> TableReader:
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


def brief(error: Exception) -> str:
    """The first line of an error."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
