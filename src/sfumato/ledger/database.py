"""The database: SQLite in a vault's folder, or PostgreSQL by URL. Transactions, migrations, and one kind of error."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from sfumato.errors import Unavailable, VaultError
from sfumato.ledger.tables import REVISION, VERSIONS

FILE = "ledger.sqlite"
_PATIENCE = 60
"""Seconds to wait for other writers."""
_CREATING = 7_363_061
"""The number of the lock under which a vault is made in PostgreSQL."""


def is_url(location: str | Path) -> bool:
    """Whether a vault's location is a database, not a folder."""
    return "://" in str(location)


class Database:
    """Where a ledger lies. A connection lives as long as its transaction, unless they are pooled."""

    def __init__(self, location: str | Path, *, pooled: bool = False) -> None:
        url = _url(location)
        self.name = url.render_as_string(hide_password=True) if is_url(location) else str(location)
        self.is_file = url.get_backend_name() == "sqlite"
        if self.is_file:
            self.engine = _sqlite(url, pooled=pooled)
        else:
            self.engine = sa.create_engine(url, **_pool(pooled=pooled), pool_pre_ping=pooled)

    @contextlib.contextmanager
    def transaction(self, *, writes: bool, snapshot: bool = False) -> Iterator[Connection]:
        """A transaction that takes effect as a whole or not at all; a writing one waits for its turn.

        Args:
            snapshot: see the database as it is now until the end, whatever others write.

        """
        options: dict[str, Any] = {"sfumato_writes": writes}
        if snapshot and not self.is_file:  # where it is what a transaction does anyway
            options["isolation_level"] = "REPEATABLE READ"
        with self._translated(), self.engine.connect() as connection:
            connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def creation(self) -> Iterator[Connection]:
        """A transaction that builds the tables; whatever it adds appears with them or not at all."""
        if self.is_file:
            self._write_ahead()
        with self.transaction(writes=True) as connection:
            if not self.is_file:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATING)))
            self._refuse_a_vault(connection)
            migrate(connection)
            yield connection

    def check_empty(self) -> None:
        """Refuse a database that holds a vault."""
        with self.transaction(writes=False) as connection:
            self._refuse_a_vault(connection)

    def _refuse_a_vault(self, connection: Connection) -> None:
        if revision(connection) is not None:
            raise VaultError(f"there is a vault in {self.name} already; open it, or choose another place")

    def _write_ahead(self) -> None:
        """Let readers and a writer work at once; SQLite remembers it in the file."""
        with self._translated(), contextlib.closing(self.engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA journal_mode = WAL")

    def check(self) -> None:
        """Refuse a database that holds no vault, or one of another schema."""
        with self.transaction(writes=False) as connection:
            found = revision(connection)
        if found is None:
            raise VaultError(f"there is no vault in {self.name}; make one with `sfumato init`")
        if found != REVISION:
            raise VaultError(
                f"the vault in {self.name} has the schema {found}, and this version of sfumato works with {REVISION}; "
                "use the version that made it"
            )

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """A driver's errors as one sentence, without a password or a statement's values."""
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
            reason = said.splitlines()[0] if said else "the connection was lost"
            raise Unavailable(
                f"the ledger in {self.name} could not be used: {reason}; what was not finished is undone, so see to "
                "it and run the same command again"
            ) from None
        except SQLAlchemyError as error:
            raise Unavailable(f"the ledger in {self.name} could not be used: {type(error).__name__}") from None


def revision(connection: Connection) -> str | None:
    """The revision of the schema, if there is one."""
    if not sa.inspect(connection).has_table(VERSIONS):
        return None
    found: str | None = connection.execute(sa.text(f"SELECT version_num FROM {VERSIONS}")).scalar()  # noqa: S608
    return found


def migrate(connection: Connection, to: str = "head") -> None:
    """Bring the tables to a revision, within the connection's transaction."""
    from alembic import command  # noqa: PLC0415 - it takes long to import, and only this needs it
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
    raise VaultError("a vault on PostgreSQL needs its driver; run `pip install 'sfumato[postgres]'`")


def _pool(*, pooled: bool) -> dict[str, Any]:
    """Without a pool nothing has to be closed; with one, each thread of a service finds a connection ready."""
    return {"poolclass": QueuePool, "pool_size": 16, "max_overflow": 48} if pooled else {"poolclass": NullPool}


def _sqlite(url: URL, *, pooled: bool) -> Engine:
    """SQLite with transactions of its own: the driver would begin them late."""
    arguments = {"timeout": _PATIENCE, "check_same_thread": not pooled}
    engine = sa.create_engine(url, connect_args=arguments, **_pool(pooled=pooled))

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("sfumato_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
