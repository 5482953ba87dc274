"""Backups: a whole vault in one file, its keys still locked, which can be restored anywhere, in either database."""

from __future__ import annotations

import hashlib
import itertools
import json
import secrets
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sfumato.errors import VaultError
from sfumato.keys.lock import Secret
from sfumato.ledger.chain import canonical
from sfumato.ledger.ledger import PAGE, Ledger, LedgerReader
from sfumato.ledger.tables import ENTRIES, GENERATIONS, REVISION, SUBJECTS, SURVEYS, VAULT
from sfumato.tables.atomic import replacing
from sfumato.vault.fingerprints import MARK_BITS
from sfumato.vault.store import Store, files_in
from sfumato.vault.unlocking import masters
from sfumato.vault.verification import Report, check_ledger

_TABLES = {table.name: table for table in (VAULT, GENERATIONS, ENTRIES, SUBJECTS, *SURVEYS.sorted_tables)}
_NOT_ONE = "must be a backup of a vault, whole and unaltered, and is not"


def write_backup(reading: LedgerReader, store: Store, target: Path) -> str:
    """Write a vault to one file; returns the hash of the last entry that it holds."""
    if not target.name or target.is_dir() or (target.exists() and not is_backup(target)):
        raise VaultError(f"a backup replaces nothing but an older backup, and {target} is something else; name another")
    kept: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch, replacing(target) as part:
        ledger = Path(scratch) / "ledger"
        with ledger.open("w", encoding="utf-8") as lines:
            lines.write(canonical({"sfumato backup": REVISION}) + "\n")
            for name, row in _rows(reading):
                lines.write(canonical([name, row]) + "\n")
                if name == ENTRIES.name:
                    kept |= files_in(json.loads(row["body"]))
        with tarfile.open(part, "w") as archive:
            part.chmod(0o600)
            archive.add(ledger, "ledger.jsonl")
            for name, digest in kept.items():
                if not store.is_whole({"name": name, "sha256": digest}):
                    raise VaultError(f"a vault that is damaged is not backed up, and {name} is; run `sfumato verify`")
                with store.fetch(name) as path:
                    archive.add(path, f"files/{name}")
    return reading.head().head


def _rows(reading: LedgerReader) -> Iterator[tuple[str, dict[str, Any]]]:
    """All rows; subjects come after the entries that they point to."""
    for table in (VAULT, GENERATIONS):
        yield from _table(reading, table)
    for entry in reading.history():
        yield ENTRIES.name, {**entry.__dict__, "body": canonical(entry.body)}
    yield from _table(reading, SUBJECTS)
    here = set(sa.inspect(reading.connection).get_table_names())
    for table in SURVEYS.sorted_tables:
        if table.name in here:
            yield from _table(reading, table)


def _table(reading: LedgerReader, table: sa.Table) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in reading.connection.execute(sa.select(table).order_by(*table.primary_key)):  # not as they came in
        yield table.name, dict(row._mapping)  # noqa: SLF001 - its public name


def read_backup(path: Path, ledger: Ledger, store: Store, home: str, secret: Secret | None) -> None:
    """Restore a vault into a database without one, if its keys vouch for it; it appears as a whole, or not at all."""
    try:
        with tarfile.open(path) as archive, ledger.filling() as (connection, write):
            _load(connection, archive)
            reading, report = LedgerReader(connection), Report()
            keys = masters(reading.head(), reading.generations(), secret)
            kept = check_ledger(reading, keys, report)
            if not report.sound:
                raise VaultError(f"{path} {_NOT_ONE}: {report.problems[0]}; use another backup")
            for member in archive:
                if member.isfile() and member.name.startswith("files/"):
                    _restore(archive, member, kept, store)
            if kept:
                raise VaultError(f"{path} {_NOT_ONE}: {min(kept)} is missing; use another backup")
            writing = write(keys)
            writing.move(home)
            # what was granted after the backup is forgotten: nobody may get a mark that somebody has
            writing.append("restored", "vault", {"marks": secrets.randbits(MARK_BITS)})
    except (tarfile.TarError, KeyError, TypeError, ValueError, EOFError, sa.exc.IntegrityError):
        raise VaultError(f"{path} {_NOT_ONE}; use another backup") from None


def _load(connection: Connection, archive: tarfile.TarFile) -> None:
    """Fill the tables."""
    lines = archive.extractfile("ledger.jsonl")
    if lines is None or json.loads(lines.readline()).get("sfumato backup") != REVISION:
        raise ValueError("another format")
    for name, rows in _pages(lines):
        if name in SURVEYS.tables:
            SURVEYS.create_all(connection, checkfirst=True)
        connection.execute(_TABLES[name].insert(), rows)


def is_backup(path: Path) -> bool:
    """Whether a file is a backup of a vault."""
    try:
        with tarfile.open(path) as archive:
            return archive.next() is not None and "ledger.jsonl" in archive.getnames()[:1]
    except (tarfile.TarError, OSError, EOFError):
        return False


def _pages(lines: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The rows of each table, some at a time."""
    said = map(json.loads, lines)
    for name, group in itertools.groupby(said, key=lambda pair: pair[0]):
        while page := [row for _, row in itertools.islice(group, PAGE)]:
            yield name, page


def _restore(archive: tarfile.TarFile, member: tarfile.TarInfo, kept: dict[str, str], store: Store) -> None:
    name = member.name.removeprefix("files/")
    content = archive.extractfile(member)
    if content is None or name not in kept:
        raise ValueError("a file that no entry names")
    digest = hashlib.sha256()

    def write(path: Path) -> None:
        with path.open("wb") as file:
            while chunk := content.read(1 << 20):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != kept[name]:
            raise ValueError("an altered file")

    store.put(name, write)
    del kept[name]
