"""Uploads: a table in parts, which lie in the vault's store until a dataset is made of them, so that any worker can."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sfumato.errors import SourceError, UnknownSubject
from sfumato.service.settings import Settings
from sfumato.tables.readers import format_of
from sfumato.vault.store import Store

_ID = re.compile(r"(\d{8})-[0-9a-f]{24}(\.[a-z]+)")
_KEPT = timedelta(days=2)
"""Older uploads were given up."""


def begin(store: Store, name: str) -> str:
    """A new upload for a file of that name; returns its id."""
    ending = Path(name).suffix.lower()
    format_of(f"x{ending}")
    oldest = f"{datetime.now(UTC) - _KEPT:%Y%m%d}"
    for found in store.names("uploads"):
        if found.removeprefix("uploads/")[:8] < oldest:
            store.drop(found)
    return f"{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(12)}{ending}"


def put(store: Store, upload: str, number: int, content: Path) -> None:
    """Keep a part, in place of an earlier one of that number."""
    said = store.put(f"{_folder(upload)}part-{number:05d}-{{}}", lambda path: _copied(content, path))
    for name in _parts(store, upload):
        if name != said["name"] and name.startswith(f"{_folder(upload)}part-{number:05d}-"):
            store.drop(name)


async def receive(store: Store, upload: str, number: int, chunks: AsyncIterator[bytes]) -> None:
    """Keep a part that comes over the net."""
    _folder(upload)
    with tempfile.NamedTemporaryFile() as content:
        async for chunk in chunks:
            content.write(chunk)
        content.flush()
        await asyncio.to_thread(put, store, upload, number, Path(content.name))


def drop(store: Store, upload: str) -> None:
    """Forget an upload."""
    for name in _parts(store, upload):
        store.drop(name)


@contextlib.contextmanager
def table(store: Store, settings: Settings, upload: str | None, path: str | None) -> Iterator[Path]:
    """The table that was uploaded, put together, or the one at a path that the operator opened."""
    if (upload is None) == (path is None):
        raise SourceError("a table must be an upload or a path; name one of them")
    if path is not None:
        yield _inside(settings.tables, path)
        return
    parts = _parts(store, str(upload))
    if [_number(name) for name in parts] != list(range(1, len(parts) + 1)) or not parts:
        raise UnknownSubject(
            "an upload must have all its parts, from the first one on, and this one has not; send it again"
        )
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / f"upload{Path(str(upload)).suffix}"
        with whole.open("wb") as out:
            for name in parts:
                with store.fetch(name) as part, part.open("rb") as content:
                    shutil.copyfileobj(content, out)
        yield whole


def _inside(root: Path | None, path: str) -> Path:
    if root is None:
        raise SourceError("tables are registered by path only if the service was started with --tables; upload it")
    found = (root / path).resolve()
    if not found.is_relative_to(root.resolve()) or not found.is_file():
        raise SourceError(
            f"a path must lead to a table under the folder that the service opened, and {path!r} does not"
        )
    return found


def _folder(upload: str) -> str:
    if not _ID.fullmatch(upload):
        raise UnknownSubject("there is no such upload; begin one")
    return f"uploads/{upload}/"


def _parts(store: Store, upload: str) -> list[str]:
    return sorted(store.names(_folder(upload).rstrip("/")))


def _number(name: str) -> int:
    return int(name.rpartition("/")[2].split("-")[1])


def _copied(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
