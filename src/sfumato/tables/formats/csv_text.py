"""CSV files in any dialect: encodings, separators, decimal commas, words for missing values, national dates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.csv
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.tables.cell_text import is_own_text, read_cells
from sfumato.tables.csv_quotes import QuoteCheck
from sfumato.tables.dialect import Dialect
from sfumato.tables.file_options import NOTHING_STATED, FileOptions
from sfumato.tables.formats import Open, TableReader
from sfumato.tables.formats.csv_detection import ColumnShapes, decide
from sfumato.tables.formats.csv_syntax import as_utf8, syntax


def read_csv(opened: Open, schema: pa.Schema | None = None, options: FileOptions = NOTHING_STATED) -> TableReader:
    """A CSV file; a schema gives its types, and may carry its dialect.

    Without a schema both are detected from the whole file. An empty cell that is not quoted is null.
    """
    dialect = Dialect.of_schema(schema) or syntax(opened, options)
    if schema is None:
        dialect, found = _detected(opened, dialect, options)
    else:
        found = _header(opened, dialect, {field.name: _readable(field.type) for field in schema}, options)
    return TableReader(dialect.in_schema(found), None, partial(_rows, opened, dialect, found, options.header))


def _header(opened: Open, dialect: Dialect, known: dict[str, pa.DataType], options: FileOptions) -> pa.Schema:
    """The columns of a file whose types are known."""
    own = {name: pa.string() if is_own_text(dialect, name, kind) else kind for name, kind in known.items()}
    with _parsed(as_utf8(opened, dialect.encoding, options.header), dialect, own) as reader:
        return pa.schema([field.with_type(known.get(field.name, field.type)) for field in reader.schema])


def _detected(opened: Open, dialect: Dialect, options: FileOptions) -> tuple[Dialect, pa.Schema]:
    """The dialect and the types of a file, from all of its cells."""
    with _parsed(as_utf8(opened, dialect.encoding, options.header), dialect, {}) as reader:
        names = reader.schema.names
    _check_names(names, options)
    if len(set(names)) < len(names):  # refused later
        return dialect, pa.schema([(name, pa.string()) for name in names])
    columns = [ColumnShapes(name) for name in names]
    checked = QuoteCheck(as_utf8(opened, dialect.encoding, options.header), dialect.separator, dialect.quote)
    with _parsed(checked, dialect, dict.fromkeys(names, pa.string())) as reader:
        for batch in reader:
            for column in columns:
                column.add(batch.column(column.name))
    checked.check()
    decided = decide(columns, dialect, options)
    return decided.dialect, pa.schema([(name, decided.types[name]) for name in names])


def _check_names(names: list[str], options: FileOptions) -> None:
    """Refuse a file without names, and options about columns that it does not have."""
    if names and all(re.fullmatch(r"\s*-?[0-9]+([.,][0-9]+)?\s*", name) for name in names):
        raise SourceError(
            f"the first line must name the columns, and it holds numbers, such as {names[0]!r}; add a line of names"
        )
    for name in options.text:
        if name not in names:
            raise SourceError(f"`text` in [file] must name columns of the file, and {name!r} is none")


def _parsed(file: Any, dialect: Dialect, known: dict[str, pa.DataType], names: list[str] | None = None) -> Any:
    # in a table of one column, an empty line is a null
    with_gaps = names is not None and len(known) == 1
    parse = pyarrow.csv.ParseOptions(
        delimiter=dialect.separator,
        quote_char=dialect.quote,
        newlines_in_values=True,
        ignore_empty_lines=not with_gaps,
    )
    convert = pyarrow.csv.ConvertOptions(
        column_types=known,
        include_columns=names,
        null_values=list(dict.fromkeys(["", *dialect.missing])),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pyarrow.csv.open_csv(file, parse_options=parse, convert_options=convert)


def _rows(opened: Open, dialect: Dialect, schema: pa.Schema, header: int, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a file."""
    kinds = {field.name: field.type for field in schema}
    own = {name for name, kind in kinds.items() if is_own_text(dialect, name, kind)}
    parsed = {name: pa.string() if name in own else kind for name, kind in kinds.items()}
    checked = QuoteCheck(as_utf8(opened, dialect.encoding, header), dialect.separator, dialect.quote)
    wanted = pa.schema([schema.field(name) for name in names])
    with _parsed(checked, dialect, parsed, names) as reader:
        for batch in reader:
            columns = [
                read_cells(dialect, name, batch.column(name), kinds[name]) if name in own else batch.column(name)
                for name in names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=wanted)
    checked.check()


def _readable(kind: pa.DataType) -> pa.DataType:
    """The nearest type that the CSV reader makes."""
    if types.is_dictionary(kind):
        return _readable(kind.value_type)
    if types.is_float16(kind):
        return pa.float32()
    return pa.string() if types.is_decimal256(kind) else kind
