"""Readers of table files: which format a file has, its columns, and its rows as a stream of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.keys.file_reader import BinaryFile
from sfumato.tables.dialect import Dialect
from sfumato.tables.file_options import NOTHING_STATED, FileOptions
from sfumato.tables.filesystem import is_file, open_file
from sfumato.tables.formats import Open, TableReader
from sfumato.tables.formats.columnar import read_arrow, read_orc, read_parquet, row_group_sizes
from sfumato.tables.formats.csv_text import read_csv
from sfumato.tables.formats.excel import read_excel
from sfumato.tables.formats.json_lines import read_json_lines
from sfumato.tables.formats.statistics_files import READERS, read_statistics_file

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".orc": "orc",
    ".jsonl": "json lines",
    ".ndjson": "json lines",
    ".xlsx": "excel",
    ".xlsm": "workbook",
    ".xls": "workbook",
    ".ods": "workbook",
    ".sav": "spss",
    ".zsav": "spss",
    ".por": "spss portable",
    ".dta": "stata",
    ".sas7bdat": "sas",
    ".xpt": "sas transport",
}


class TableFile(NamedTuple):
    """A file that is not read by its path, such as an encrypted one."""

    name: str
    """Its suffix says its format."""
    open: Callable[[], BinaryFile]
    """Opens it anew, to be read from at any position."""


def format_of(path: str | Path) -> str:
    """The format that a file name's suffix stands for."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise SourceError(f"a table's name must end in one of {', '.join(FORMATS)}, got {str(path)!r}")
    return FORMATS[ending]


def check_file(uri: str | Path) -> str:
    """The format of a file; refuses what is none, or of no format that can be read."""
    if not Path(uri).suffix and not is_file(uri):
        raise SourceError(f"a table must be a file or a folder that exists, and {str(uri)!r} is none")
    kind = format_of(uri)
    if not is_file(uri):
        raise SourceError(f"a table must be a file that exists, and {str(uri)!r} is none")
    return kind


def read_file(uri: str | Path, schema: pa.Schema | None = None, options: FileOptions = NOTHING_STATED) -> TableReader:
    """A file; a schema gives the types of text, which has none of its own."""
    kind = check_file(uri)
    return _read(str(uri), kind, partial(open_file, uri, mapped=kind == "arrow"), schema, options)


def read_row_groups(uri: str | Path, row_groups: range) -> TableReader:
    """Some row groups of a Parquet file."""
    return _guarded(str(uri), "parquet", lambda: read_parquet(partial(open_file, uri), row_groups))


def row_groups_of(uri: str | Path) -> list[int]:
    """The number of rows of each row group of a file; none where it is not Parquet."""
    return row_group_sizes(partial(open_file, uri)) if check_file(uri) == "parquet" else []


def read_opened(file: TableFile, schema: pa.Schema | None = None, options: FileOptions = NOTHING_STATED) -> TableReader:
    """A file that is not read by its path; a schema gives the types of text."""
    opened = lambda: pa.PythonFile(file.open(), mode="r")  # noqa: E731
    return _read(file.name, format_of(file.name), opened, schema, options)


def _read(name: str, kind: str, opened: Open, schema: pa.Schema | None, options: FileOptions) -> TableReader:
    return _guarded(name, kind, lambda: _of_format(kind, opened, schema, options))


def _guarded(name: str, kind: str, read: Callable[[], TableReader]) -> TableReader:
    """A reader, or an error that names the file."""
    try:
        reader = read()
        list(reader.schema.names)  # names that are not UTF-8 are refused here
        return reader
    except (pa.ArrowException, OSError, UnicodeDecodeError, IndexError) as error:
        raise SourceError(f"{name} could not be read as {kind}: {brief(error)}") from None
    except SourceError as error:
        raise SourceError(f"{name}: {error}") from None


def _of_format(kind: str, opened: Open, schema: pa.Schema | None, options: FileOptions) -> TableReader:
    if kind in ("csv", "tsv"):
        dialect = Dialect.of_schema(schema)
        if schema is not None and dialect is not None and kind == "tsv":  # a copy, of a file of another ending
            schema = replace(dialect, separator="\t").in_schema(schema)
        return read_csv(opened, schema, options)
    if kind in ("excel", "workbook"):
        return with_types(read_excel(opened, options), schema)
    if kind in READERS:
        return with_types(read_statistics_file(opened, kind), schema)
    if kind == "json lines":
        return read_json_lines(opened, schema)
    return {"parquet": read_parquet, "arrow": read_arrow, "orc": read_orc}[kind](opened)


def with_types(reader: TableReader, schema: pa.Schema | None) -> TableReader:
    """The rows with the types of a schema, which a workbook, a statistics file or a database does not keep."""
    if schema is None:
        return reader
    known = {field.name: field.type.value_type if types.is_dictionary(field.type) else field.type for field in schema}
    fields = [field.with_type(known.get(field.name, field.type)) for field in reader.schema]

    def batches(names: list[str]) -> Iterable[pa.RecordBatch]:
        wanted = pa.schema([field for name in names for field in fields if field.name == name])
        return (_cast(batch, wanted) for batch in reader.batches(names))

    return TableReader(pa.schema(fields), reader.rows, batches)


def _cast(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Rows with other types; a time of a zone that was kept as text is written in UTC, without saying so."""
    columns = []
    for field in wanted:
        column = batch.column(field.name)
        if types.is_string(column.type) and types.is_timestamp(field.type) and field.type.tz:
            column = column.cast(pa.timestamp(field.type.unit)).cast(pa.timestamp(field.type.unit, "UTC"))
        columns.append(column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def brief(error: Exception) -> str:
    """The first line of an error."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
