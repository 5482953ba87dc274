"""Uploads of tables in parts, kept in the vault's store so that any server worker can assemble them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sfumato.errors import SourceError, UnknownSubject, nearest
from sfumato.keys.encrypted_file import Spill
from sfumato.service.api.schemas import TableSource
from sfumato.service.concatenation import ConcatenatedFile
from sfumato.service.settings import Settings
from sfumato.service.sources import reading_source
from sfumato.tables.readers import TableFile, format_of
from sfumato.vault.encrypted_store import EncryptedStore

_ID = re.compile(r"(\d{8})-[0-9a-f]{24}(\.[a-z]+)")
_EXPIRY = timedelta(days=2)
"""Uploads older than this are deleted."""


def create(store: EncryptedStore, name: str) -> str:
    """Start an upload of a file with this name, and delete expired uploads; returns the new upload's id."""
    suffix = Path(name).suffix.lower()
    format_of(f"x{suffix}")
    oldest = f"{datetime.now(UTC) - _EXPIRY:%Y%m%d}"
    for stored in store.names("uploads"):
        if stored.removeprefix("uploads/")[:8] < oldest:
            store.drop(stored)
    return f"{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(12)}{suffix}"


def put_part(store: EncryptedStore, upload: str, number: int, content: Spill) -> None:
    """Store a part, and delete an earlier one with the same number."""
    prefix = f"{_folder(upload)}part-{number:05d}-"
    stored = store.put_spill(f"{prefix}{{}}", content)
    for name in _parts(store, upload):
        if name != stored["name"] and name.startswith(prefix):
            store.drop(name)


async def receive_part(store: EncryptedStore, upload: str, number: int, chunks: AsyncIterator[bytes]) -> None:
    """Store a part that arrives in a request body; it is encrypted while it arrives."""
    _folder(upload)
    with Spill() as content:
        async for chunk in chunks:
            content.writer.write(chunk)
        await asyncio.to_thread(put_part, store, upload, number, content)


def delete(store: EncryptedStore, upload: str) -> None:
    """Delete all parts of an upload."""
    for name in _parts(store, upload):
        store.drop(name)


@contextlib.contextmanager
def open_table(store: EncryptedStore, settings: Settings, given: TableSource) -> Iterator[Path | TableFile | str]:
    """An uploaded table, read from its parts, the file of a table in the folder of `--tables`, or a source's URL."""
    upload, path, source = given.upload, given.path, given.source
    if [upload, path, source].count(None) != 2:
        raise SourceError("a table must be given as an upload, as a path or as a source; give exactly one of them")
    if path is not None:
        yield _inside(settings.tables, path)
        return
    if source is not None:
        if source not in settings.sources:
            raise SourceError(f"a source must be one of --sources; {nearest(source, list(settings.sources))}")
        with reading_source(source, settings.sources[source]) as url:
            yield url
        return
    parts = _parts(store, str(upload))
    if [_number(name) for name in parts] != list(range(1, len(parts) + 1)) or not parts:
        raise UnknownSubject("an upload must have all its parts, numbered from 1, and some are missing; send them")
    with contextlib.ExitStack() as stack:
        openers = [stack.enter_context(store.fetch(name)) for name in parts]
        yield TableFile(f"upload{Path(str(upload)).suffix}", lambda: ConcatenatedFile(openers))


def _inside(root: Path | None, path: str) -> Path:
    """The file at a path relative to a folder; refused if it is outside that folder."""
    if root is None:
        raise SourceError(
            "tables can be registered by path only if the service was started with --tables; upload the table"
        )
    file = (root / path).resolve()
    if not file.is_relative_to(root.resolve()) or not file.is_file():
        raise SourceError(
            f"a path must lead to a table under the folder of --tables, and {path!r} does not; "
            "correct it, or upload the table"
        )
    return file


def _folder(upload: str) -> str:
    if not _ID.fullmatch(upload):
        raise UnknownSubject("there is no such upload; create one first")
    return f"uploads/{upload}/"


def _parts(store: EncryptedStore, upload: str) -> list[str]:
    return sorted(store.names(_folder(upload).rstrip("/")))


def _number(name: str) -> int:
    return int(name.rpartition("/")[2].split("-")[1])
