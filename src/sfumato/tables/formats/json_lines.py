"""JSON lines: an object on each line, with a value for each column; types hold for the whole file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.json
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.tables.formats import Open, TableReader

_BLOCK = 1 << 22
"""Bytes that are parsed at a time."""


def read_json_lines(opened: Open, schema: pa.Schema | None = None) -> TableReader:
    """A file of JSON lines; a schema gives the types."""
    found = _schema(opened) if schema is None else schema.remove_metadata()
    nested = [field.name for field in found if types.is_nested(field.type)]
    if nested and schema is None:
        raise SourceError(
            f"a table must have one value in each cell, and {nested[0]!r} holds lists or objects; take the values "
            "apart into columns, or leave it out"
        )

    def read(names: list[str]) -> Iterator[pa.RecordBatch]:
        for block in _blocks(opened):
            whole = _parsed(block, found)
            missing = [name for name in names if name not in whole.column_names]
            for name in missing:
                whole = whole.append_column(name, pa.nulls(whole.num_rows, found.field(name).type))
            yield from whole.select(names).cast(pa.schema([found.field(name) for name in names])).to_batches()

    return TableReader(found, None, read)


def _schema(opened: Open) -> pa.Schema:
    """The types of all columns that any line has; whole numbers and others together are numbers."""
    found = pa.schema([])
    for block in _blocks(opened):
        try:
            found = pa.unify_schemas([found, _parsed(block).schema], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise SourceError(f"a column must hold one type in all lines: {str(error).splitlines()[0]}") from None
    return found


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
            if lines.strip():
                yield lines + newline
    if rest.strip():
        yield rest


def _read(file: Any) -> bytes:
    return bytes(file.read(_BLOCK))
