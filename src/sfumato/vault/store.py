"""The store: a vault's files, in its folder or on any path that fsspec knows. A file's name holds its digest.

Files are written once, appear whole or not at all, and are named by an entry of the ledger afterwards; one that no
entry names is what an interrupted command has left, and the same command adopts it.
"""

from __future__ import annotations

import abc
import contextlib
import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from sfumato.errors import VaultError
from sfumato.ledger.database import is_url
from sfumato.tables.atomic import replacing

_NAME = re.compile(r"(datasets|uploads)/[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")

DIGITS = 16
"""Digits of a digest that enter a file's name."""


class Store(abc.ABC):
    """Files by name; a name is a path of simple parts with slashes."""

    @abc.abstractmethod
    def put(self, name: str, write: Callable[[Path], None]) -> dict[str, str]:
        """Keep what `write` writes, under a name with its digest in place of `{}`; returns name and digest."""

    @abc.abstractmethod
    def fetch(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """A file of that content on this machine, to be read only."""

    @abc.abstractmethod
    def drop(self, name: str) -> None:
        """Remove a file that no entry names."""

    @abc.abstractmethod
    def names(self, folder: str = "") -> list[str]:
        """All files, or those in a folder."""

    def put_text(self, name: str, text: str) -> dict[str, str]:
        """Keep a text."""
        return self.put(name, lambda path: _write(path, text))

    def is_whole(self, file: dict[str, str]) -> bool:
        """Whether a file is there and has its digest."""
        try:
            with self.fetch(file["name"]) as path:
                return self.digest_of(path) == file["sha256"]
        except VaultError:
            return False

    def digest_of(self, path: Path) -> str:
        """The digest of a file that was fetched."""
        return digest_of(path)


class Folder(Store):
    """A folder on this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, write: Callable[[Path], None]) -> dict[str, str]:
        folder = self.root / Path(named(name, "0" * DIGITS)).parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        digests: list[str] = []

        def final(part: Path) -> Path:
            digests.append(digest_of(part))
            return self.root / named(name, digests[0])

        with replacing(self.root / name, final) as part:
            write(part)
            part.chmod(0o600)
        return {"name": named(name, digests[0]), "sha256": digests[0]}

    @contextlib.contextmanager
    def fetch(self, name: str) -> Iterator[Path]:
        path = self.root / named(name)
        if not path.is_file():
            raise missing(name)
        yield path

    def digest_of(self, path: Path) -> str:
        """As it was when last looked at, if the file has not been touched since: its owner cannot set that time."""
        found = path.stat()
        return _seen(path, found.st_ino, found.st_size, found.st_ctime_ns)

    def drop(self, name: str) -> None:
        path = self.root / named(name)
        path.unlink(missing_ok=True)
        if name.startswith("uploads/"):
            with contextlib.suppress(OSError):  # other parts are still there
                path.parent.rmdir()

    def names(self, folder: str = "") -> list[str]:
        walk = os.walk(self.root / folder)  # which passes over what somebody removes meanwhile
        files = (Path(place, name) for place, _, names in walk for name in names if not name.startswith("."))
        return sorted(path.relative_to(self.root).as_posix() for path in files)


class Remote(Store):
    """Any file system that fsspec knows: each file is copied to this machine while it is read."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec  # noqa: PLC0415 - an extra
        except ImportError:
            raise VaultError("a store on another machine needs fsspec; run `pip install 'sfumato[remote]'`") from None
        try:
            self._system, self._root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise VaultError(f"a store must be a folder or a path that fsspec knows: {error}") from None

    def put(self, name: str, write: Callable[[Path], None]) -> dict[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            write(path)
            digest = digest_of(path)
            final = named(name, digest)
            part = f"{self._at(final)}.{secrets.token_hex(4)}.part"
            with self._refusals(final):
                self._system.makedirs(part.rpartition("/")[0], exist_ok=True)
                self._system.put_file(str(path), part)
                self._system.mv(part, self._at(final))
        return {"name": final, "sha256": digest}

    @contextlib.contextmanager
    def fetch(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / Path(name).name
            with self._refusals(name):
                if not self._system.exists(self._at(name)):
                    raise missing(name)
                self._system.get_file(self._at(name), str(path))
            yield path

    def drop(self, name: str) -> None:
        with self._refusals(name):
            self._system.rm_file(self._at(name))

    def names(self, folder: str = "") -> list[str]:
        with self._refusals(""):
            found: list[Any] = self._system.find(f"{self._root.rstrip('/')}/{folder}".rstrip("/"))
        return sorted(str(path).removeprefix(self._root).lstrip("/") for path in found if not path.endswith(".part"))

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{named(name)}"

    @contextlib.contextmanager
    def _refusals(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise VaultError(f"the store could not be used for {name or 'a listing'}: {error}") from None


def named(name: str, digest: str = "") -> str:
    """A file's name with its digest in it; refused if it could lead out of the store."""
    final = name.replace("{}", digest[:DIGITS])
    if not _NAME.fullmatch(final):
        raise VaultError(
            f"a file of a vault must lie in a folder of its dataset or upload, and {final!r} does not; do not trust it"
        )
    return final


def open_store(url: str, home: str | Path) -> Store:
    """The store at a URL or path; a relative one lies in the vault's folder."""
    if is_url(url):
        return Remote(url)
    return Folder(Path(url) if is_url(home) else Path(home) / url)


def files_in(body: dict[str, Any]) -> dict[str, str]:
    """The files, with their digests, that the body of an entry names."""
    return {said["name"]: said["sha256"] for said in body.values() if isinstance(said, dict) and "sha256" in said}


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1024)
def _seen(path: Path, *_: int) -> str:
    return digest_of(path)


def altered(name: str) -> VaultError:
    """The refusal of a file that is not as it was kept."""
    return VaultError(f"the vault's file {name} must be as it was kept, and it was altered; restore it from a backup")


def missing(name: str) -> VaultError:
    """The refusal of a file that is gone."""
    return VaultError(f"the vault must hold its file {name}, and it is gone; restore it from a backup")


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode())
