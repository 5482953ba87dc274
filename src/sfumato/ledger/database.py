"""The database of the ledger: SQLite in the vault's folder, or PostgreSQL by URL.

This module has its transactions and migrations, and translates the errors of the drivers.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from sfumato.errors import Unavailable, VaultError, install_hint
from sfumato.ledger.tables import EARLIER, REVISION, VERSIONS

FILE = "ledger.sqlite"
_TIMEOUT = 60
"""Seconds to wait for other writers."""
_CREATION_LOCK = 7_363_061
"""The number of the advisory lock under which the tables of a vault are created or migrated in PostgreSQL."""


def is_url(location: str | Path) -> bool:
    """Whether the location of a vault is the URL of a database, not a folder."""
    return "://" in str(location)


class Database:
    """The database of a ledger. A connection lives as long as its transaction, unless connections are pooled."""

    def __init__(self, location: str | Path, *, pooled: bool = False) -> None:
        url = _url(location)
        self.name = _without_secrets(url) if is_url(location) else str(location)
        self.is_file = url.get_backend_name() == "sqlite"
        if self.is_file:
            self.engine = _sqlite(url, pooled=pooled)
        else:
            self.engine = sa.create_engine(url, **_pool(pooled=pooled), pool_pre_ping=pooled)
        event.listen(self.engine, "before_cursor_execute", _check_parameters)

    @contextlib.contextmanager
    def transaction(self, *, writes: bool, snapshot: bool = False) -> Iterator[Connection]:
        """An atomic transaction; one that writes waits until no other transaction writes.

        Args:
            snapshot: read the database as it is now until the transaction ends, whatever others write.

        """
        options: dict[str, Any] = {"sfumato_writes": writes}
        if snapshot and not self.is_file:  # in SQLite every transaction does
            options["isolation_level"] = "REPEATABLE READ"
        with self._translated(), self.engine.connect() as connection:
            connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def creation(self) -> Iterator[Connection]:
        """A transaction that creates the tables; what is written in it appears together with them or not at all."""
        if self.is_file:
            self._use_write_ahead_log()
        with self.transaction(writes=True) as connection:
            if not self.is_file:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
            self._refuse_existing_vault(connection)
            migrate(connection)
            yield connection

    def check_empty(self) -> None:
        """Refuse a database that holds a vault."""
        with self.transaction(writes=False) as connection:
            self._refuse_existing_vault(connection)

    def _refuse_existing_vault(self, connection: Connection) -> None:
        if revision(connection) is not None:
            raise VaultError(f"there is a vault in {self.name} already; open it, or choose another location")

    def _use_write_ahead_log(self) -> None:
        """Let readers and a writer work at the same time; SQLite keeps this setting in the file."""
        with self._translated(), contextlib.closing(self.engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA journal_mode = WAL")

    def check(self) -> None:
        """Refuse a database that holds no vault, or one of an unknown schema; migrate one of an earlier schema."""
        with self.transaction(writes=False) as connection:
            found = revision(connection)
        if found in EARLIER:
            found = self._migrated()
        if found is None:
            raise VaultError(f"there is no vault in {self.name}; create one with `sfumato init`")
        if found != REVISION:
            raise VaultError(
                f"the vault in {self.name} has the schema {found}, and this version of sfumato needs {REVISION}; "
                "use the version that created it"
            )

    def _migrated(self) -> str | None:
        """Migrate the tables of an earlier version, which can then no longer use them, and return the revision."""
        with self.transaction(writes=True) as connection:
            if not self.is_file:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
            migrate(connection)
            return revision(connection)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Raises the errors of a driver as one sentence, without passwords or the values of a statement."""
        try:
            yield
        except DataError as error:  # the values are at fault, not the ledger
            reason = str(error.orig).strip().splitlines()[0]
            raise VaultError(f"all values must fit the ledger, and one does not: {reason}; change it") from None
        except (DBAPIError, sqlite3.Error) as error:
            message = str(error.orig if isinstance(error, DBAPIError) else error).strip()
            reason = message.splitlines()[0] if message else "the connection was lost"
            raise Unavailable(
                f"the ledger in {self.name} could not be used: {reason}; the unfinished transaction was rolled back, "
                "so fix the cause and run the same command again"
            ) from None
        except SQLAlchemyError as error:
            raise Unavailable(f"the ledger in {self.name} could not be used: {type(error).__name__}") from None


def revision(connection: Connection) -> str | None:
    """The revision of the schema; `None` where there is no schema."""
    if not sa.inspect(connection).has_table(VERSIONS):
        return None
    found: str | None = connection.execute(sa.text(f"SELECT version_num FROM {VERSIONS}")).scalar()  # noqa: S608
    return found


def migrate(connection: Connection, to: str = "head") -> None:
    """Migrate the tables to a revision, within the transaction of the connection."""
    from alembic import command  # noqa: PLC0415 - it is slow to import, and only this needs it
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    (command.downgrade if to == "base" else command.upgrade)(config, to)


def _url(location: str | Path) -> URL:
    if not is_url(location):
        return URL.create("sqlite+pysqlite", database=str(Path(location) / FILE))
    try:
        url = make_url(str(location))
    except (ArgumentError, ValueError):
        url = URL.create("none")
    if url.drivername not in ("postgresql", "postgresql+psycopg", "postgres"):
        raise VaultError("a vault must be a folder or a database such as postgresql://user@host/name, got another URL")
    with contextlib.suppress(ImportError):
        import psycopg  # noqa: F401, PLC0415 - an extra

        return url.set(drivername="postgresql+psycopg")
    raise VaultError(f"a vault on PostgreSQL needs its driver; {install_hint('postgres')}")


def _without_secrets(url: URL) -> str:
    """The URL of a database for messages, without the passwords in it."""
    hidden = {name: "***" for name in url.query if "pass" in name}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def _check_parameters(_: Connection, __: Any, ___: str, parameters: Any, *____: Any) -> None:
    for row in parameters if isinstance(parameters, list) else [parameters]:
        refuse_null_characters(row.values() if isinstance(row, dict) else row)


def refuse_null_characters(values: Iterable[object]) -> None:
    """Refuse text that PostgreSQL cannot store, in SQLite and in encrypted texts too."""
    if any(isinstance(value, str) and "\0" in value for value in values):
        raise VaultError("names and texts must have no null characters, and one has; remove it")


def _pool(*, pooled: bool) -> dict[str, Any]:
    """Options of the connection pool: none need closing without one, and a service's threads need connections ready."""
    return {"poolclass": QueuePool, "pool_size": 16, "max_overflow": 48} if pooled else {"poolclass": NullPool}


def _sqlite(url: URL, *, pooled: bool) -> Engine:
    """An engine for SQLite that begins transactions explicitly: the driver would begin them late."""
    arguments = {"timeout": _TIMEOUT, "check_same_thread": not pooled}
    engine = sa.create_engine(url, connect_args=arguments, **_pool(pooled=pooled))

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted, such as a key, is overwritten

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("sfumato_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
