"""The database of the ledger: SQLite in the vault's folder, or PostgreSQL by URL.

This module has its connections and transactions, and translates the errors of the drivers.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from sfumato.errors import Unavailable, VaultError, install_hint
from sfumato.ledger.connection import Connection, driver_errors
from sfumato.ledger.migrations import EARLIER, REVISION, migrate, revision

FILE = "ledger.sqlite"
_TIMEOUT = 60
"""Seconds to wait for other writers."""
_CREATION_LOCK = 7_363_061
"""The number of the advisory lock under which the tables of a vault are created or migrated in PostgreSQL."""
_IDLE, _MOST = 16, 64
"""Connections that a service keeps open, and has at most."""
_SCHEMES = ("postgresql", "postgresql+psycopg", "postgres")
_URL = re.compile(
    r"(?P<scheme>[\w+]+)://(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:(?:\[(?P<ipv6>[^/?]+)\]|(?P<host>[^/:?]+))?(?::(?P<port>[^/?]*))?)?"
    r"(?:/(?P<name>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
"""The URL of a database; the password ends at the first @."""


def is_url(location: str | Path) -> bool:
    """Whether the location of a vault is the URL of a database, not a folder."""
    return "://" in str(location)


class Database:
    """The database of a ledger. A connection lives as long as its transaction, unless connections are pooled."""

    def __init__(self, location: str | Path, *, pooled: bool = False) -> None:
        self.is_file = not is_url(location)
        self.parameters = {} if self.is_file else _postgresql(str(location))
        self._path = str(Path(location) / FILE)
        self.name = str(location) if self.is_file else _without_secrets(self.parameters)
        self._idle: list[Any] | None = [] if pooled else None
        self._free = threading.BoundedSemaphore(_MOST)
        if self._idle is not None:
            weakref.finalize(self, _close_all, self._idle, os.getpid()).atexit = False

    @contextlib.contextmanager
    def transaction(self, *, writes: bool, snapshot: bool = False) -> Iterator[Connection]:
        """An atomic transaction; one that writes waits until no other transaction writes.

        Args:
            snapshot: read the database as it is now until the transaction ends, whatever others write.

        """
        begin = "BEGIN"
        if self.is_file:  # where every transaction reads a snapshot
            begin = "BEGIN IMMEDIATE" if writes else begin
        elif snapshot:
            begin = "BEGIN ISOLATION LEVEL REPEATABLE READ"
        with self._translated(), self.driver() as driver:
            driver.execute(begin)
            try:
                yield Connection(driver, is_file=self.is_file)
                self._commit(driver)
            except BaseException:
                with contextlib.suppress(Exception):  # the connection may be lost, and the transaction with it
                    driver.execute("ROLLBACK")
                raise

    def _commit(self, driver: Any) -> None:
        driver.execute("COMMIT")

    @contextlib.contextmanager
    def driver(self) -> Iterator[Any]:
        """A connection of the driver, which begins and ends no transaction by itself."""
        if not self._free.acquire(timeout=_TIMEOUT):
            raise Unavailable(f"the ledger in {self.name} is busy: {_MOST} connections are in use; try again later")
        try:
            driver = self._idle_driver() or self._connected()
            try:
                yield driver
            except BaseException:
                driver.close()  # something may still read from it, such as a stream in a traceback
                raise
            self._put_back(driver)
        finally:
            self._free.release()

    def _idle_driver(self) -> Any:
        """A connection from the pool that still works; none if there is none."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread took the last one
                driver = self._idle.pop()
                if self.is_file:
                    return driver
                with contextlib.suppress(Exception):  # the server was restarted
                    driver.execute("SELECT 1")
                    return driver
                driver.close()
        return None

    def _connected(self) -> Any:
        if not self.is_file:
            import psycopg

            return psycopg.connect(**self.parameters, autocommit=True)  # type: ignore[arg-type]
        driver = sqlite3.connect(
            self._path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=self._idle is None
        )
        driver.execute("PRAGMA foreign_keys = ON")
        driver.execute("PRAGMA synchronous = FULL")
        driver.execute("PRAGMA secure_delete = ON")  # what is deleted, such as a key, is overwritten
        return driver

    def _put_back(self, driver: Any) -> None:
        """Keep a connection for the next transaction, if it is sound and the pool has room; else close it."""
        sound = not driver.in_transaction if self.is_file else driver.info.transaction_status == 0 and not driver.closed
        if self._idle is not None and len(self._idle) < _IDLE and sound:
            self._idle.append(driver)
        else:
            driver.close()

    @contextlib.contextmanager
    def creation(self) -> Iterator[Connection]:
        """A transaction that creates the tables; what is written in it appears together with them or not at all."""
        if self.is_file:
            self._use_write_ahead_log()
        with self.transaction(writes=True) as connection:
            connection.wait_for(_CREATION_LOCK)
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
        with self._translated(), self.driver() as driver:
            driver.execute("PRAGMA journal_mode = WAL")

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
            connection.wait_for(_CREATION_LOCK)
            migrate(connection)
            return revision(connection)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Raises the errors of a driver as one sentence, without passwords or the values of a statement."""
        try:
            yield
        except driver_errors("DataError") as error:  # the values are at fault, not the ledger
            raise VaultError(
                f"all values must fit the ledger, and one does not: {_first_line(error)}; change it"
            ) from None
        except driver_errors("Error") as error:
            raise Unavailable(
                f"the ledger in {self.name} could not be used: {_first_line(error)}; the unfinished transaction was "
                "rolled back, so fix the cause and run the same command again"
            ) from None


def _close_all(idle: list[Any], process: int) -> None:
    """Close the connections of a pool; those of another process, which a fork has inherited, are left to it."""
    while idle and os.getpid() == process:
        idle.pop().close()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "the connection was lost"


def _postgresql(location: str) -> dict[str, str]:
    """The parameters of a connection to PostgreSQL, from a URL whose password may have any characters but @."""
    found = _URL.fullmatch(location)
    if found is None or found["scheme"] not in _SCHEMES:
        raise VaultError("a vault must be a folder or a database such as postgresql://user@host/name, got another URL")
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise VaultError(f"a vault on PostgreSQL needs its driver; {install_hint('postgres')}") from None
    return _parameters(found.groupdict(default=""))


def _parameters(part: Mapping[str, str]) -> dict[str, str]:
    """The parameters that the parts of a URL state; several hosts are repeated in its query."""
    options = parse_qsl(part["query"], keep_blank_values=True)
    hosts = [value.partition(":") for name, value in options if name == "host"]
    ports = [port for _, _, port in hosts]
    stated = {
        "user": unquote(part["user"]),
        "password": unquote(part["password"]),
        "dbname": part["name"],
        "host": part["ipv6"] or part["host"] or ",".join(host for host, _, _ in hosts),
        "port": part["port"] or (",".join(ports) if any(ports) else ""),
    }
    further = {name: value for name, value in options if name != "host"}
    return {name: value for name, value in {**stated, **further}.items() if value}


def _without_secrets(parameters: Mapping[str, str]) -> str:
    """The URL of a database for messages, put together from what is no password."""
    user, host, port, name = (parameters.get(part, "") for part in ("user", "host", "port", "dbname"))
    shown = user + (":***" if "password" in parameters else "")
    of_host = not host.startswith("/") and "," not in host  # a folder of sockets, or several hosts, are options
    address = (f"[{host}]" if ":" in host else host) + (port and f":{port}") if of_host else ""
    rest = {**({} if of_host else {"host": host, "port": port}), **parameters}
    known = ("user", "password", "dbname", *(("host", "port") if of_host else ()))
    options = {one: "***" if "pass" in one else value for one, value in rest.items() if one not in known and value}
    query = urlencode(options, safe="/*,")
    return f"postgresql://{shown}{shown and '@'}{address}/{name}{query and f'?{query}'}"
