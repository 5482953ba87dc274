"""Transactions on the ledger: reading entries and appending them, the only way in which a vault's state changes."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sfumato.errors import TamperedError
from sfumato.keys.key import Key
from sfumato.ledger.chain import ERASED, START, Authenticator, Entry, canonical
from sfumato.ledger.connection import Connection
from sfumato.ledger.database import Database
from sfumato.ledger.reader import Generation, Head, HeadMemory, LedgerReader, Query, SeenHead
from sfumato.ledger.row_cipher import RowCipher
from sfumato.ledger.subject_index import MemoryIndex, StoredIndex, rebuild
from sfumato.ledger.tables import ACCESSES, ENTRIES, GENERATIONS, VAULT

ACCESS = "access"
"""The kind of the records of the access log."""


@dataclass(frozen=True)
class Origin:
    """Who has access, for the access log."""

    credential: str
    """The token, the operator, or the user of this machine."""
    address: str = ""
    """The network address; empty on this machine."""


class LedgerWriter(LedgerReader):
    """A transaction that writes, with exclusive access until it ends."""

    def __init__(
        self,
        connection: Connection,
        keys: Mapping[int, Key],
        clock: Callable[[], datetime],
        actor: str,
        seen: SeenHead | None = None,
        origin: Origin | None = None,
    ) -> None:
        super().__init__(connection, keys, seen)
        self._clock, self._actor, self._origin = clock, actor, origin or Origin(actor)

    def create_head(self, name: str, store: str) -> None:
        """Write the head of a new vault."""
        head = Head(name, store, 1, 0, START, {}, "", "")
        self.connection.insert(VAULT, {"id": 1, **_row(head)})

    def append(self, action: str, kind: str, body: dict[str, Any], *, dataset: str = "", recipient: str = "") -> Entry:
        """Append an entry, and make it the latest one about its subject."""
        head, plain = self.head(), json.loads(canonical(body))
        number, about = head.entries + 1, (action, kind, dataset, recipient)
        entry = Entry(number, self._now(), self._actor, *about, plain, head.generation, salt=_salt())
        entry = entry.chained(head.head, self._authenticators[head.generation])
        index = self._stored_index()
        self.connection.insert(ENTRIES, self.cipher.row(ENTRIES, entry))
        index.record(entry)
        self._write_head(replace(head, entries=number, head=entry.hash, counts={}, root=index.root))
        return entry

    def record_access(self, action: str, body: dict[str, Any], *, dataset: str = "", recipient: str = "") -> Entry:
        """Append a record to the access log: who read what. The seal of the head covers it."""
        head = self.head()
        plain = json.loads(canonical({**body, "address": self._origin.address, "entries": head.entries}))
        who, number = self._origin.credential, head.accesses + 1
        about = (action, ACCESS, dataset, recipient)
        access = Entry(number, self._now(), who, *about, plain, head.generation, salt=_salt())
        access = access.chained(head.access_head or START, self._authenticators[head.generation])
        self.connection.insert(ACCESSES, self.cipher.row(ACCESSES, access))
        self._write_head(replace(head, accesses=number, access_head=access.hash))
        return access

    def erase_accesses(self, before: str) -> Entry | None:
        """Delete the records of the access log before a time; an entry keeps where the chain goes on."""
        found = self.accesses(Query(until=before, last=1))
        if not found:
            return None
        last = self._authenticated_access(found[0])
        self.connection.run("DELETE FROM sfumato_accesses WHERE number <= :last", last=last.number)
        return self.append(ERASED, ACCESS, {"number": last.number, "hash": last.hash, "before": before})

    def _authenticated_access(self, access: Entry) -> Entry:
        """The record itself: a later one that somebody dated back must not be erased as an old one."""
        before = "SELECT hash FROM sfumato_accesses WHERE number = :number"
        tombstone = self.latest(ACCESS)
        first = START if tombstone is None else str(tombstone.body["hash"])
        authenticator = self._authenticators.get(access.generation)
        expected = access.digest(self.connection.value(before, number=access.number - 1) or first)
        if authenticator is None or (expected, authenticator.mac(expected)) != (access.hash, access.mac):
            raise TamperedError(
                f"record {access.number} of the access log must be as the vault wrote it, and it was altered; run "
                "`sfumato verify`, and restore a backup"
            )
        return access

    def _now(self) -> str:
        return self._clock().astimezone(UTC).isoformat(timespec="microseconds")

    def _stored_index(self) -> StoredIndex:
        """The index in the database; where an earlier version wrote the ledger, it is first encrypted and indexed."""
        found = self._index()
        if isinstance(found, MemoryIndex):
            self._encrypt_rows(self.cipher)
            found = self._verified_index = rebuild(self.connection, found, self.cipher.token)
        return found

    def trust_entries(self) -> None:
        """Take the chain of entries as it is: its keys are lost, so that nothing shows who wrote it."""
        self._verified_index = rebuild(self.connection, self._recomputed(self.head(), lost=True), self.cipher.token)
        self._encrypt_rows(self.cipher)

    def _encrypt_rows(self, cipher: RowCipher) -> None:
        """Encrypt all rows that can be read, with another cipher or for the first time."""
        for table in (ENTRIES, ACCESSES):
            for row in self.rows(table):
                entry = self._entry(row, table)
                if entry.is_readable:
                    self.connection.update(table, cipher.row(table, entry), number=entry.number)

    def save_generation(self, generation: Generation) -> None:
        """Store a generation of the master key, or replace the wrapped key of an existing one."""
        values = {**generation.__dict__, "lock": canonical(generation.lock)}
        if not self.connection.update(GENERATIONS, values, number=generation.number):
            self.connection.insert(GENERATIONS, values)
        self._write_head(self.head())

    def rotate_key(self, generation: int, key: Key) -> None:
        """Authenticate with another generation of the master key from the next entry on, and encrypt all with it."""
        self._keys = {**self._keys, generation: key}
        self._authenticators = {**self._authenticators, generation: Authenticator(key)}
        cipher = RowCipher(self._keys)
        self._encrypt_rows(cipher)
        self._cipher = cipher
        self._write_head(replace(self.head(), generation=generation))

    def set_store(self, store: str) -> None:
        """Record another location of the vault's files."""
        self._write_head(replace(self.head(), store=store))

    def _write_head(self, head: Head) -> None:
        seal = head.expected_seal(self._authenticators[head.generation], self.generations())
        self.connection.update(VAULT, _row(replace(head, seal=seal)))


class Ledger:
    """A ledger in a database, and the actor who writes to it."""

    def __init__(
        self,
        database: Database,
        *,
        actor: str,
        clock: Callable[[], datetime] | None = None,
        memory: HeadMemory | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.database = database
        self.actor, self._clock = actor, clock or (lambda: datetime.now(UTC))
        self._memory, self.origin = memory or HeadMemory(), origin or Origin(actor)

    def acting_as(self, actor: str, origin: Origin | None = None) -> Ledger:
        """The same ledger, with another actor recorded in new entries, and another origin in the access log."""
        return Ledger(self.database, actor=actor, clock=self._clock, memory=self._memory, origin=origin)

    def with_database(self, database: Database) -> Ledger:
        """The same ledger, through another connection to its database."""
        return Ledger(database, actor=self.actor, clock=self._clock, memory=self._memory, origin=self.origin)

    @contextlib.contextmanager
    def reading(self, keys: Mapping[int, Key] | None = None, *, trusting: bool = False) -> Iterator[LedgerReader]:
        """A transaction that reads.

        Args:
            keys: the master keys, without which only the head can be read; with them, only entries that the vault
                itself wrote are trusted.
            trusting: do not authenticate entries; for a verification, which reports all that is wrong.

        """
        seen = self._memory.now()
        with self.database.transaction(writes=False, snapshot=bool(keys)) as connection:
            yield LedgerReader(connection, keys, seen, trusting=trusting)

    @contextlib.contextmanager
    def writing(self, keys: Mapping[int, Key], *, check_seal: bool = True) -> Iterator[LedgerWriter]:
        """A serialised transaction that writes; its entries take effect when it ends.

        Args:
            keys: the master keys by generation, including the current one.
            check_seal: refuse a head without the right authentication code; off only to replace a lost key.

        """
        seen = self._memory.now()
        with self.database.transaction(writes=True) as connection:
            connection.wait_for_writers()
            writing = LedgerWriter(connection, keys, self._clock, self.actor, seen, self.origin)
            if check_seal:
                writing.verified_head()
            else:
                writing.trust_entries()
            yield writing

    @contextlib.contextmanager
    def creating(self, key: Key) -> Iterator[LedgerWriter]:
        """A transaction that creates the tables and writes to them."""
        with self.database.creation() as connection:
            yield LedgerWriter(connection, {1: key}, self._clock, self.actor)

    @contextlib.contextmanager
    def restoring(self) -> Iterator[tuple[Connection, Callable[[Mapping[int, Key]], LedgerWriter]]]:
        """A transaction that creates the tables for a backup's rows, and can write with the keys found among them."""
        with self.database.creation() as connection:

            def write(keys: Mapping[int, Key]) -> LedgerWriter:
                return LedgerWriter(connection, keys, self._clock, self.actor)

            yield connection, write


def _salt() -> str:
    return secrets.token_hex(16)


def _row(head: Head) -> dict[str, Any]:
    return {**head.__dict__, "counts": canonical(head.counts)}
