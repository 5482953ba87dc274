"""Transactions on the ledger: reading entries and appending them, the only way in which a vault's state changes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sfumato.errors import TamperedError, VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import START, Authenticator, Entry, canonical
from sfumato.ledger.database import Database
from sfumato.ledger.tables import ENTRIES, GENERATIONS, SUBJECTS, VAULT

PAGE = 5_000
"""Entries that are read in one query."""


@dataclass(frozen=True)
class Head:
    """The head of the ledger: the vault's name, its store, its key generation, and the last entry."""

    name: str
    store: str
    generation: int
    entries: int
    head: str
    counts: dict[str, int]
    """The number of subjects of each kind."""
    seal: str

    def expected_seal(self, authenticator: Authenticator, generations: list[Generation]) -> str:
        """The message authentication code that the head must have; it covers the public data of all keys too."""
        public = [[one.number, one.fingerprint, one.public, one.lost] for one in generations]
        return authenticator.mac(
            "head", self.name, self.store, self.generation, self.entries, self.head, self.counts, public
        )


@dataclass(frozen=True)
class Generation:
    """One generation of the master key: its fingerprint, its public key, and the wrapped key itself."""

    number: int
    fingerprint: str
    public: str
    lock: dict[str, Any]
    lost: int = 0
    """1 if the secret that unlocks the key is lost."""


@dataclass(frozen=True)
class Query:
    """A filter for entries."""

    dataset: str | None = None
    recipient: str | None = None
    action: str | None = None
    kind: str | None = None
    since: str | None = None
    until: str | None = None
    last: int | None = None
    before: int | None = None
    """Only entries with smaller numbers."""


class LedgerReader:
    """A transaction that reads; with authenticators, it trusts only entries whose authentication code is right."""

    def __init__(self, connection: Connection, authenticators: Mapping[int, Authenticator] | None = None) -> None:
        self.connection = connection
        self._authenticators = authenticators or {}

    def head(self) -> Head:
        """The head of the ledger."""
        found = self.connection.execute(sa.select(VAULT)).one_or_none()
        if found is None:
            raise TamperedError("the ledger must have a head, and somebody removed it; restore a backup")
        row = found._mapping  # noqa: SLF001 - the public name of the attribute
        return Head(**{**{k: v for k, v in row.items() if k != "id"}, "counts": _json(row["counts"])})

    def generations(self) -> list[Generation]:
        """All generations of the master key, in order."""
        rows = self.connection.execute(sa.select(GENERATIONS).order_by(GENERATIONS.c.number))
        return [Generation(r.number, r.fingerprint, r.public, _json(r.lock), r.lost) for r in rows]

    def latest(self, kind: str, dataset: str = "", recipient: str = "") -> Entry | None:
        """The latest entry about a subject."""
        about = ENTRIES.c.kind == kind, ENTRIES.c.dataset == dataset, ENTRIES.c.recipient == recipient
        query = sa.select(ENTRIES).where(*about).order_by(ENTRIES.c.number.desc()).limit(1)
        row = self.connection.execute(query).one_or_none()
        return None if row is None else self.authenticated(_entry(row))

    def authenticated(self, entry: Entry) -> Entry:
        """The entry itself; raises `TamperedError` if the vault did not write it so, as far as keys are at hand."""
        authenticator = self._authenticators.get(entry.generation)
        if self._authenticators and authenticator is None and not self._is_lost(entry.generation):
            raise TamperedError(
                f"entry {entry.number} of the ledger must be authenticated with one of the vault's keys, and its key "
                "is unknown: somebody else wrote it; run `sfumato verify`, and restore a backup"
            )
        if authenticator is not None:
            before = sa.select(ENTRIES.c.hash).where(ENTRIES.c.number == entry.number - 1)
            previous = self.connection.execute(before).scalar() or START
            if (entry.digest(previous), authenticator.mac(entry.hash)) != (entry.hash, entry.mac):
                raise TamperedError(
                    f"entry {entry.number} of the ledger must have the authentication code of its content, and it was "
                    "altered; run `sfumato verify`, and restore a backup"
                )
        return entry

    def _is_lost(self, generation: int) -> bool:
        """Whether the authenticated head says that a key is lost."""
        head, generations = self.head(), self.generations()
        if head.generation not in self._authenticators:
            return False
        authentic = head.seal == head.expected_seal(self._authenticators[head.generation], generations)
        return authentic and any(one.number == generation and one.lost for one in generations)

    def count(self, kind: str, dataset: str) -> int:
        """The number of subjects of a kind that a dataset has."""
        about = SUBJECTS.c.kind == kind, SUBJECTS.c.dataset == dataset
        return int(self.connection.execute(sa.select(sa.func.count()).where(*about)).scalar_one())

    def current(self, kind: str, *, dataset: str = "", recipient: str = "", first: int | None = None) -> list[Entry]:
        """The latest entry about each subject of a kind, sorted by name; only of one dataset or recipient if given."""
        query = sa.select(ENTRIES).join(SUBJECTS, SUBJECTS.c.entry == ENTRIES.c.number).where(SUBJECTS.c.kind == kind)
        if dataset:
            query = query.where(SUBJECTS.c.dataset == dataset)
        if recipient:
            query = query.where(SUBJECTS.c.recipient == recipient)
        query = query.order_by(SUBJECTS.c.dataset, SUBJECTS.c.recipient).limit(first)
        return [_entry(row) for row in self.connection.execute(query)]

    def entries(self, query: Query) -> list[Entry]:
        """The entries that a query selects, in order."""
        statement = sa.select(ENTRIES)
        for name in ("dataset", "recipient", "action", "kind"):
            value = getattr(query, name)
            statement = statement if value is None else statement.where(ENTRIES.c[name] == value)
        statement = statement if query.since is None else statement.where(ENTRIES.c.at >= query.since)
        statement = statement if query.until is None else statement.where(ENTRIES.c.at < query.until)
        statement = statement if query.before is None else statement.where(ENTRIES.c.number < query.before)
        statement = statement.order_by(ENTRIES.c.number.desc()).limit(query.last)
        return [_entry(row) for row in self.connection.execute(statement)][::-1]

    def history(self) -> Iterator[Entry]:
        """All entries in order, read page by page."""
        after = 0
        while True:
            page = sa.select(ENTRIES).where(ENTRIES.c.number > after).order_by(ENTRIES.c.number).limit(PAGE)
            rows = self.connection.execute(page).all()
            yield from map(_entry, rows)
            if len(rows) < PAGE:
                return
            after = rows[-1].number


class LedgerWriter(LedgerReader):
    """A transaction that writes, with exclusive access until it ends."""

    def __init__(
        self,
        connection: Connection,
        authenticators: Mapping[int, Authenticator],
        clock: Callable[[], datetime],
        actor: str,
    ) -> None:
        super().__init__(connection, dict(authenticators))
        self._clock, self._actor = clock, actor

    def create_head(self, name: str, store: str) -> None:
        """Write the head of a new vault."""
        head = Head(name, store, 1, 0, START, {}, "")
        self.connection.execute(VAULT.insert().values(id=1, **_row(head)))

    def append(self, action: str, kind: str, body: dict[str, Any], *, dataset: str = "", recipient: str = "") -> Entry:
        """Append an entry, and make it the latest one about its subject."""
        head = self.head()
        at = self._clock().astimezone(UTC).isoformat(timespec="microseconds")
        plain = json.loads(canonical(body))
        entry = Entry(head.entries + 1, at, self._actor, action, kind, dataset, recipient, plain, head.generation)
        entry = entry.chained(head.head, self._authenticators[head.generation])
        self.connection.execute(ENTRIES.insert().values({**entry.__dict__, "body": canonical(plain)}))
        subject = {"kind": kind, "dataset": dataset, "recipient": recipient}
        is_subject = sa.and_(*(SUBJECTS.c[name] == value for name, value in subject.items()))
        counts = dict(head.counts)
        if not self.connection.execute(SUBJECTS.update().where(is_subject).values(entry=entry.number)).rowcount:
            self.connection.execute(SUBJECTS.insert().values(**subject, entry=entry.number))
            counts[kind] = counts.get(kind, 0) + 1
        self._write_head(replace(head, entries=entry.number, head=entry.hash, counts=counts))
        return entry

    def save_generation(self, generation: Generation) -> None:
        """Store a generation of the master key, or replace the wrapped key of an existing one."""
        values = {**generation.__dict__, "lock": canonical(generation.lock)}
        is_same = GENERATIONS.c.number == generation.number
        if not self.connection.execute(GENERATIONS.update().where(is_same).values(**values)).rowcount:
            self.connection.execute(GENERATIONS.insert().values(**values))
        self._write_head(self.head())

    def rotate_key(self, generation: int, key: Key) -> None:
        """Authenticate with another generation of the master key from the next entry on."""
        self._authenticators = {**self._authenticators, generation: Authenticator(key)}
        self._write_head(replace(self.head(), generation=generation))

    def set_store(self, store: str) -> None:
        """Record another location of the vault's files."""
        self._write_head(replace(self.head(), store=store))

    def _write_head(self, head: Head) -> None:
        seal = head.expected_seal(self._authenticators[head.generation], self.generations())
        self.connection.execute(VAULT.update().values(**_row(replace(head, seal=seal))))


class Ledger:
    """A ledger in a database, and the actor who writes to it."""

    def __init__(self, database: Database, *, actor: str, clock: Callable[[], datetime] | None = None) -> None:
        self.database = database
        self._actor, self._clock = actor, clock or (lambda: datetime.now(UTC))

    def acting_as(self, actor: str) -> Ledger:
        """The same ledger, with another actor recorded in new entries."""
        return Ledger(self.database, actor=actor, clock=self._clock)

    def with_database(self, database: Database) -> Ledger:
        """The same ledger, through another connection to its database."""
        return Ledger(database, actor=self._actor, clock=self._clock)

    @contextlib.contextmanager
    def reading(self, keys: Mapping[int, Key] | None = None, *, snapshot: bool = False) -> Iterator[LedgerReader]:
        """A transaction that reads; with the master keys, it trusts only entries that the vault itself wrote."""
        authenticators = _authenticators(keys or {})
        with self.database.transaction(writes=False, snapshot=snapshot) as connection:
            yield LedgerReader(connection, authenticators)

    @contextlib.contextmanager
    def writing(self, keys: Mapping[int, Key], *, check_seal: bool = True) -> Iterator[LedgerWriter]:
        """A serialised transaction that writes; its entries take effect when it ends.

        Args:
            keys: the master keys by generation, including the current one.
            check_seal: refuse a head without the right authentication code; off only to replace a lost key.

        """
        with self.database.transaction(writes=True) as connection:
            connection.execute(sa.select(VAULT.c.id).with_for_update())
            authenticators = _authenticators(keys)
            writing = LedgerWriter(connection, authenticators, self._clock, self._actor)
            head = writing.head()
            if head.generation not in authenticators:
                raise VaultError("the vault's master key was rotated meanwhile; run the same command again")
            if check_seal and head.seal != head.expected_seal(authenticators[head.generation], writing.generations()):
                raise TamperedError(
                    "the head of the ledger must carry the vault's own seal, and it does not: somebody else changed "
                    "it; run `sfumato verify`, and restore a backup"
                )
            yield writing

    @contextlib.contextmanager
    def creating(self, key: Key) -> Iterator[LedgerWriter]:
        """A transaction that creates the tables and writes to them."""
        with self.database.creation() as connection:
            yield LedgerWriter(connection, {1: Authenticator(key)}, self._clock, self._actor)

    @contextlib.contextmanager
    def restoring(self) -> Iterator[tuple[Connection, Callable[[Mapping[int, Key]], LedgerWriter]]]:
        """A transaction that creates the tables for a backup's rows, and can write with the keys found among them."""
        with self.database.creation() as connection:

            def write(keys: Mapping[int, Key]) -> LedgerWriter:
                return LedgerWriter(connection, _authenticators(keys), self._clock, self._actor)

            yield connection, write


def _authenticators(keys: Mapping[int, Key]) -> dict[int, Authenticator]:
    return {number: Authenticator(key) for number, key in keys.items()}


def _entry(row: Row[Any]) -> Entry:
    values = dict(row._mapping)  # noqa: SLF001 - the public name of the attribute
    return Entry(**{**values, "body": _json(values["body"])})


def _json(text: str) -> dict[str, Any]:
    """The JSON object that the vault wrote; a marker that no check accepts if it was altered beyond reading."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"unreadable": text}


def _row(head: Head) -> dict[str, Any]:
    return {**head.__dict__, "counts": canonical(head.counts)}
