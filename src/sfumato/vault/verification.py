"""Verification: that the ledger is whole, that the state agrees with it, and that every file is as it was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from sfumato.errors import SfumatoError, VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import START, Authenticator, Entry
from sfumato.ledger.ledger import Head, Ledger, LedgerReader, Query
from sfumato.ledger.tables import ENTRIES, SUBJECTS
from sfumato.release.certificate import check
from sfumato.tables.readers import FORMATS
from sfumato.vault.store import Store, files_in

_PREFIX = 12
"""Digits of a hash that are enough to tell an entry."""


@dataclass
class Report:
    """What was checked, and what is wrong."""

    entries: int = 0
    files: int = 0
    copies: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    ledger: Ledger,
    store: Store,
    keys: Mapping[int, Key],
    outbox: Path | None,
    *,
    contains: str | None = None,
    files: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Check everything, in memory that does not grow with the ledger."""
    report = Report()
    with ledger.reading(snapshot=True) as reading:
        kept = check_ledger(reading, keys, report, contains, progress)
        if outbox is not None and outbox.is_dir() and files:
            _copies(reading, outbox, report)
    if files:
        _files(store, kept, report, progress)
    return report


def check_ledger(
    reading: LedgerReader,
    keys: Mapping[int, Key],
    report: Report,
    contains: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, str]:
    """Check the entries and the state that they say; returns the files that they name, with their digests."""
    if contains is not None and len(contains) < _PREFIX:
        raise VaultError(f"a hash must have at least {_PREFIX} of its digits to be told from others, got {contains!r}")
    head, found = reading.head(), contains is None
    kept: dict[str, str] = {}
    for entry in _chain(reading, head, keys, report, progress):
        found = found or (contains is not None and entry.hash.startswith(contains))
        kept |= files_in(entry.body)
    if not found:
        report.problems.append(f"no entry has the hash {contains}: entries were replaced since it was written down")
    report.problems += _state(reading, head)
    return kept


def _chain(
    reading: LedgerReader, head: Head, keys: Mapping[int, Key], report: Report, progress: Callable[[int], None] | None
) -> Iterator[Entry]:
    """All entries, each checked against the one before it."""
    previous = START
    lost: set[int] = set()
    derived = {number: Authenticator(key) for number, key in keys.items()}
    for entry in reading.history():
        report.entries += 1
        if progress and report.entries % 1000 == 0:
            progress(1000)
        if entry.number != report.entries:
            report.problems.append(f"entry {report.entries} is missing; the next one found is {entry.number}")
            report.entries = entry.number
        if entry.digest(previous) != entry.hash:
            report.problems.append(f"entry {entry.number} does not follow from the one before it: edited or moved")
        if entry.generation not in derived:
            lost.add(entry.generation)
        elif derived[entry.generation].of(entry.hash) != entry.mac:
            report.problems.append(f"entry {entry.number} was not written by this vault: its code is wrong")
        previous = entry.hash
        yield entry
    if (report.entries, previous) != (head.entries, head.head):
        report.problems.append(f"the ledger must end with entry {head.entries}, and it ends with {report.entries}")
    if head.generation not in derived or head.seal != head.sealed(derived[head.generation], reading.generations()):
        report.problems.append("the head of the ledger was not sealed by this vault")
    for number in sorted(lost):
        report.notes.append(f"the key of generation {number} is lost: who wrote its entries cannot be checked")


def _state(reading: LedgerReader, head: Head) -> list[str]:
    """Where the state does not point to the latest entry about a subject, or miscounts them."""
    names = ("kind", "dataset", "recipient")
    last = sa.select(*(ENTRIES.c[name] for name in names), sa.func.max(ENTRIES.c.number).label("entry"))
    last_of = last.group_by(*(ENTRIES.c[name] for name in names)).subquery()
    both = sa.and_(*(SUBJECTS.c[name] == last_of.c[name] for name in names))
    wrong = sa.select(last_of).outerjoin(SUBJECTS, both).where(SUBJECTS.c.entry.is_distinct_from(last_of.c.entry))
    stray = sa.select(SUBJECTS).outerjoin(last_of, both).where(last_of.c.entry.is_(None))
    problems = []
    for row in reading.connection.execute(sa.union(wrong, stray).limit(20)):
        subject = "/".join(part for part in (row.kind, row.dataset, row.recipient) if part)
        problems.append(f"the state of {subject} is not what the ledger says")
    counts = reading.connection.execute(sa.select(SUBJECTS.c.kind, sa.func.count()).group_by(SUBJECTS.c.kind))
    if {kind: count for kind, count in counts} != head.counts:  # noqa: C416 - rows are not pairs to dict()
        problems.append("the counts of the vault are not those of its subjects")
    return problems


def _files(store: Store, kept: dict[str, str], report: Report, progress: Callable[[int], None] | None) -> None:
    there = set(store.names())
    for name, digest in kept.items():
        report.files += 1
        if name not in there:
            report.problems.append(f"the file {name} is gone")
        elif not store.is_whole({"name": name, "sha256": digest}):
            report.problems.append(f"the file {name} was altered")
        if progress:
            progress(1)
    stray = sorted(name for name in there - set(kept) if name.startswith("datasets/"))
    if stray and report.sound:  # else an entry that names them may be the one that was altered
        report.notes.append(
            f"{len(stray)} files that no entry names, {stray[0]} among them: left by a command that was interrupted; "
            "repeating it adopts them, else they can be deleted"
        )


def _copies(reading: LedgerReader, outbox: Path, report: Report) -> None:
    """Each copy in the outbox must be recorded, as it was released, and where it was put."""
    public = {generation.public for generation in reading.generations()}
    for path in sorted(p for p in outbox.rglob("*") if p.suffix in FORMATS and not p.name.startswith(".")):
        report.copies += 1
        shown = path.relative_to(outbox)
        try:
            manifest = check(str(path))
        except SfumatoError as error:
            report.problems.append(f"the copy {shown} is not as it was released: {error}")
            continue
        place = f"{manifest.dataset}/{manifest.recipient}.v{manifest.version}{path.suffix}"
        query = Query(kind="release", dataset=manifest.dataset, recipient=manifest.recipient)
        said = [entry.body for entry in reading.entries(query)]
        recorded = {(body.get("digest"), body.get("version"), body.get("fidelity")) for body in said}
        if (manifest.digest, manifest.version, manifest.fidelity) not in recorded or manifest.signer not in public:
            report.problems.append(f"the copy {shown} is not in the ledger")
        elif shown.as_posix() != place:
            report.problems.append(f"the copy {shown} is not what its name says: it was released as {place}")
