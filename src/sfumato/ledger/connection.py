"""Statements on a connection to the ledger's database, the same for SQLite and PostgreSQL.

Values are named parameters (`:name`), never part of a statement's text; a list becomes `(:name_0, :name_1)`. Only what
the two databases spell differently is here: parameters, locks and the list of tables.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import sqlite3
import sys
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sfumato.errors import TamperedError, VaultError

Row = Any
"""A named tuple with the columns of a statement."""

_PARAMETER = re.compile(r":(\w+)")
_PAGE = 5_000
_STREAMS = itertools.count()


class Connection:
    """A transaction on a connection of a driver."""

    def __init__(self, driver: Any, *, is_file: bool) -> None:
        self.driver, self.is_file = driver, is_file

    def all(self, statement: str, **values: object) -> list[Row]:
        """All rows of a query."""
        cursor = self.execute(statement, values)
        return list(map(_row_type(cursor)._make, cursor.fetchall()))

    def one(self, statement: str, **values: object) -> Row | None:
        """The only row of a query, if there is one."""
        rows = self.all(statement, **values)
        if len(rows) > 1:
            raise TamperedError("a table of the ledger has more rows than the vault wrote; restore a backup")
        return rows[0] if rows else None

    def value(self, statement: str, **values: object) -> Any:
        """The first value of a query, if it has a row."""
        row = self.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def values(self, statement: str, **values: object) -> list[Any]:
        """The first column of a query."""
        return [row[0] for row in self.execute(statement, values).fetchall()]

    def stream(self, statement: str, **values: object) -> Iterator[Row]:
        """The rows of a query, read page by page."""
        text, parameters = self._prepared(statement, values)
        name = {} if self.is_file else {"name": f"sfumato_{next(_STREAMS)}"}  # one with a name stays on the server
        cursor = self.driver.cursor(**name)
        try:
            cursor.execute(text, parameters)
            make = _row_type(cursor)._make
            while rows := cursor.fetchmany(_PAGE):
                yield from map(make, rows)
        finally:
            with contextlib.suppress(*driver_errors("Error")):  # the connection may be closed already
                cursor.close()

    def insert(self, table: str, *rows: Mapping[str, object]) -> None:
        """Add rows to a table, which all have the same columns."""
        names = list(rows[0])
        columns, slots = ", ".join(map(_quoted, names)), ", ".join(f":{name}" for name in names)
        for row in rows:
            refuse_null_characters(row.values())
            if any(isinstance(value, list | dict) for value in row.values()):
                raise ValueError(f"all values of {table} must be single ones, and one is not")
            if list(row) != names or not names:
                raise ValueError(f"all rows of {table} must have the columns {names}, and one has {list(row)}")
        text, _ = self._prepared(f"INSERT INTO {table} ({columns}) VALUES ({slots})", rows[0])  # noqa: S608
        self.driver.cursor().executemany(text, [dict(row) for row in rows])

    def update(self, table: str, changes: Mapping[str, object], **where: object) -> int:
        """Change the rows whose columns have these values (or one of a list); the number of them."""
        changed = ", ".join(f"{_quoted(name)} = :new_{name}" for name in changes)
        new = {f"new_{name}": value for name, value in changes.items()}
        return self.run(f"UPDATE {table} SET {changed}{_where(where)}", **new, **where)  # noqa: S608 - our own names

    def delete(self, table: str, **where: object) -> int:
        """Delete the rows whose columns have these values (or one of a list); the number of them."""
        return self.run(f"DELETE FROM {table}{_where(where)}", **where)  # noqa: S608 - our own names

    def run(self, statement: str, **values: object) -> int:
        """Run a statement; the number of rows that it changed."""
        return int(self.execute(statement, values).rowcount)

    def execute(self, statement: str, values: Mapping[str, object]) -> Any:
        """Run a statement; the driver's cursor."""
        return self.driver.execute(*self._prepared(statement, values))

    def define(self, statements: Iterable[str]) -> None:
        """Create tables and the like, as SQLite spells it."""
        for statement in statements:
            self.driver.execute(statement if self.is_file else statement.replace(" WITHOUT ROWID", ""))

    def columns(self, table: str) -> set[str]:
        """The names of the columns of a table."""
        return {column[0] for column in self.execute(f"SELECT * FROM {table} LIMIT 0", {}).description}  # noqa: S608

    def tables(self) -> set[str]:
        """The names of all tables."""
        names = "SELECT name FROM sqlite_master WHERE type = 'table'"
        if not self.is_file:
            names = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)"
        return set(self.values(names))

    def wait_for_writers(self) -> None:
        """Wait until no other transaction writes to the vault; in SQLite, it has done so when it began."""
        if not self.is_file:
            self.driver.execute("SELECT id FROM sfumato_vault FOR UPDATE")

    def wait_for(self, number: int) -> None:
        """Wait until no other transaction holds this number; SQLite has a single writer anyway."""
        if not self.is_file:
            self.value("SELECT pg_advisory_xact_lock(:number)", number=number)

    def _prepared(self, statement: str, values: Mapping[str, object]) -> tuple[str, dict[str, object]]:
        """A statement and its parameters, as the driver expects them."""
        given: dict[str, object] = {}
        for name, value in values.items():
            if isinstance(value, list):
                given |= {f"{name}_{position}": one for position, one in enumerate(value)}
                slots = ", ".join(f":{name}_{position}" for position in range(len(value))) or "NULL"
                statement = re.sub(rf":{name}\b", f"({slots})", statement)
            else:
                given[name] = value
        refuse_null_characters(given.values())
        if self.is_file:
            return statement, given
        return _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%")), given


def driver_errors(*names: str) -> tuple[type[Exception], ...]:
    """Classes of errors of the drivers that were imported."""
    drivers = [sqlite3, *([sys.modules["psycopg"]] if "psycopg" in sys.modules else [])]
    return tuple(getattr(driver, name) for driver in drivers for name in names)


def refuse_null_characters(values: Iterable[object]) -> None:
    """Refuse text that PostgreSQL cannot store, in SQLite and in encrypted texts too."""
    if any(isinstance(value, str) and "\0" in value for value in values):
        raise VaultError("names and texts must have no null characters, and one has; remove it")


def _where(conditions: Mapping[str, object]) -> str:
    if not conditions:
        return ""
    tests = (
        f"{_quoted(name)} {'IN' if isinstance(value, list) else '='} :{name}" for name, value in conditions.items()
    )
    return " WHERE " + " AND ".join(tests)


def _quoted(name: str) -> str:
    """A column, some of which are words of SQL; names come from a backup too, and nothing else may be in them."""
    if not name.isidentifier():
        raise ValueError(f"a column must be a name, and {name!r} is not")
    return f'"{name}"'


def _row_type(cursor: Any) -> Any:
    return _named(tuple(column[0] for column in cursor.description))


@functools.cache
def _named(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names)
