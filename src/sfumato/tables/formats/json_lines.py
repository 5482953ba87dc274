"""JSON lines: an object on each line, with a value for each column; types hold for the whole file."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.json
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.tables.formats import Open, TableReader
from sfumato.tables.formats.csv_detection import ColumnShapes, iso_type

_LONG = re.compile(rb'("(?:[^"\\]|\\.)*")\s*:\s*-?[0-9]{16,}\s*[,}]')
"""A whole number of more digits than a float has, after the name of its column."""

_BLOCK = 1 << 22
"""Bytes that are parsed at a time."""


def read_json_lines(opened: Open, schema: pa.Schema | None = None) -> TableReader:
    """A file of JSON lines; a schema gives the types. Dates and times are texts in JSON, and read as such first."""
    found = _schema(opened) if schema is None else schema.remove_metadata()
    nested = [field.name for field in found if types.is_nested(field.type)]
    if nested and schema is None:
        raise SourceError(
            f"a table must have one value in each cell, and {nested[0]!r} holds lists or objects; take the values "
            "apart into columns, or leave it out"
        )
    written = pa.schema([field.with_type(_in_json(field.type)) for field in found])

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([found.field(name) for name in names])
        for block in _blocks(opened):
            whole = _parsed(block, written)
            for name in [name for name in names if name not in whole.column_names]:
                whole = whole.append_column(name, pa.nulls(whole.num_rows, written.field(name).type))
            yield from whole.select(names).cast(wanted).to_batches()

    return TableReader(found, None, read)


def _in_json(kind: pa.DataType) -> pa.DataType:
    """The type of a column as JSON holds it."""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return pa.string() if types.is_temporal(kind) or types.is_decimal(kind) else kind


def _schema(opened: Open) -> pa.Schema:
    """The types of all columns that any line has; texts that are dates or times throughout are such."""
    found, long = pa.schema([]), set()
    for block in _blocks(opened):
        long |= {str(json.loads(name)) for name in _LONG.findall(block)}
        own = pa.schema([field.with_type(_in_json(field.type)) for field in _parsed(block).schema])
        try:
            joined = pa.unify_schemas([found, own], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise SourceError(f"a column must hold one type in all lines: {str(error).splitlines()[0]}") from None
        found = joined
    for field in found:
        if field.name in long and types.is_floating(field.type):
            raise SourceError(
                f"whole numbers of {field.name!r} have more than 15 digits, of which the last would be lost, since "
                "others are decimals or longer still; write them as texts, in quotes"
            )
    texts = [ColumnShapes(field.name) for field in found if field.type == pa.string()]
    for block in _blocks(opened) if texts else ():
        whole = _parsed(block, found)
        for one in texts:
            one.add(whole.column(one.name).combine_chunks())
    kinds = {one.name: _temporal(one) for one in texts}
    return pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in found])


def _temporal(column: ColumnShapes) -> pa.DataType:
    """The type of a text that holds dates or times in all cells, as ISO 8601 writes them; else text."""
    kind = None if column.is_text else iso_type(column)
    return kind if kind is not None and types.is_temporal(kind) else pa.string()


def _parsed(block: bytes, schema: pa.Schema | None = None) -> pa.Table:
    options = pyarrow.json.ParseOptions(explicit_schema=schema)
    reading = pyarrow.json.ReadOptions(block_size=max(len(block), 1 << 16))
    return pyarrow.json.read_json(io.BytesIO(block), read_options=reading, parse_options=options)


def _blocks(opened: Open) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time."""
    rest = b""
    with opened() as file:
        while content := _read(file):
            lines, newline, rest = (rest + content).rpartition(b"\n")
            lines.decode()  # must be UTF-8
            if lines.strip():
                yield lines + newline
    rest.decode()
    if rest.strip():
        yield rest


def _read(file: Any) -> bytes:
    return bytes(file.read(_BLOCK))
