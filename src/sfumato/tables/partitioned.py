"""Partitioned tables: one table in many files of a folder, nested or partitioned (`region=north/…`), anywhere.

A large Parquet file is shared out like a folder, by its row groups.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.tables.file_options import NOTHING_STATED, FileOptions
from sfumato.tables.filesystem import FileInfo, is_remote, list_files, stamp_of
from sfumato.tables.formats import TableReader
from sfumato.tables.readers import FORMATS, brief, format_of, read_file, read_row_groups, row_groups_of

_FEW = 1000

_ENDINGS = [ending for ending in FORMATS if ending != ".txt"]
"""The endings of files in a folder, in which a text is a note rather than a part of the table."""

_NULL = "__HIVE_DEFAULT_PARTITION__"

Value = str | int | None


_ROWS_PER_PART = 1 << 20
"""The rows after which a part of a Parquet file ends: a function of the file alone, so that any engine shares it out
alike."""


@dataclass(frozen=True)
class RowGroups:
    """Some consecutive row groups of a Parquet file."""

    first: int
    end: int
    """The number after the last one."""
    start: int
    """The number of their first row in the file."""


@dataclass(frozen=True)
class Part:
    """One file of a partitioned table, or a part of one; small, so that it can be sent to the worker that reads it."""

    name: str
    """Its path below the folder, with slashes."""
    uri: str
    stamp: str
    """Changes when the file does; empty where a store does not tell."""
    fixed: tuple[tuple[str, Value], ...]
    """The columns whose values are in the names of its folders."""
    schema: pa.Schema
    """The schema of the whole table, with those columns."""
    row_groups: RowGroups | None = None
    """The row groups of the file that belong to the part; all by default."""

    @property
    def start(self) -> int:
        """The number of its first row, from its name alone, so that other files may be added and removed.

        It is the first 64 bits of the name's SHA-256; the next row has the next number, and so on (modulo 2^64). Rows
        of a part of a file have the numbers that they have in the file.
        """
        if self.row_groups is not None:
            return self.row_groups.start
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "big")

    def rows(self) -> int:
        """The number of its rows."""
        read = self.reader()
        return sum(batch.num_rows for batch in read.batches(self.schema.names[:1])) if read.rows is None else read.rows

    def reader(self) -> TableReader:
        """A reader of its rows, with the types of the whole table."""
        fixed = dict(self.fixed)
        own = pa.schema(field for field in self.schema if field.name not in fixed)
        read = self.stored(own)
        missing = [name for name in own.names if name not in read.schema.names]
        if missing:
            raise SourceError(f"all files of a folder must have its columns, and {self.uri} has no {missing[0]!r}")
        extra = [name for name in read.schema.names if name not in self.schema.names]
        if extra:
            raise SourceError(f"all files of a folder must have its columns alone, and {self.uri} has {extra[0]!r}")

        def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
            stored = [name for name in names if name not in fixed] or own.names[:1]
            for batch in read.batches(stored):
                columns = [self._column(name, batch) for name in names]
                yield pa.RecordBatch.from_arrays(columns, schema=pa.schema([self.schema.field(n) for n in names]))

        return TableReader(self.schema, read.rows, batches)

    def stored(self, schema: pa.Schema | None = None) -> TableReader:
        """A reader of its rows as they are stored; a schema gives the types of text."""
        groups = self.row_groups
        if groups is None:
            return read_file(self.uri, schema)
        self._check_unchanged()
        read = read_row_groups(self.uri, range(groups.first, groups.end))

        def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
            yield from read.batches(names)
            self._check_unchanged()

        return TableReader(read.schema, read.rows, batches)

    def _check_unchanged(self) -> None:
        """Refuse a file that was replaced since its row groups were counted: rows would have the numbers of others."""
        if self.stamp and stamp_of(self.uri) != self.stamp:
            raise SourceError(f"{self.uri} must stay as it is while it is copied, and it was changed; start again")

    def _column(self, name: str, batch: pa.RecordBatch) -> pa.Array:
        kind, fixed = self.schema.field(name).type, dict(self.fixed)
        if name in fixed:
            return pa.repeat(pa.scalar(fixed[name], kind), batch.num_rows)
        column = batch.column(name)
        try:
            return column if column.type == kind else column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SourceError(
                f"column {name!r} must hold {kind} in all files of a folder, and {self.uri} holds {column.type}: "
                f"{brief(error)}"
            ) from None


def parts_of(
    folder: str | Path, schema: pa.Schema | None = None, options: FileOptions = NOTHING_STATED
) -> tuple[Part, ...]:
    """The files of a folder, sorted by name; files and folders whose names begin with `_` or `.` are ignored.

    The types are those of the first file, unless a schema states them.
    """
    files = [file for file in list_files(folder) if not _is_hidden(file.name)]
    strange = [file.name for file in files if Path(file.name).suffix.lower() not in _ENDINGS]
    if strange:
        raise SourceError(
            f"the folder of a table must hold files that end in {', '.join(_ENDINGS)}, and {strange[0]!r} does not; "
            "move it, or begin its name with _"
        )
    if not files:
        raise SourceError(f"the folder of a table must hold at least one file, and {str(folder)!r} has none")
    fixed = _fixed(files)
    added = [pa.field(name, _type([dict(one)[name] for one in fixed])) for name in dict(fixed[0])]
    if schema is None:
        own = read_file(files[0].uri, options=options).schema
        schema = pa.schema([*(_bare(field) for field in own if field.name not in dict(fixed[0])), *added], own.metadata)
    return tuple(
        Part(file.name, file.uri, file.stamp, _values(one, schema), schema)
        for file, one in zip(files, fixed, strict=True)
    )


def parts_of_file(uri: str) -> tuple[Part, ...]:
    """The parts of a Parquet file; none of another one."""
    stamp = stamp_of(uri)  # before anything of the file is read
    sizes = row_groups_of(uri)
    if not sizes:
        return ()
    ends = [i + 1 for i, rows in enumerate(_running(sizes)) if rows >= _ROWS_PER_PART]
    ends = sorted({*ends, len(sizes)})
    schema = read_file(uri).schema
    bare = pa.schema([_bare(field) for field in schema], schema.metadata)
    return tuple(
        Part(f"part-{i:05}.parquet", uri, stamp, (), bare, RowGroups(first, end, sum(sizes[:first])))
        for i, (first, end) in enumerate(pairwise([0, *ends]))
    )


def _running(sizes: Sequence[int]) -> Iterator[int]:
    """The rows of the part that each row group would end."""
    total = 0
    for size in sizes:
        total = size if total >= _ROWS_PER_PART else total + size
        yield total


def rows_of(parts: Sequence[Part]) -> int | None:
    """The number of rows of all files, where it is cheap to know: few Parquet files on this machine."""
    if len(parts) > _FEW or any(is_remote(part.uri) or format_of(part.uri) != "parquet" for part in parts):
        return None
    counts = [part.stored().rows for part in parts]
    return sum(count for count in counts if count is not None)


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/")) or name.endswith(".manifest.json")


def _fixed(files: Sequence[FileInfo]) -> list[tuple[tuple[str, str | None], ...]]:
    """The columns in the names of each file's folders: `region=north/year=2026/…`."""
    out = []
    for file in files:
        pairs = [part.partition("=") for part in file.name.split("/")[:-1] if "=" in part]
        out.append(tuple((unquote(name), None if value == _NULL else unquote(value)) for name, _, value in pairs))
    first = [name for name, _ in out[0]]
    for file, one in zip(files, out, strict=True):
        if [name for name, _ in one] != first:
            raise SourceError(
                f"all files must be in folders that name the same columns, and {files[0].name!r} and {file.name!r} do "
                "not; move one"
            )
    return out


def _type(values: Sequence[str | None]) -> pa.DataType:
    whole = all(value is None or re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value) for value in values)
    return pa.int64() if whole and any(value is not None for value in values) else pa.string()


def _values(texts: Sequence[tuple[str, str | None]], schema: pa.Schema) -> tuple[tuple[str, Value], ...]:
    def value(text: str | None, kind: pa.DataType) -> Value:
        return int(text) if text is not None and types.is_integer(kind) else text

    return tuple((name, value(text, schema.field(name).type)) for name, text in texts if name in schema.names)


def _bare(field: pa.Field) -> pa.Field:
    """The field without its dictionary, since each file has its own."""
    return field.with_type(field.type.value_type) if types.is_dictionary(field.type) else field
