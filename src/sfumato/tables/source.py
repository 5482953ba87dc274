"""Tables: whatever holds one, as a stream of record batches that can be read again and always breaks at the same rows.

The fixed batch size is what makes the layout of a copy, and its digest, independent of how the source was cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.tables.filesystem import is_folder, is_remote
from sfumato.tables.partitioned import Part, parts_of, rows_of
from sfumato.tables.readers import BATCH, LedgerReader, brief, read_file, viewless


@dataclass(frozen=True)
class Source:
    """A table that can be read more than once."""

    schema: pa.Schema
    rows: int | None
    _open: Callable[[list[str]], Iterable[pa.RecordBatch]]
    path: Path | None = None
    """Of a file or a folder on this machine."""
    place: str = ""
    """Of a file or a folder anywhere."""
    parts: tuple[Part, ...] = ()
    """The files of a folder."""
    start: int = 0
    """The place of the first row; those of a folder's files are far apart."""

    @classmethod
    def of(cls, table: Any, schema: pa.Schema | None = None) -> Source:
        """A source from a path, a pyarrow table, or anything with `__arrow_c_stream__` (pandas, polars, ...).

        A path may be a folder of files, with folders in it, and either may be a URL that fsspec knows. A schema gives
        the types of a CSV file, which has none of its own.
        """
        if isinstance(table, Source):
            return table
        if isinstance(table, Part):
            return cls._read(table.reading(), table.place, start=table.start)
        if isinstance(table, str | Path):
            parts = parts_of(table, schema) if is_folder(table) else ()
            source = cls._read(_chained(parts) if parts else read_file(table, schema), table, parts)
        else:
            source = cls._read(_memory(table))
        names = source.schema.names
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise SourceError(f"column names must be distinct, and {twice[0]!r} occurs more than once; rename one")
        return source

    @classmethod
    def _read(cls, read: LedgerReader, place: str | Path = "", parts: tuple[Part, ...] = (), start: int = 0) -> Source:
        path = None if is_remote(place) or not str(place) else Path(place)
        return cls(read.schema, read.rows, read.batches, path, str(place), parts, start)

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, `BATCH` at a time."""
        names = self.schema.names if columns is None else columns
        try:
            yield from cut(self._open(names))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise SourceError(f"{self.place or 'the table'} could not be read to its end: {brief(error)}") from None

    def placed(self, columns: list[str]) -> Iterator[tuple[np.ndarray[Any, np.dtype[np.uint64]], pa.RecordBatch]]:
        """The rows in order, with the place of each: it names a record that has no other name."""
        for source in [Source.of(part) for part in self.parts] or [self]:
            first = np.uint64(source.start)
            for batch in source.batches(columns):
                yield first + np.arange(batch.num_rows, dtype=np.uint64), batch
                first = np.uint64((int(first) + batch.num_rows) % 2**64)


def _memory(table: Any) -> LedgerReader:
    """A table in memory."""
    if not hasattr(table, "__arrow_c_stream__"):
        raise SourceError(
            f"a table must be a path or have `__arrow_c_stream__` (pyarrow, pandas, polars), got {type(table).__name__}"
        )
    try:
        whole = _plain(table if isinstance(table, pa.Table) else pa.table(table))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(f"the {type(table).__name__} could not be read as a table: {brief(error)}") from None
    return LedgerReader(whole.schema, whole.num_rows, lambda names: whole.select(names).to_batches(max_chunksize=BATCH))


def _plain(table: pa.Table) -> pa.Table:
    """The table without the index that pandas adds, and with ordinary strings in place of views of strings."""
    table = table.select([name for name in table.column_names if not re.fullmatch(r"__index_level_\d+__", name)])
    schema = viewless(table.schema)
    return table.cast(schema) if schema != table.schema else table


def _chained(parts: tuple[Part, ...]) -> LedgerReader:
    """The files of a folder, one after the other."""

    def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
        return (batch for part in parts for batch in part.reading().batches(names))

    return LedgerReader(parts[0].schema, rows_of(parts), batches)


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
