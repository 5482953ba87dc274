"""Verification of the index of subjects against the entries, in memory that grows only with datasets and recipients.

Subjects with `ANY` are few, and are computed while the chain is read. All others are compared in the order that the
database has both in: that of their tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, zip_longest

from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import LedgerReader
from sfumato.ledger.subject_index import (
    ANY,
    Subject,
    SubjectName,
    Token,
    extended,
    running,
    subject_of,
    tree,
    wide_names,
)

_DAMAGED = "the index of the ledger is damaged"


class IndexVerification:
    """Collects what the entries say about subjects with `ANY`, then compares everything with the stored index."""

    def __init__(self, token: Token) -> None:
        self._token, self._any = token, token(ANY)
        self._wide: dict[SubjectName, Subject] = {}

    def record(self, entry: Entry) -> None:
        """Add an entry, in order; the number of subjects is counted later."""
        narrow = self._token(entry.kind), self._token(entry.dataset), self._token(entry.recipient)
        for name in wide_names(narrow, self._any):
            self._wide[name] = extended(self._wide.get(name), name, entry, is_new=False)

    def problems(self, reading: LedgerReader, generations: Iterable[int]) -> list[str]:
        """What is wrong with the stored index; entries of other generations are unreadable, and not in it."""
        root = reading.head().root
        if not root:
            return []  # an earlier version wrote the ledger: the next entry adds the index
        for found, stored in zip_longest(self._narrow(reading, generations), self._stored(reading)):
            names = [] if found is None else wide_names(found.name, self._any)
            if found != stored or not all(name in self._wide for name in names):
                return [self._contradiction(reading, found)]
            for name in names:
                self._wide[name] = replace(self._wide[name], subjects=self._wide[name].subjects + 1)
        wide = "SELECT * FROM sfumato_subjects WHERE dataset = :any OR recipient = :any"
        if {one.name: one for one in _subjects(reading, wide, any=self._any)} != self._wide:
            return [_DAMAGED]
        return _tree_problems(reading, root)

    def _narrow(self, reading: LedgerReader, generations: Iterable[int]) -> Iterator[Subject]:
        """The subjects of the entries, in the order of their tokens."""
        query = (
            "SELECT kind, dataset, recipient, number, hash FROM sfumato_entries WHERE generation IN :known "
            "ORDER BY kind, dataset, recipient, number"
        )
        found = reading.connection.stream(query, known=list(generations))
        for (kind, dataset, recipient), rows in groupby(found, key=lambda row: tuple(row[:3])):
            digest, count = "", 0
            for row in rows:
                digest, count, last = running(digest, row.hash), count + 1, row
            yield Subject(kind, dataset, recipient, last.number, last.hash, count, 1, digest)

    def _stored(self, reading: LedgerReader) -> Iterator[Subject]:
        """The stored subjects, in the same order."""
        narrow = (
            "SELECT * FROM sfumato_subjects WHERE dataset <> :any AND recipient <> :any "
            "ORDER BY kind, dataset, recipient"
        )
        return _subjects(reading, narrow, any=self._any)

    def _contradiction(self, reading: LedgerReader, found: Subject | None) -> str:
        if found is None:
            return "the state of a subject without entries contradicts the ledger"
        entry = next(reading.history(after=found.entry - 1))
        name = "/".join(part for part in (entry.kind, entry.dataset, entry.recipient) if part)
        return f"the state of {name}, or of a subject before it, contradicts the ledger"


def _tree_problems(reading: LedgerReader, root: str) -> list[str]:
    """Whether the stored nodes, and the root that the head commits to, are those of the stored subjects."""
    expected = tree(_subjects(reading, "SELECT * FROM sfumato_subjects ORDER BY bucket"))
    stored = dict(reading.connection.stream("SELECT number, hash FROM sfumato_subject_nodes"))
    return [] if expected == stored | {-1: root} else [_DAMAGED]


def _subjects(reading: LedgerReader, query: str, **values: object) -> Iterator[Subject]:
    return map(subject_of, reading.connection.stream(query, **values))
