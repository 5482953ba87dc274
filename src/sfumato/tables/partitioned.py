"""A table in many files: a folder, nested or partitioned (`region=north/…`), on this machine or in an object store."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.tables.filesystem import Found, is_remote, listed
from sfumato.tables.readers import FORMATS, LedgerReader, brief, format_of, read_file

_FEW = 1000

_NOTHING = "__HIVE_DEFAULT_PARTITION__"

Value = str | int | None


@dataclass(frozen=True)
class Part:
    """One file of a folder; small, so that it can be sent to wherever it shall be read."""

    name: str
    """Its path below the folder, with slashes."""
    place: str
    stamp: str
    """Changes when the file does."""
    fixed: tuple[tuple[str, Value], ...]
    """The columns that the names of its folders tell."""
    schema: pa.Schema
    """Of all files, with those columns."""

    @property
    def start(self) -> int:
        """The place of its first row, from its name alone: other files may come and go.

        It is the first 64 bits of the name's SHA-256; the row after it is 1 further, and so on (modulo 2^64).
        """
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "big")

    def rows(self) -> int:
        """How many rows it has."""
        read = self.reading()
        return sum(batch.num_rows for batch in read.batches(self.schema.names[:1])) if read.rows is None else read.rows

    def reading(self) -> LedgerReader:
        """Its rows, with the types of the folder."""
        told = dict(self.fixed)
        own = pa.schema(field for field in self.schema if field.name not in told)
        read = read_file(self.place, own)
        lost = [name for name in own.names if name not in read.schema.names]
        if lost:
            raise SourceError(f"all files of a folder must have its columns, and {self.place} has no {lost[0]!r}")
        more = [name for name in read.schema.names if name not in self.schema.names]
        if more:
            raise SourceError(f"all files of a folder must have its columns alone, and {self.place} has {more[0]!r}")

        def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
            stored = [name for name in names if name not in told] or own.names[:1]
            for batch in read.batches(stored):
                columns = [self._column(name, batch) for name in names]
                yield pa.RecordBatch.from_arrays(columns, schema=pa.schema([self.schema.field(n) for n in names]))

        return LedgerReader(self.schema, read.rows, batches)

    def _column(self, name: str, batch: pa.RecordBatch) -> pa.Array:
        kind, told = self.schema.field(name).type, dict(self.fixed)
        if name in told:
            return pa.repeat(pa.scalar(told[name], kind), batch.num_rows)
        column = batch.column(name)
        try:
            return column if column.type == kind else column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SourceError(
                f"column {name!r} must hold {kind} in all files of a folder, and {self.place} holds {column.type}: "
                f"{brief(error)}"
            ) from None


def parts_of(folder: str | Path, schema: pa.Schema | None = None) -> tuple[Part, ...]:
    """The files of a folder in the order of their names; those whose path has a part that begins with `_` or `.` not.

    Types are those of the first file, unless a schema says otherwise.
    """
    files = [file for file in listed(folder) if not _is_hidden(file.name)]
    strange = [file.name for file in files if Path(file.name).suffix.lower() not in FORMATS]
    if strange:
        raise SourceError(
            f"a folder of a table must hold files that end in {', '.join(FORMATS)}, and {strange[0]!r} does not; move "
            "it, or let its name begin with _"
        )
    if not files:
        raise SourceError(f"a folder of a table must hold at least one file, and {str(folder)!r} has none")
    fixed = _fixed(files)
    told = [pa.field(name, _type([dict(one)[name] for one in fixed])) for name in dict(fixed[0])]
    if schema is None:
        own = read_file(files[0].place).schema
        schema = pa.schema([*(_bare(field) for field in own if field.name not in dict(fixed[0])), *told], own.metadata)
    return tuple(
        Part(file.name, file.place, file.stamp, _values(one, schema), schema)
        for file, one in zip(files, fixed, strict=True)
    )


def rows_of(parts: Sequence[Part]) -> int | None:
    """How many rows all files have, where that is said in few places on this machine."""
    if len(parts) > _FEW or any(is_remote(part.place) or format_of(part.place) != "parquet" for part in parts):
        return None
    counts = [read_file(part.place).rows for part in parts]
    return sum(count for count in counts if count is not None)


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/")) or name.endswith(".manifest.json")


def _fixed(files: Sequence[Found]) -> list[tuple[tuple[str, str | None], ...]]:
    """What the names of each file's folders tell: `region=north/year=2026/…`."""
    out = []
    for file in files:
        pairs = [part.partition("=") for part in file.name.split("/")[:-1] if "=" in part]
        out.append(tuple((unquote(name), None if value == _NOTHING else unquote(value)) for name, _, value in pairs))
    first = [name for name, _ in out[0]]
    for file, one in zip(files, out, strict=True):
        if [name for name, _ in one] != first:
            raise SourceError(
                f"all files must lie in folders that name the same columns, and {files[0].name!r} and {file.name!r} do "
                "not; move one"
            )
    return out


def _type(values: Sequence[str | None]) -> pa.DataType:
    whole = all(value is None or re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value) for value in values)
    return pa.int64() if whole and any(value is not None for value in values) else pa.string()


def _values(told: Sequence[tuple[str, str | None]], schema: pa.Schema) -> tuple[tuple[str, Value], ...]:
    def value(said: str | None, kind: pa.DataType) -> Value:
        return int(said) if said is not None and types.is_integer(kind) else said

    return tuple((name, value(said, schema.field(name).type)) for name, said in told if name in schema.names)


def _bare(field: pa.Field) -> pa.Field:
    """Files have dictionaries of their own, so that columns are taken without them."""
    return field.with_type(field.type.value_type) if types.is_dictionary(field.type) else field
