"""Reading the ledger: entries, the sealed head, and the authenticated index that shows that nothing is missing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import CustodyError, TamperedError, VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import START, Authenticator, Entry
from sfumato.ledger.connection import Connection, Row
from sfumato.ledger.row_cipher import RowCipher, is_encrypted
from sfumato.ledger.subject_index import ANY, MemoryIndex, StoredIndex, SubjectName, running
from sfumato.ledger.tables import ACCESSES, ENTRIES

PAGE = 5_000
"""Entries that are read in one query."""

_PARAMETERS = 500
"""The most numbers in one query."""

_ADVICE = "run `sfumato verify`, and restore a backup"


@dataclass(frozen=True)
class Head:
    """The head of the ledger: the vault's name, its store, its key generation, and the last entry."""

    name: str
    store: str
    generation: int
    entries: int
    head: str
    counts: dict[str, int]
    """The number of subjects of each kind, where an earlier version wrote the ledger; else empty."""
    root: str
    """The root of the index of subjects; empty where an earlier version wrote the ledger."""
    seal: str
    accesses: int = 0
    """The number of the last record of the access log."""
    access_head: str = ""
    """Its hash; empty as long as there was none."""

    def expected_seal(self, authenticator: Authenticator, generations: list[Generation]) -> str:
        """The message authentication code that the head must have; it covers the public data of all keys too."""
        public = [[one.number, one.fingerprint, one.public, one.lost] for one in generations]
        later: list[object] = [self.root] if self.root else []
        later += [self.accesses, self.access_head] if self.accesses else []
        return authenticator.mac(
            "head", self.name, self.store, self.generation, self.entries, self.head, self.counts, public, *later
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

    @property
    def subject(self) -> SubjectName | None:
        """The subject of which the query selects all entries, if it does."""
        narrower = (self.action, self.since, self.until, self.last, self.before)
        if self.kind is None or any(one is not None for one in narrower):
            return None
        return (
            self.kind,
            ANY if self.dataset is None else self.dataset,
            ANY if self.recipient is None else self.recipient,
        )


class HeadMemory:
    """Remembers the latest head that a process has seen, so that an older state is not taken for the present one."""

    def __init__(self) -> None:
        self._latest: Head | None = None
        self._lock = threading.Lock()

    def now(self) -> SeenHead:
        """The latest head as of now: a transaction that begins later must not find an older one."""
        return SeenHead(self, self._latest)

    def remember(self, head: Head) -> None:
        """Remember a head, unless a later one of the same vault was seen in the meantime."""
        with self._lock:
            latest = self._latest
            same = latest is not None and latest.name == head.name
            if not same or latest is None or (head.entries, head.accesses) > (latest.entries, latest.accesses):
                self._latest = head


@dataclass(frozen=True)
class SeenHead:
    """The latest head that was seen before a transaction began.

    Others may write, and see later heads, while the transaction looks at its snapshot: that is older than theirs, and
    nobody has replaced anything.
    """

    memory: HeadMemory
    latest: Head | None

    def check(self, head: Head) -> None:
        """Raise `TamperedError` for a head with fewer entries than the latest one, or with others."""
        latest = self.latest
        if latest is not None and latest.name == head.name:
            changed = head.entries == latest.entries and head.head != latest.head
            if head.entries < latest.entries or head.accesses < latest.accesses or changed:
                raise TamperedError(
                    f"the ledger must have at least the {latest.entries} entries and the {latest.accesses} accesses "
                    f"that it had, and somebody replaced it by an older state; {_ADVICE}"
                )
        self.memory.remember(head)


class LedgerReader:
    """A transaction that reads.

    With the master keys it trusts only what the vault wrote: each entry has its authentication code, and the latest
    entry about a subject, or all of them, are those that the sealed head of the ledger commits to. Without them, it
    can read only the head and the wrapped keys.
    """

    def __init__(
        self,
        connection: Connection,
        keys: Mapping[int, Key] | None = None,
        seen: SeenHead | None = None,
        *,
        trusting: bool = False,
    ) -> None:
        """Read in the transaction of a connection; if `trusting`, entries are not authenticated, only decrypted."""
        self.connection = connection
        self._keys = dict(keys or {})
        self._authenticators = {} if trusting else {number: Authenticator(key) for number, key in self._keys.items()}
        self._cipher = RowCipher(self._keys) if self._keys else None
        self._seen = seen or HeadMemory().now()
        self._verified_index: StoredIndex | MemoryIndex | None = None

    def head(self) -> Head:
        """The head of the ledger."""
        found = self.connection.one("SELECT * FROM sfumato_vault")
        if found is None:
            raise TamperedError("the ledger must have a head, and somebody removed it; restore a backup")
        row = found._asdict()
        return Head(**{**{k: v for k, v in row.items() if k != "id"}, "counts": _json(row["counts"])})

    def generations(self) -> list[Generation]:
        """All generations of the master key, in order."""
        rows = self.connection.all("SELECT * FROM sfumato_generations ORDER BY number")
        return [Generation(r.number, r.fingerprint, r.public, _json(r.lock), r.lost) for r in rows]

    @property
    def cipher(self) -> RowCipher:
        """Encrypts and decrypts rows."""
        if self._cipher is None:
            raise CustodyError("the ledger must be unlocked with the vault's passphrase or key to be read; give it")
        return self._cipher

    def latest(self, kind: str, dataset: str = "", recipient: str = "") -> Entry | None:
        """The latest entry about a subject."""
        subject = self._index().find((kind, dataset, recipient))
        return None if subject is None else self._at(subject.entry, subject.hash)

    def latest_by_token(self, kind: str, token: str) -> Entry | None:
        """The latest entry about a dataset whose name is known only by its token."""
        subject = self._index().find_tokens((self.cipher.token(kind), token, self.cipher.token("")))
        return None if subject is None else self._at(subject.entry, subject.hash)

    def recent(self, kind: str, first: int, skip: int = 0) -> list[Entry]:
        """The latest entries about the datasets, surveys or recipients that changed last, after some of them."""
        field = "recipient" if kind == "recipient" else "dataset"
        found = self._index().recent(self.cipher.token(kind), self.cipher.token(""), field, first, skip)
        return [self._at(subject.entry, subject.hash) for subject in found]

    def subjects(self, kind: str) -> int:
        """The number of subjects of a kind."""
        found = self._index().find((kind, ANY, ANY))
        return 0 if found is None else found.subjects

    def datasets_of(self, kind: str, recipient: str) -> int:
        """The number of datasets that a recipient has entries of a kind about, without reading these."""
        found = self._index().find((kind, ANY, recipient))
        return 0 if found is None else found.subjects

    def _at(self, number: int, digest: str) -> Entry:
        """The entry with this number, which must have this hash."""
        row = self.connection.one("SELECT * FROM sfumato_entries WHERE number = :number", number=number)
        if row is None or row.hash != digest:
            raise TamperedError(f"entry {number} of the ledger was removed or replaced; {_ADVICE}")
        return self.authenticated(self._entry(row, ENTRIES))

    def _index(self) -> StoredIndex | MemoryIndex:
        """The index of subjects, under the sealed head."""
        if self._verified_index is None:
            head = self.verified_head()
            legacy = head.entries and not head.root
            stored = StoredIndex(self.connection, head.root, self.cipher.token)
            self._verified_index = self._recomputed(head) if legacy else stored
        return self._verified_index

    def verified_head(self) -> Head:
        """The head of the ledger, if the vault sealed it, and it is no older than the last one that was seen."""
        head = self.head()
        self.require_seal(head)
        return head

    def require_seal(self, head: Head) -> None:
        """Raise `TamperedError` for a head that the vault did not seal, or that is older than one it sealed before."""
        if head.generation not in self._authenticators:
            raise VaultError("the vault's master key was rotated meanwhile; run the same command again")
        if head.seal != head.expected_seal(self._authenticators[head.generation], self.generations()):
            raise TamperedError(
                "the head of the ledger must carry the vault's own seal, and it does not: somebody else changed it; "
                + _ADVICE
            )
        self._seen.check(head)

    def _recomputed(self, head: Head, *, lost: bool = False) -> MemoryIndex:
        """The index of all entries, whose chain must end in the head; without unreadable ones, if keys are lost."""
        index, previous = MemoryIndex(self.cipher.token), START
        for number, entry in enumerate(self.history(), 1):
            is_known = entry.is_readable or not lost
            if entry.number != number or (is_known and entry.digest(previous) != entry.hash):
                raise TamperedError(f"entry {number} of the ledger does not continue its hash chain; {_ADVICE}")
            if is_known:
                index.record(entry)
            previous = entry.hash
        if previous != head.head:
            raise TamperedError(f"the ledger must end with entry {head.entries}, and it does not; {_ADVICE}")
        return index

    def authenticated(self, entry: Entry, previous: str | None = None) -> Entry:
        """The entry itself; raises `TamperedError` if the vault did not write it so, as far as keys are at hand.

        Args:
            previous: the hash of the entry before it, if that was read already.

        """
        authenticator = self._authenticators.get(entry.generation)
        if self._authenticators and authenticator is None and not self._is_lost(entry.generation):
            raise TamperedError(
                f"entry {entry.number} of the ledger must be authenticated with one of the vault's keys, and its key "
                f"is unknown: somebody else wrote it; {_ADVICE}"
            )
        if authenticator is not None:
            previous = previous or self._hashes([entry.number - 1]).get(entry.number - 1, START)
            if (entry.digest(previous), authenticator.mac(entry.hash)) != (entry.hash, entry.mac):
                raise TamperedError(
                    f"entry {entry.number} of the ledger must have the authentication code of its content, and it was "
                    f"altered; {_ADVICE}"
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
        return len(self.current(kind, dataset=dataset))

    def current(self, kind: str, *, dataset: str = "", recipient: str = "", first: int | None = None) -> list[Entry]:
        """The latest entry about each subject of a kind, sorted by name; only of one dataset or recipient if given."""
        latest: dict[tuple[str, str], Entry] = {}
        for entry in self.entries(Query(kind=kind, dataset=dataset or None, recipient=recipient or None)):
            latest[entry.dataset, entry.recipient] = entry
        return [latest[subject] for subject in sorted(latest)][:first]

    def entries(self, query: Query) -> list[Entry]:
        """The entries that a query selects, in order; all entries about a subject are verified to be complete."""
        found = self._selected(query)
        if not self._authenticators:
            return found
        if query.subject is None:
            before = self._hashes([entry.number - 1 for entry in found])
            return [self.authenticated(entry, before.get(entry.number - 1, START)) for entry in found]
        self._require_complete(query.subject, found)
        return found

    def _require_complete(self, subject: SubjectName, found: list[Entry]) -> None:
        """Raise `TamperedError` unless these are all entries about a subject, as the vault wrote them."""
        indexed, digest = self._index().find(subject), ""
        before = self._hashes([entry.number - 1 for entry in found])
        for entry in found:
            digest = running(digest, entry.hash)
            if entry.digest(before.get(entry.number - 1, START)) != entry.hash:
                raise TamperedError(f"entry {entry.number} of the ledger was altered; {_ADVICE}")
        if digest != (indexed.digest if indexed else ""):
            about = "/".join(part for part in subject if part not in ("", ANY))
            raise TamperedError(f"entries about {about} were removed from the ledger or added to it; {_ADVICE}")

    def _hashes(self, numbers: list[int]) -> dict[int, str]:
        """The hashes of some entries by number."""
        out: dict[int, str] = {}
        for start in range(0, len(numbers), _PARAMETERS):
            part = numbers[start : start + _PARAMETERS]
            found = self.connection.all("SELECT number, hash FROM sfumato_entries WHERE number IN :part", part=part)
            out |= {row.number: row.hash for row in found}
        return out

    def accesses(self, query: Query) -> list[Entry]:
        """The records of the access log that a query selects, in order; `verify` authenticates them."""
        return self._selected(query, ACCESSES)

    def first_access(self) -> int:
        """The number of the first record of the access log that was not erased; 0 if there is none."""
        return int(self.connection.value("SELECT min(number) FROM sfumato_accesses") or 0)

    def latest_accesses(self, actors: list[str]) -> dict[str, str]:
        """When some actors had access last."""
        tokens = {self.cipher.token(actor): actor for actor in actors}
        by_actor = "SELECT actor, max(at) AS latest FROM sfumato_accesses WHERE actor IN :actors GROUP BY actor"
        return {tokens[actor]: str(at) for actor, at in self.connection.all(by_actor, actors=list(tokens))}

    def _selected(self, query: Query, table: str = ENTRIES) -> list[Entry]:
        """The entries that a query selects, as they are in the database."""
        tests, values = list[str](), dict[str, object]()
        for name in ("dataset", "recipient", "action", "kind"):
            value = getattr(query, name)
            if value is not None:  # an earlier version stored it in plain
                tests.append(f"{name} IN :{name}")
                values[name] = [self.cipher.token(value), value]
        for name, test in (("since", "at >= :since"), ("until", "at < :until"), ("before", "number < :before")):
            value = getattr(query, name)
            if value is not None:
                tests.append(test)
                values[name] = value
        where = f"WHERE {' AND '.join(tests)} " if tests else ""
        statement = f"SELECT * FROM {table} {where}ORDER BY number DESC"  # noqa: S608 - our own names
        if query.last is not None:
            statement, values["last"] = f"{statement} LIMIT :last", query.last
        return [self._entry(row, table) for row in self.connection.all(statement, **values)][::-1]

    def history(self, table: str = ENTRIES, after: int = 0) -> Iterator[Entry]:
        """All entries after one in order, read page by page."""
        return (self._entry(row, table) for row in self.rows(table, after))

    def rows(self, table: str, after: int = 0) -> Iterator[Row]:
        """All rows of a table of entries after one in order, as they are stored, read page by page."""
        page = f"SELECT * FROM {table} WHERE number > :after ORDER BY number LIMIT :page"  # noqa: S608 - our own names
        while True:
            rows = self.connection.all(page, after=after, page=PAGE)
            yield from rows
            if len(rows) < PAGE:
                return
            after = rows[-1].number

    def _entry(self, row: Row, table: str) -> Entry:
        values = row._asdict()
        if is_encrypted(values):
            return self.cipher.entry(table, values)
        return Entry(**{**values, "body": _json(values["body"])})


def _json(text: str) -> dict[str, Any]:
    """The JSON object that the vault wrote; a marker that no check accepts if it was altered beyond reading."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"unreadable": text}
