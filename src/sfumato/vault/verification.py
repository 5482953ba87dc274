"""Integrity verification of a vault: its hash chain, its state, its stored files, and the copies in its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.errors import SfumatoError, VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import START, Authenticator, Entry
from sfumato.ledger.ledger import ACCESS, Ledger
from sfumato.ledger.reader import Head, LedgerReader, Query
from sfumato.ledger.subject_index import MemoryIndex
from sfumato.ledger.tables import ACCESSES
from sfumato.release.certificate import check
from sfumato.tables.readers import FORMATS
from sfumato.vault.data_keys import altered_keys, scopes
from sfumato.vault.encrypted_store import is_encrypted, is_of_generation, scope_of
from sfumato.vault.index_verification import IndexVerification
from sfumato.vault.store import Store, erased_in, files_in, replaced_in

_PREFIX = 12
"""The least number of digits of a hash that identify an entry."""


@dataclass
class VerificationReport:
    """The numbers of verified items, and the problems found."""

    entries: int = 0
    accesses: int = 0
    files: int = 0
    copies: int = 0
    releases: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether no problem was found."""
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
) -> VerificationReport:
    """Verify a complete vault, in memory that does not grow with the ledger."""
    report = VerificationReport()
    with ledger.reading(keys, trusting=True) as reading:
        stored = check_ledger(reading, keys, report, contains, progress)
        if outbox is not None and outbox.is_dir() and files:
            _verify_copies(reading, outbox, report)
    if files:
        _verify_files(store, stored, report, progress)
        elsewhere = report.releases - report.copies
        if elsewhere > 0:
            report.notes.append(
                f"{elsewhere:,} of {report.releases:,} released copies are not in the vault's folder, as when "
                "they were written elsewhere or sent: `sfumato check FILE` verifies each"
            )
    else:
        report.notes.append("not verified: tables and copies (leave out --quick)")
    return report


def check_ledger(
    reading: LedgerReader,
    keys: Mapping[int, Key],
    report: VerificationReport,
    contains: str | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    state: bool = True,
) -> dict[str, str]:
    """Verify the entries and the state, and return the files that the entries refer to, with their digests.

    Args:
        state: whether to compare the stored index of subjects too; a backup has none.

    """
    if contains is not None and len(contains) < _PREFIX:
        raise VaultError(f"a hash must be given with at least {_PREFIX} of its digits, got {contains!r}")
    head, found = reading.head(), _Found(contains)
    index = IndexVerification(reading.cipher.token) if state else MemoryIndex(reading.cipher.token)
    for entry in _verified_chain(reading, head, keys, report, progress):
        if entry.is_readable:
            index.record(entry)
            found.record(entry)
        found.contains = None if entry.hash.startswith(found.contains or "-") else found.contains
    if found.contains is not None:
        report.problems.append(f"no entry has the hash {contains}: entries were replaced since it was noted")
    report.releases = found.releases
    _verify_accesses(reading, head, keys, found.start, report)
    report.problems += _index_problems(head, index) if isinstance(index, MemoryIndex) else index.problems(reading, keys)
    names = {reading.cipher.token(name): name for name in found.datasets}
    _verify_data_keys(reading, keys, found.stored, found.erased, report, names)
    earlier = [name for name in found.stored if is_encrypted(name) and not is_of_generation(name, head.generation)]
    if earlier:
        report.notes.append(f"{len(earlier)} files are encrypted with an earlier key: run `sfumato encrypt`")
    return found.stored


@dataclass
class _Found:
    """What the entries say."""

    contains: str | None
    """A hash that was not found yet."""
    files: dict[str, str] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    datasets: set[str] = field(default_factory=set)
    start: tuple[int, str] = (0, START)
    """The number and the hash of the last record of the access log that was erased."""
    releases: int = 0

    def record(self, entry: Entry) -> None:
        """Add an entry."""
        self.files |= files_in(entry.body)
        self.replaced |= replaced_in(entry.action, entry.body)
        self.erased |= erased_in(entry.action, entry.body)
        self.datasets.add(entry.dataset)
        self.releases += entry.action == "released"
        if entry.kind == ACCESS:  # the tombstone of earlier records
            self.start = entry.body["number"], entry.body["hash"]

    @property
    def stored(self) -> dict[str, str]:
        """The files that must exist, with their digests."""
        left = {name: digest for name, digest in self.files.items() if name not in self.replaced}
        return {name: digest for name, digest in left.items() if scope_of(name) not in self.erased}


def _verify_data_keys(
    reading: LedgerReader,
    keys: Mapping[int, Key],
    stored: dict[str, str],
    erased: set[str],
    report: VerificationReport,
    names: Mapping[str, str],
) -> None:
    """Check that the keys of encrypted files are there, unless they were lost, and as the vault wrapped them."""

    def named(scope: str) -> str:
        return re.sub(r"[a-z2-7]{16}", lambda found: names.get(found[0], found[0]), scope.partition("@")[0])

    report.problems += [f"the key of {named(scope)} was altered" for scope in altered_keys(reading, keys)]
    report.problems += [
        f"the key of {named(scope)} exists again, though it was erased: somebody inserted an old one; erase it again"
        for scope in sorted(erased & scopes(reading))
    ]
    needed = {scope_of(name) for name in stored if is_encrypted(name) and name.startswith("datasets/")}
    was_lost = any(generation.lost for generation in reading.generations())
    missing = needed - scopes(reading)
    text = "the files of {} can no longer be read: the key that encrypts them is"
    if was_lost:
        datasets = sorted({"/".join(named(scope).split("/")[:2]) for scope in missing})
        report.notes += [f"{text.format(dataset)} lost" for dataset in datasets]
    else:
        report.problems += [f"{text.format(named(scope))} gone" for scope in sorted(missing)]


def _verified_chain(
    reading: LedgerReader,
    head: Head,
    keys: Mapping[int, Key],
    report: VerificationReport,
    progress: Callable[[int], None] | None,
) -> Iterator[Entry]:
    """All entries, each verified against the one before it."""
    previous = START
    lost: set[int] = set()
    authenticators = {number: Authenticator(key) for number, key in keys.items()}
    for entry in reading.history():
        report.entries += 1
        if progress and report.entries % 1000 == 0:
            progress(1000)
        if entry.number != report.entries:
            report.problems.append(f"entry {report.entries} is missing; the next one found is {entry.number}")
            report.entries = entry.number
        is_lost = entry.generation not in authenticators
        if entry.digest(previous) != entry.hash and (entry.is_readable or not is_lost):
            report.problems.append(f"entry {entry.number} does not continue the hash chain: it was edited or moved")
        if is_lost:
            lost.add(entry.generation)
        elif authenticators[entry.generation].mac(entry.hash) != entry.mac:
            report.problems.append(
                f"entry {entry.number} was not written by this vault: its authentication code is wrong"
            )
        previous = entry.hash
        yield entry
    if (report.entries, previous) != (head.entries, head.head):
        report.problems.append(f"the ledger must end with entry {head.entries}, and it ends with {report.entries}")
    if head.generation not in authenticators or head.seal != head.expected_seal(
        authenticators[head.generation], reading.generations()
    ):
        report.problems.append("the head of the ledger was not sealed by this vault")
    for number in sorted(lost):
        report.notes.append(f"the key of generation {number} is lost: its entries cannot be read or authenticated")


def _verify_accesses(
    reading: LedgerReader,
    head: Head,
    keys: Mapping[int, Key],
    start: tuple[int, str],
    report: VerificationReport,
) -> None:
    """Check the access log, from the last record that was erased to that which the head names."""
    number, previous = start
    authenticators = {number: Authenticator(key) for number, key in keys.items()}
    for access in reading.history(ACCESSES):
        number, report.accesses = number + 1, report.accesses + 1
        authenticator = authenticators.get(access.generation)
        is_lost = authenticator is None and not access.is_readable
        if (
            access.number != number
            or (access.digest(previous) != access.hash and not is_lost)
            or (authenticator is not None and authenticator.mac(access.hash) != access.mac)
        ):
            report.problems.append(f"record {number} of the access log was edited, moved or removed")
            return
        previous = access.hash
    if (number, previous) != (head.accesses, head.access_head or START):
        report.problems.append(f"the access log must end with record {head.accesses}, and it ends with {number}")


def _index_problems(head: Head, index: MemoryIndex) -> list[str]:
    """Whether the head commits to the index of the entries."""
    if not head.root or head.root == index.nodes()[-1]:
        return []
    return ["the index in the head of the ledger is not that of its entries"]


def _verify_files(
    store: Store, stored: dict[str, str], report: VerificationReport, progress: Callable[[int], None] | None
) -> None:
    """Check that every file that an entry refers to exists and has its digest."""
    existing = set(store.names())
    for name, digest in stored.items():
        report.files += 1
        if name not in existing:
            report.problems.append(f"the file {name} is gone")
        elif not store.is_intact({"name": name, "sha256": digest}):
            report.problems.append(f"the file {name} was altered")
        if progress:
            progress(1)
    plain = sorted(name for name in stored if not is_encrypted(name))
    if plain:
        report.notes.append(
            f"{len(plain)} files of an earlier version are not encrypted, e.g. {plain[0]}: run `sfumato encrypt`"
        )
    stray = sorted(name for name in existing - set(stored) if name.startswith("datasets/"))
    if stray and report.sound:  # else the entry that refers to them may have been altered
        report.notes.append(
            f"{len(stray)} files that no entry refers to, e.g. {stray[0]}: left by an interrupted command; repeating "
            "it adopts them, else they can be deleted"
        )


def _verify_copies(reading: LedgerReader, outbox: Path, report: VerificationReport) -> None:
    """Check that each copy in the outbox is unaltered, recorded in the ledger, and at its path."""
    public = {generation.public for generation in reading.generations()}
    for path in sorted(p for p in outbox.rglob("*") if p.suffix in FORMATS and not p.name.startswith(".")):
        report.copies += 1
        relative = path.relative_to(outbox)
        try:
            manifest = check(str(path))
        except SfumatoError as error:
            report.problems.append(f"the copy {relative} was altered: {error}")
            continue
        expected = f"{manifest.dataset}/{manifest.recipient}.v{manifest.version}{path.suffix}"
        query = Query(kind="release", dataset=manifest.dataset, recipient=manifest.recipient)
        bodies = [entry.body for entry in reading.entries(query)]
        recorded = {(body.get("digest"), body.get("version"), body.get("fidelity")) for body in bodies}
        if (manifest.digest, manifest.version, manifest.fidelity) not in recorded or manifest.signer not in public:
            report.problems.append(f"the copy {relative} is not in the ledger")
        elif relative.as_posix() != expected:
            report.problems.append(f"the copy {relative} has the wrong name: it was released as {expected}")
