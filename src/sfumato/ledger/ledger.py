"""Reading and appending: the only way in which anything in a vault's database changes."""

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
"""Entries that are read at once."""


@dataclass(frozen=True)
class Head:
    """The vault as a whole."""

    name: str
    store: str
    generation: int
    entries: int
    head: str
    counts: dict[str, int]
    """How many subjects there are of each kind."""
    seal: str

    def sealed(self, codes: Authenticator, generations: list[Generation]) -> str:
        """The seal that the head must have, with the public marks of all keys."""
        marks = [[one.number, one.fingerprint, one.public, one.lost] for one in generations]
        return codes.of("head", self.name, self.store, self.generation, self.entries, self.head, self.counts, marks)


@dataclass(frozen=True)
class Generation:
    """A master key: its public marks, and the lock it lies in."""

    number: int
    fingerprint: str
    public: str
    lock: dict[str, Any]
    lost: int = 0
    """1 where nobody can open the lock any more."""


@dataclass(frozen=True)
class Query:
    """Which entries are wanted."""

    dataset: str | None = None
    recipient: str | None = None
    action: str | None = None
    kind: str | None = None
    since: str | None = None
    until: str | None = None
    last: int | None = None
    before: int | None = None
    """Only entries with lower numbers."""


class LedgerReader:
    """A transaction that reads; with the codes of the master keys, it believes only what the vault itself wrote."""

    def __init__(self, connection: Connection, codes: Mapping[int, Authenticator] | None = None) -> None:
        self.connection = connection
        self._codes = codes or {}

    def head(self) -> Head:
        """The vault as a whole."""
        found = self.connection.execute(sa.select(VAULT)).one_or_none()
        if found is None:
            raise TamperedError("the ledger must have its head, and somebody removed it; restore a backup")
        row = found._mapping  # noqa: SLF001 - its public name
        return Head(**{**{k: v for k, v in row.items() if k != "id"}, "counts": _json(row["counts"])})

    def generations(self) -> list[Generation]:
        """All master keys, the first one first."""
        rows = self.connection.execute(sa.select(GENERATIONS).order_by(GENERATIONS.c.number))
        return [Generation(r.number, r.fingerprint, r.public, _json(r.lock), r.lost) for r in rows]

    def latest(self, kind: str, dataset: str = "", recipient: str = "") -> Entry | None:
        """The latest entry about a subject."""
        about = ENTRIES.c.kind == kind, ENTRIES.c.dataset == dataset, ENTRIES.c.recipient == recipient
        query = sa.select(ENTRIES).where(*about).order_by(ENTRIES.c.number.desc()).limit(1)
        row = self.connection.execute(query).one_or_none()
        return None if row is None else self._believed(_entry(row))

    def _believed(self, entry: Entry) -> Entry:
        """An entry that is acted upon; refused if it is not as the vault wrote it."""
        if self._codes and entry.generation not in self._codes and not self._is_lost(entry.generation):
            raise TamperedError(
                f"entry {entry.number} of the ledger must be of a key that the vault has or has lost, and it is of "
                "neither: somebody else wrote it; run `sfumato verify`, and restore a backup"
            )
        if entry.generation in self._codes:
            before = sa.select(ENTRIES.c.hash).where(ENTRIES.c.number == entry.number - 1)
            previous = self.connection.execute(before).scalar() or START
            if (entry.digest(previous), self._codes[entry.generation].of(entry.hash)) != (entry.hash, entry.mac):
                raise TamperedError(
                    f"entry {entry.number} of the ledger must be as the vault wrote it, and it was altered; run "
                    "`sfumato verify`, and restore a backup"
                )
        return entry

    def _is_lost(self, generation: int) -> bool:
        """Whether a key is lost by the word of the vault itself, which seals it with its head."""
        head, generations = self.head(), self.generations()
        sealed = head.generation in self._codes and head.seal == head.sealed(self._codes[head.generation], generations)
        return sealed and any(one.number == generation and one.lost for one in generations)

    def count(self, kind: str, dataset: str) -> int:
        """How many subjects of a kind a dataset has."""
        about = SUBJECTS.c.kind == kind, SUBJECTS.c.dataset == dataset
        return int(self.connection.execute(sa.select(sa.func.count()).where(*about)).scalar_one())

    def current(self, kind: str, *, dataset: str = "", recipient: str = "", first: int | None = None) -> list[Entry]:
        """The latest entries about all subjects of a kind, of a dataset or a recipient if named, by their names."""
        query = sa.select(ENTRIES).join(SUBJECTS, SUBJECTS.c.entry == ENTRIES.c.number).where(SUBJECTS.c.kind == kind)
        if dataset:
            query = query.where(SUBJECTS.c.dataset == dataset)
        if recipient:
            query = query.where(SUBJECTS.c.recipient == recipient)
        query = query.order_by(SUBJECTS.c.dataset, SUBJECTS.c.recipient).limit(first)
        return [_entry(row) for row in self.connection.execute(query)]

    def entries(self, query: Query) -> list[Entry]:
        """Some entries in order."""
        wanted = sa.select(ENTRIES)
        for name in ("dataset", "recipient", "action", "kind"):
            value = getattr(query, name)
            wanted = wanted if value is None else wanted.where(ENTRIES.c[name] == value)
        wanted = wanted if query.since is None else wanted.where(ENTRIES.c.at >= query.since)
        wanted = wanted if query.until is None else wanted.where(ENTRIES.c.at < query.until)
        wanted = wanted if query.before is None else wanted.where(ENTRIES.c.number < query.before)
        wanted = wanted.order_by(ENTRIES.c.number.desc()).limit(query.last)
        return [_entry(row) for row in self.connection.execute(wanted)][::-1]

    def history(self) -> Iterator[Entry]:
        """All entries in order, read a page at a time."""
        after = 0
        while True:
            page = sa.select(ENTRIES).where(ENTRIES.c.number > after).order_by(ENTRIES.c.number).limit(PAGE)
            rows = self.connection.execute(page).all()
            yield from map(_entry, rows)
            if len(rows) < PAGE:
                return
            after = rows[-1].number


class LedgerWriter(LedgerReader):
    """A transaction that writes: it alone, until it ends."""

    def __init__(
        self, connection: Connection, codes: Mapping[int, Authenticator], clock: Callable[[], datetime], actor: str
    ) -> None:
        super().__init__(connection, dict(codes))
        self._clock, self._actor = clock, actor

    def begin(self, name: str, store: str) -> None:
        """The first row of a new vault."""
        head = Head(name, store, 1, 0, START, {}, "")
        self.connection.execute(VAULT.insert().values(id=1, **_row(head)))

    def append(self, action: str, kind: str, body: dict[str, Any], *, dataset: str = "", recipient: str = "") -> Entry:
        """Add an entry, and let its subject point to it."""
        head = self.head()
        at = self._clock().astimezone(UTC).isoformat(timespec="microseconds")
        plain = json.loads(canonical(body))
        entry = Entry(head.entries + 1, at, self._actor, action, kind, dataset, recipient, plain, head.generation)
        entry = entry.linked(head.head, self._codes[head.generation])
        self.connection.execute(ENTRIES.insert().values({**entry.__dict__, "body": canonical(plain)}))
        subject = {"kind": kind, "dataset": dataset, "recipient": recipient}
        place = sa.and_(*(SUBJECTS.c[name] == value for name, value in subject.items()))
        counts = dict(head.counts)
        if not self.connection.execute(SUBJECTS.update().where(place).values(entry=entry.number)).rowcount:
            self.connection.execute(SUBJECTS.insert().values(**subject, entry=entry.number))
            counts[kind] = counts.get(kind, 0) + 1
        self._put(replace(head, entries=entry.number, head=entry.hash, counts=counts))
        return entry

    def lock(self, generation: Generation) -> None:
        """Keep a master key's lock, a new one or the new one of an old key."""
        values = {**generation.__dict__, "lock": canonical(generation.lock)}
        known = GENERATIONS.c.number == generation.number
        if not self.connection.execute(GENERATIONS.update().where(known).values(**values)).rowcount:
            self.connection.execute(GENERATIONS.insert().values(**values))
        self._put(self.head())

    def turn(self, generation: int, key: Key) -> None:
        """Let another generation of the master key be in force from the next entry on."""
        self._codes = {**self._codes, generation: Authenticator(key)}
        self._put(replace(self.head(), generation=generation))

    def move(self, store: str) -> None:
        """Keep files elsewhere from now on."""
        self._put(replace(self.head(), store=store))

    def _put(self, head: Head) -> None:
        sealed = head.sealed(self._codes[head.generation], self.generations())
        self.connection.execute(VAULT.update().values(**_row(replace(head, seal=sealed))))


class Ledger:
    """A database, and who writes to it."""

    def __init__(self, database: Database, *, actor: str, clock: Callable[[], datetime] | None = None) -> None:
        self.database = database
        self._actor, self._clock = actor, clock or (lambda: datetime.now(UTC))

    def acting_as(self, actor: str) -> Ledger:
        """The same ledger, written by somebody else."""
        return Ledger(self.database, actor=actor, clock=self._clock)

    def moved(self, database: Database) -> Ledger:
        """The same ledger, by another way to its database."""
        return Ledger(database, actor=self._actor, clock=self._clock)

    @contextlib.contextmanager
    def reading(self, keys: Mapping[int, Key] | None = None, *, snapshot: bool = False) -> Iterator[LedgerReader]:
        """Read; with the master keys, believing only what the vault itself wrote."""
        codes = {number: Authenticator(key) for number, key in (keys or {}).items()}
        with self.database.transaction(writes=False, snapshot=snapshot) as connection:
            yield LedgerReader(connection, codes)

    @contextlib.contextmanager
    def writing(self, keys: Mapping[int, Key], *, sealed: bool = True) -> Iterator[LedgerWriter]:
        """Write, after every earlier writer and before every later one; what is said takes effect at the end.

        Args:
            keys: the master keys by generation; the one in force must be among them.
            sealed: refuse a head that this key did not seal. Without it, only a lost key is replaced.

        """
        with self.database.transaction(writes=True) as connection:
            connection.execute(sa.select(VAULT.c.id).with_for_update())
            codes = {number: Authenticator(key) for number, key in keys.items()}
            writing = LedgerWriter(connection, codes, self._clock, self._actor)
            head = writing.head()
            if head.generation not in codes:
                raise VaultError("the vault took another master key meanwhile; run the same command again")
            if sealed and head.seal != head.sealed(codes[head.generation], writing.generations()):
                raise TamperedError(
                    "the head of the ledger must carry the vault's own seal, and it does not: somebody else wrote it; "
                    "run `sfumato verify`, and restore a backup"
                )
            yield writing

    @contextlib.contextmanager
    def creating(self, key: Key) -> Iterator[LedgerWriter]:
        """Build the tables and write to them, all at once."""
        with self.database.creation() as connection:
            yield LedgerWriter(connection, {1: Authenticator(key)}, self._clock, self._actor)

    @contextlib.contextmanager
    def filling(self) -> Iterator[tuple[Connection, Callable[[Mapping[int, Key]], LedgerWriter]]]:
        """Build the tables, fill them from elsewhere, and then, with the keys that were found there, write to them."""
        with self.database.creation() as connection:

            def write(keys: Mapping[int, Key]) -> LedgerWriter:
                return LedgerWriter(
                    connection, {n: Authenticator(key) for n, key in keys.items()}, self._clock, self._actor
                )

            yield connection, write


def _entry(row: Row[Any]) -> Entry:
    said = dict(row._mapping)  # noqa: SLF001 - its public name
    return Entry(**{**said, "body": _json(said["body"])})


def _json(text: str) -> dict[str, Any]:
    """What the vault wrote; something else, which no check will accept, if somebody else wrote it."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"unreadable": text}


def _row(head: Head) -> dict[str, Any]:
    return {**head.__dict__, "counts": canonical(head.counts)}
