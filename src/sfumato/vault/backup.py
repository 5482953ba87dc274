"""Backups: a complete vault in one file, with wrapped keys, to be restored in a folder or in a database."""

from __future__ import annotations

import hashlib
import itertools
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from sfumato.errors import VaultError
from sfumato.keys.lock import Secret
from sfumato.ledger.chain import canonical
from sfumato.ledger.connection import Connection, driver_errors
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.migrations import EARLIER, REVISION
from sfumato.ledger.reader import PAGE, LedgerReader
from sfumato.ledger.tables import KEYS, SUBJECTS, SURVEY_TABLES, SURVEYS, VAULT
from sfumato.tables.atomic import atomic_path
from sfumato.vault.encrypted_store import scope_of
from sfumato.vault.fingerprints import random_offset
from sfumato.vault.grants import FINGERPRINT_OFFSET
from sfumato.vault.store import Store, erased_in, files_in, replaced_in
from sfumato.vault.unlocking import unwrap_master_keys
from sfumato.vault.verification import VerificationReport, check_ledger

_DERIVED = (SUBJECTS,)
"""Tables in backups of earlier versions that are computed from the entries."""
_DEFAULTS = {VAULT: {"root": "", "accesses": 0, "access_head": ""}}
"""Columns that the rows in backups of earlier versions lack."""
_INVALID = "must be a complete and unaltered backup of a vault, and is not"

_MALFORMED = (
    tarfile.TarError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading a malformed backup raises."""

_MODE: Literal["r:"] = "r:"
"""Backups are read without decompression, as they are written: a small compressed file can hold gigabytes."""


def write_backup(reading: LedgerReader, store: Store, target: Path) -> str:
    """Write a vault to one file, and return the hash of the last entry in it."""
    if not target.name or target.is_dir() or (target.exists() and not is_backup(target)):
        raise VaultError(f"a backup overwrites only an older backup, and {target} is another file; choose another name")
    files: dict[str, str] = {}
    omitted: set[str] = set()
    erased: set[str] = set()
    with tempfile.TemporaryDirectory() as scratch, atomic_path(target) as part:
        ledger = Path(scratch) / "ledger"
        with ledger.open("w", encoding="utf-8") as lines:
            lines.write(canonical({"sfumato backup": REVISION}) + "\n")
            for name, row in _rows(reading):
                lines.write(canonical([name, row]) + "\n")
        for entry in reading.history():
            files |= files_in(entry.body)
            omitted |= replaced_in(entry.action, entry.body)
            erased |= erased_in(entry.action, entry.body)
        with tarfile.open(part, "w") as archive:
            part.chmod(0o600)
            archive.add(ledger, "ledger.jsonl")
            for name, digest in files.items():
                if name in omitted or scope_of(name) in erased:
                    continue
                if not store.is_intact({"name": name, "sha256": digest}):
                    raise VaultError(
                        f"the vault's files must be intact for a backup, and {name} is damaged; run `sfumato verify`"
                    )
                with store.fetch(name) as path:
                    archive.add(path, f"files/{name}")
    return reading.head().head


def _rows(reading: LedgerReader) -> Iterator[tuple[str, dict[str, Any]]]:
    """All rows of the database, but for the index of subjects, which is computed from the entries."""
    existing = reading.connection.tables()
    for table, key in KEYS.items():
        if table in existing:  # in the order of the key: that of arrival is not revealed
            for row in reading.connection.stream(f"SELECT * FROM {table} ORDER BY {key}"):  # noqa: S608 - our own names
                yield table, row._asdict()


def read_backup(path: Path, ledger: Ledger, store: Store, store_location: str, secret: Secret | None) -> None:
    """Restore a backup, if its keys authenticate it, into a database without a vault, in one transaction."""
    try:
        with tarfile.open(path, _MODE) as archive, ledger.restoring() as (connection, write):
            _load(connection, archive)
            reading, report = LedgerReader(connection), VerificationReport()
            keys = unwrap_master_keys(reading.head(), reading.generations(), secret)
            files = check_ledger(LedgerReader(connection, keys, trusting=True), keys, report, state=False)
            if not report.sound:
                raise VaultError(f"{path} {_INVALID}: {report.problems[0]}; use another backup")
            for member in archive:
                if member.isfile() and member.name.startswith("files/"):
                    _restore(archive, member, files, store)
            if files:
                raise VaultError(f"{path} {_INVALID}: {min(files)} is missing; use another backup")
            writing = write(keys)
            writing.trust_entries()  # they were verified above
            writing.set_store(store_location)
            # the backup lacks later grants: nobody may get a fingerprint that somebody else has
            writing.append("restored", "vault", {FINGERPRINT_OFFSET: random_offset()})
    except _MALFORMED:
        raise VaultError(f"{path} {_INVALID}; use another backup") from None


def _load(connection: Connection, archive: tarfile.TarFile) -> None:
    """Load the rows of a backup into the tables."""
    lines = archive.extractfile("ledger.jsonl")
    if lines is None or json.loads(lines.readline()).get("sfumato backup") not in (*EARLIER, REVISION):
        raise ValueError("another format")
    for name, rows in _pages(lines):
        if name in SURVEYS:
            connection.define(SURVEY_TABLES)
        if name in KEYS:
            complete = [{**_DEFAULTS.get(name, {}), **row} for row in rows]
            if not complete[0].keys() <= connection.columns(name):
                raise ValueError("other columns")
            try:
                connection.insert(name, *complete)
            except driver_errors("IntegrityError", "DataError", "InterfaceError", "ProgrammingError") as error:
                raise ValueError("rows that the vault never wrote") from error
        elif name not in _DERIVED:
            raise ValueError("another table")


def is_backup(path: Path) -> bool:
    """Whether a file is a backup of a vault."""
    try:
        with tarfile.open(path, _MODE) as archive:
            return archive.next() is not None and "ledger.jsonl" in archive.getnames()[:1]
    except (tarfile.TarError, OSError, EOFError):
        return False


def _pages(lines: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The rows of each table, in pages."""
    parsed = map(json.loads, lines)
    for name, group in itertools.groupby(parsed, key=lambda pair: pair[0]):
        while page := [row for _, row in itertools.islice(group, PAGE)]:
            yield name, page


def _restore(archive: tarfile.TarFile, member: tarfile.TarInfo, files: dict[str, str], store: Store) -> None:
    """Restore a file that an entry refers to, and remove it from `files`."""
    name = member.name.removeprefix("files/")
    content = archive.extractfile(member)
    if content is None or name not in files:
        raise ValueError("a file that no entry refers to")
    digest = hashlib.sha256()

    def write(path: Path) -> None:
        with path.open("wb") as file:
            while chunk := content.read(1 << 20):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != files[name]:
            raise ValueError("an altered file")

    store.put(name, write)
    del files[name]
