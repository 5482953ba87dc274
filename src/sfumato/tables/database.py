"""Tables in databases: PostgreSQL, SQLite and DuckDB through ADBC, as `postgresql://host/clinic?table=patients`.

A table is read once, by one statement, which sees one snapshot, and kept in an encrypted temporary file for all passes;
memory stays constant. A copy is written in one transaction, and its manifest into the table `sfumato_manifests`.
"""

from __future__ import annotations

import contextlib
import uuid
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.ipc
from pyarrow import types

from sfumato.errors import SourceError, install_hint
from sfumato.keys.encrypted_file import Spill
from sfumato.tables.formats import TableReader

_SCHEMES = ("postgresql", "postgres", "sqlite", "duckdb")

ROW = "sfumato_row"
"""The column of a copy that numbers its rows: a database has no order of its own."""

MANIFESTS = "sfumato_manifests"
"""The table with the manifests of copies."""


@dataclass(frozen=True)
class DatabaseTable:
    """The address of a table in a database."""

    scheme: str
    location: str
    """What the driver connects to: a URL, or the path of a file; it may hold a password."""
    name: str

    @classmethod
    def of(cls, uri: str) -> DatabaseTable:
        """The table that a URL names."""
        parts = urlsplit(uri)
        query = dict(parse_qsl(parts.query))
        name = query.pop("table", "")
        if not name:
            raise SourceError(
                f"the URL of a database must name a table, as in ...?table=patients, got {without_password(uri)!r}"
            )
        if parts.scheme.startswith("postgres"):
            return cls(parts.scheme, urlunsplit(parts._replace(query=urlencode(query))), name)
        path = f"{parts.netloc}{parts.path}"
        return cls(parts.scheme, path.removeprefix("/"), name)

    @property
    def quoted(self) -> str:
        """The name for SQL: each part of `schema.table` in quotes."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in self.name.split("."))

    def columns(self) -> list[str]:
        """The names of its columns; none if there is no such table."""
        with contextlib.suppress(SourceError), self.cursor() as cursor:
            return self.columns_by(cursor)
        return []

    def columns_by(self, cursor: Any) -> list[str]:
        """The names of its columns, by a cursor."""
        cursor.execute(f"SELECT * FROM {self.quoted} WHERE 1 = 0")  # noqa: S608 - the name is quoted
        return list(cursor.fetch_record_batch().schema.names)

    @contextlib.contextmanager
    def cursor(self) -> Iterator[Any]:
        """A cursor in a transaction, which is committed at the end and undone after an error."""
        try:
            driver = _driver(self.scheme)
        except ImportError:
            raise SourceError(f"{self.scheme} tables need an ADBC driver; {install_hint('database')}") from None
        if not self.scheme.startswith("postgres") and not Path(self.location).parent.is_dir():
            raise SourceError(f"the file of a database must be in a folder that exists, got {self.location!r}")
        try:
            with driver.connect(self.location) as connection, connection.cursor() as cursor:
                yield cursor
                connection.commit()
        except driver.Error as error:
            raise SourceError(f"the database could not do it: {_brief(error)}") from None


def _driver(scheme: str) -> Any:
    """The ADBC driver of a kind of database."""
    if scheme == "sqlite":
        from adbc_driver_sqlite import dbapi as sqlite  # noqa: PLC0415 - an extra

        return sqlite
    if scheme == "duckdb":
        from adbc_driver_duckdb import dbapi as duckdb  # noqa: PLC0415

        return duckdb
    from adbc_driver_postgresql import dbapi as postgresql  # noqa: PLC0415

    return postgresql


def without_password(uri: str) -> str:
    """A URL as it may be printed."""
    parts = urlsplit(uri)
    user, at, host = parts.netloc.rpartition("@")
    query = "&".join(one for one in parts.query.split("&") if "password" not in one.partition("=")[0].lower())
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=query))


def is_database(table: Any) -> bool:
    """Whether this is the URL of a table in a database."""
    return isinstance(table, str) and table.partition("://")[0] in _SCHEMES


def read_database(uri: str) -> TableReader:
    """A table in a database, as it was in one moment."""
    address, spill = DatabaseTable.of(uri), Spill()
    try:
        schema, rows = _kept(address, spill)
    except BaseException:
        spill.close()
        raise

    def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
        with pyarrow.ipc.open_stream(pa.PythonFile(spill.another_reader(), mode="r")) as stream:
            for batch in stream:
                yield batch.select(names)

    weakref.finalize(batches, spill.close)
    return TableReader(schema, rows, batches)


def _kept(address: DatabaseTable, spill: Spill) -> tuple[pa.Schema, int]:
    """Read all rows into a temporary file."""
    rows = 0
    with address.cursor() as cursor:
        reader = _selected(address, cursor)
        schema = pa.schema([pa.field(field.name, _plain(field)) for field in reader.schema if field.name != ROW])
        with pyarrow.ipc.new_stream(spill.writer, schema) as kept:
            for batch in reader:
                columns = [_converted(batch.column(field.name), field.type) for field in schema]
                kept.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                rows += batch.num_rows
    return schema, rows


def _selected(address: DatabaseTable, cursor: Any) -> Any:
    """All rows by one statement; those of a copy in their order."""
    order = f' ORDER BY "{ROW}"' if ROW in address.columns_by(cursor) else ""
    cursor.execute(f"SELECT * FROM {address.quoted}{order}")  # noqa: S608
    return cursor.fetch_record_batch()


def read_manifest(uri: str) -> str | None:
    """The manifest of a copy in a database."""
    address = DatabaseTable.of(uri)
    with contextlib.suppress(SourceError), address.cursor() as cursor:
        cursor.execute(f'SELECT "manifest" FROM {MANIFESTS} WHERE "copy" = {_literal(address.name)}')  # noqa: S608
        found = cursor.fetchone()
        return None if found is None else str(found[0])
    return None


def write_manifest(address: DatabaseTable, cursor: Any, manifest: str) -> None:
    """Keep the manifest of a copy, in the transaction of its rows."""
    cursor.execute(f'CREATE TABLE IF NOT EXISTS {MANIFESTS} ("copy" VARCHAR, "manifest" VARCHAR)')
    cursor.execute(f'DELETE FROM {MANIFESTS} WHERE "copy" = {_literal(address.name)}')  # noqa: S608
    values = f"{_literal(address.name)}, {_literal(manifest)}"
    cursor.execute(f"INSERT INTO {MANIFESTS} VALUES ({values})")  # noqa: S608 - both are quoted


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _plain(field: pa.Field) -> pa.DataType:
    """The Arrow type of a column: PostgreSQL's exact numbers have no type of Arrow's own."""
    kind = field.type
    if not isinstance(kind, pa.BaseExtensionType):
        return kind.value_type if types.is_dictionary(kind) else kind
    about = field.metadata or {}
    if about.get(b"POSTGRESQL:type") == b"numeric":
        modifier = int(about.get(b"POSTGRESQL:typmod", b"-1"))
        digits, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0xFFFF
        return pa.float64() if modifier < 0 or digits > 38 else pa.decimal128(digits, scale)
    return pa.string()


def _converted(array: Any, kind: pa.DataType) -> Any:
    if not isinstance(array.type, pa.BaseExtensionType):
        return array.cast(kind)
    if types.is_fixed_size_binary(array.storage.type):  # a UUID
        values = [None if value is None else str(uuid.UUID(bytes=value)) for value in array.storage.to_pylist()]
        return pa.array(values, pa.string())
    return array.storage.cast(kind)


def _brief(error: Exception) -> str:
    """The first line of a driver's error, without the address of the database."""
    return str(error).splitlines()[0].partition("://")[0] if str(error) else type(error).__name__
