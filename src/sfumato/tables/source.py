"""Table sources: files, folders, URLs and data frames as re-readable streams of Arrow record batches of a fixed size.

The fixed batch size makes the layout of a copy, and its digest, independent of how the source was divided.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.tables.database import is_database, read_database
from sfumato.tables.file_options import NOTHING_STATED, FileOptions
from sfumato.tables.filesystem import is_file, is_folder, is_remote
from sfumato.tables.formats import BATCH, TableReader
from sfumato.tables.formats.columnar import without_views
from sfumato.tables.lake import is_lake, read_lake
from sfumato.tables.partitioned import Part, parts_of, parts_of_file, rows_of
from sfumato.tables.readers import TableFile, brief, read_file, read_opened, with_types

RESERVED = "sfumato."
"""The start of the names of columns that carry row numbers and sort keys while a copy is made."""


@dataclass(frozen=True)
class Source:
    """A table that can be read more than once."""

    schema: pa.Schema
    rows: int | None
    _open: Callable[[list[str]], Iterable[pa.RecordBatch]]
    path: Path | None = None
    """The path of a file or a folder on this machine."""
    uri: str = ""
    """The path or URL of a file or a folder anywhere."""
    parts: tuple[Part, ...] = ()
    """The files of a partitioned table."""
    start: int = 0
    """The number of the first row; the files of a partitioned table have ranges far from each other."""

    @classmethod
    def of(cls, table: Any, schema: pa.Schema | None = None, options: FileOptions = NOTHING_STATED) -> Source:
        """A source from a path, a `TableFile`, or anything with `__arrow_c_stream__` (pyarrow, pandas, polars, ...).

        A path may be a folder of files, nested or not, either may be a URL that fsspec knows, or the URL of a table in
        a database. A schema gives the
        types of a text file, which has none of its own; options state what the content of a file does not tell.
        """
        if isinstance(table, Source):
            return table
        if isinstance(table, Part):
            return cls._read(table.reader(), table.uri, start=table.start)
        source = cls._opened(table, schema, options)
        repeated = [name for name, times in Counter(source.schema.names).items() if times > 1]
        if repeated:
            raise SourceError(f"column names must be distinct, and {repeated[0]!r} occurs more than once; rename one")
        reserved = [name for name in source.schema.names if name.startswith(RESERVED)]
        if reserved:
            raise SourceError(f"column names must not start with {RESERVED!r}, and {reserved[0]!r} does; rename it")
        return source

    @classmethod
    def _opened(cls, table: Any, schema: pa.Schema | None, options: FileOptions) -> Source:
        """The source before its columns are checked."""
        if is_database(table) or is_lake(table):
            read = read_database(table) if is_database(table) else read_lake(table)
            return cls._read(read if schema is None else with_types(read, schema))
        if isinstance(table, TableFile):
            return cls._read(read_opened(table, schema, options))
        if not isinstance(table, str | Path):
            return cls._read(_memory(table))
        parts = parts_of(table, schema, options) if is_folder(table) else ()
        return cls._read(_chained(parts) if parts else read_file(table, schema, options), table, parts)

    def by_row_groups(self) -> Source:
        """This Parquet file as a table in parts, to be shared out; any other table as it is."""
        if not self.uri or self.parts or not is_file(self.uri):
            return self
        parts = parts_of_file(self.uri if is_remote(self.uri) else str(Path(self.uri).absolute()))
        return Source._read(_chained(parts), self.uri, parts) if parts else self

    @classmethod
    def _read(cls, read: TableReader, uri: str | Path = "", parts: tuple[Part, ...] = (), start: int = 0) -> Source:
        path = None if is_remote(uri) or not str(uri) else Path(uri)
        return cls(read.schema, read.rows, read.batches, path, str(uri), parts, start)

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, in batches of `BATCH`."""
        names = self.schema.names if columns is None else columns
        try:
            yield from rebatched(self._open(names))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise SourceError(f"{self.uri or 'the table'} could not be read to its end: {brief(error)}") from None

    def extended(self, more: Source) -> Source:
        """This table with the rows of another one, which has the same columns, after its own."""
        rows = None if self.rows is None or more.rows is None else self.rows + more.rows

        def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
            schema = pa.schema([self.schema.field(name) for name in names])
            return (batch.cast(schema) for batch in chain(self.batches(names), more.batches(names)))

        return Source(self.schema, rows, batches)

    def after(self, row: int) -> Source:
        """The rows after so many, with their numbers."""

        def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
            left = row
            for batch in self.batches(names):
                if batch.num_rows > left:
                    yield batch.slice(left)
                left = max(left - batch.num_rows, 0)

        rows = None if self.rows is None else max(self.rows - row, 0)
        return Source(self.schema, rows, batches, start=self.start + row)

    def starting_at(self, row: int) -> Source:
        """These rows with the numbers that they have after so many others."""
        return Source(self.schema, self.rows, self.batches, start=row)

    def numbered_batches(
        self, columns: list[str]
    ) -> Iterator[tuple[np.ndarray[Any, np.dtype[np.uint64]], pa.RecordBatch]]:
        """The rows in order, with the number of each row: the id of a record that has no other."""
        for source in [Source.of(part) for part in self.parts] or [self]:
            first = np.uint64(source.start)
            for batch in source.batches(columns):
                yield first + np.arange(batch.num_rows, dtype=np.uint64), batch
                first = np.uint64((int(first) + batch.num_rows) % 2**64)


def _memory(table: Any) -> TableReader:
    """A table in memory."""
    if not hasattr(table, "__arrow_c_stream__"):
        raise SourceError(
            f"a table must be a path or have `__arrow_c_stream__` (pyarrow, pandas, polars), got {type(table).__name__}"
        )
    try:
        whole = _plain(table if isinstance(table, pa.Table) else pa.table(table))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SourceError(f"the {type(table).__name__} could not be read as a table: {brief(error)}") from None
    return TableReader(whole.schema, whole.num_rows, lambda names: whole.select(names).to_batches(max_chunksize=BATCH))


def _plain(table: pa.Table) -> pa.Table:
    """The table without the index that pandas adds, and with ordinary strings instead of string views."""
    table = table.select([name for name in table.column_names if not re.fullmatch(r"__index_level_\d+__", name)])
    schema = without_views(table.schema)
    return table.cast(schema) if schema != table.schema else table


def _chained(parts: tuple[Part, ...]) -> TableReader:
    """The files of a partitioned table, one after the other."""

    def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
        return (batch for part in parts for batch in part.reader().batches(names))

    return TableReader(parts[0].schema, rows_of(parts), batches)


def rebatched(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `BATCH`."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        while rows >= BATCH:
            joined = pending[0] if len(pending) == 1 else pa.concat_batches(pending)
            yield joined.slice(0, BATCH)
            rest = joined.slice(BATCH)
            pending, rows = ([rest] if rest.num_rows else []), rest.num_rows
    if rows:
        yield pending[0] if len(pending) == 1 else pa.concat_batches(pending)
