"""Content-addressed storage of a vault's encrypted files: in its folder, or in any file system that fsspec supports.

A file's name contains its digest. Files are written once and atomically, and an entry of the ledger then refers to
them; a file without such an entry was left by an interrupted command, and repeating that command adopts it.
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

from sfumato.errors import VaultError, install_hint
from sfumato.ledger.chain import ERASED
from sfumato.ledger.database import is_url
from sfumato.tables.atomic import atomic_path

_NAME = re.compile(r"(datasets|uploads)/[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")

REPLACED = "encrypted"
"""The action of an entry whose body has the names of plain files, and the encrypted files that replaced them."""

SCOPES = "scopes"
"""The key, in the body of a tombstone, of the scopes whose data keys were destroyed."""

DIGITS = 16
"""Hexadecimal digits of the digest in a file's name."""


class Store(abc.ABC):
    """Files by name; a name is a relative path."""

    @abc.abstractmethod
    def put(self, name: str, write: Callable[[Path], None]) -> dict[str, str]:
        """Store the file that `write` writes, with its digest in the name instead of `{}`; return name and digest."""

    @abc.abstractmethod
    def fetch(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """A local file with the content of a stored file, to be read only."""

    @abc.abstractmethod
    def head(self, name: str, size: int) -> bytes:
        """The first bytes of a stored file."""

    @abc.abstractmethod
    def drop(self, name: str) -> None:
        """Delete a file that no entry refers to."""

    @abc.abstractmethod
    def names(self, folder: str = "") -> list[str]:
        """The names of all files, or of those in a folder."""

    def scratch(self) -> Path | None:
        """The folder for temporary files; `None` for that of the system."""
        return None

    def is_intact(self, file: dict[str, str]) -> bool:
        """Whether a file exists and has its digest."""
        try:
            with self.fetch(file["name"]) as path:
                return self.digest_of(path) == file["sha256"]
        except VaultError:
            return False

    def digest_of(self, path: Path) -> str:
        """The SHA-256 digest of a fetched file."""
        return digest_of(path)


class FolderStore(Store):
    """A store in a folder of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, write: Callable[[Path], None]) -> dict[str, str]:
        folder = self.root / Path(file_name(name, "0" * DIGITS)).parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        digests: list[str] = []

        def final(part: Path) -> Path:
            digests.append(digest_of(part))
            return self.root / file_name(name, digests[0])

        with atomic_path(self.root / name, final) as part:
            write(part)
            part.chmod(0o600)
        return {"name": file_name(name, digests[0]), "sha256": digests[0]}

    def scratch(self) -> Path:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.root

    @contextlib.contextmanager
    def fetch(self, name: str) -> Iterator[Path]:
        path = self.root / file_name(name)
        if not path.is_file():
            raise missing_file(name)
        yield path

    def head(self, name: str, size: int) -> bytes:
        with self.fetch(name) as path, path.open("rb") as file:
            return file.read(size)

    def digest_of(self, path: Path) -> str:
        """The digest of a file, cached until the file's change time changes: its owner cannot set that time."""
        found = path.stat()
        return _cached_digest(path, found.st_ino, found.st_size, found.st_ctime_ns)

    def drop(self, name: str) -> None:
        path = self.root / file_name(name)
        path.unlink(missing_ok=True)
        if name.startswith("uploads/"):
            with contextlib.suppress(OSError):  # other parts of the upload remain
                path.parent.rmdir()

    def names(self, folder: str = "") -> list[str]:
        walk = os.walk(self.root / folder)  # it ignores files that are deleted meanwhile
        files = (Path(parent, name) for parent, _, names in walk for name in names if not name.startswith("."))
        return sorted(path.relative_to(self.root).as_posix() for path in files)


class ObjectStore(Store):
    """A store in any file system that fsspec supports; a file is copied to this machine while it is read."""

    def __init__(self, url: str) -> None:
        self._url, self._process = url, 0
        self._files: Any = None
        self._root = ""
        _ = self._system  # a URL that cannot be used is refused here

    @property
    def _system(self) -> Any:
        """The file system, made anew in a forked process: its client has threads, which a fork leaves out."""
        if self._process != os.getpid():
            try:
                import fsspec  # noqa: PLC0415 - an extra
            except ImportError:
                raise VaultError(f"a store at a URL needs fsspec; {install_hint('remote')}") from None
            try:
                self._files, self._root = fsspec.core.url_to_fs(self._url)
            except (ValueError, ImportError) as error:
                raise VaultError(f"a store must be a folder or a URL that fsspec supports: {error}") from None
            self._process = os.getpid()
        return self._files

    def put(self, name: str, write: Callable[[Path], None]) -> dict[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            write(path)
            digest = digest_of(path)
            final = file_name(name, digest)
            part = f"{self._at(final)}.{secrets.token_hex(4)}.part"
            with self._translated_errors(final):
                self._system.makedirs(part.rpartition("/")[0], exist_ok=True)
                self._system.put_file(str(path), part)
                self._system.mv(part, self._at(final))
        return {"name": final, "sha256": digest}

    @contextlib.contextmanager
    def fetch(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / Path(name).name
            with self._translated_errors(name):
                if not self._system.exists(self._at(name)):
                    raise missing_file(name)
                self._system.get_file(self._at(name), str(path))
            yield path

    def head(self, name: str, size: int) -> bytes:
        with self._translated_errors(name):
            return bytes(self._system.cat_file(self._at(name), end=size))

    def drop(self, name: str) -> None:
        with self._translated_errors(name):
            self._system.rm_file(self._at(name))

    def names(self, folder: str = "") -> list[str]:
        with self._translated_errors(""):
            found: list[Any] = self._system.find(f"{self._root.rstrip('/')}/{folder}".rstrip("/"))
        return sorted(str(path).removeprefix(self._root).lstrip("/") for path in found if not path.endswith(".part"))

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{file_name(name)}"

    @contextlib.contextmanager
    def _translated_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise VaultError(f"the store could not be used for {name or 'a listing'}: {error}") from None


def file_name(name: str, digest: str = "") -> str:
    """The name of a file with its digest; raises `VaultError` for one that could lead out of the store."""
    final = name.replace("{}", digest[:DIGITS])
    if not _NAME.fullmatch(final):
        raise VaultError(
            f"a file of a vault must be in the folder of its dataset or upload, and {final!r} is not; do not trust it"
        )
    return final


def open_store(url: str, home: str | Path) -> Store:
    """The store at a URL or path; a relative path is below the vault's folder."""
    if is_url(url):
        return ObjectStore(url)
    return FolderStore(Path(url) if is_url(home) else Path(home) / url)


def files_in(body: dict[str, Any]) -> dict[str, str]:
    """The files that the body of an entry refers to, with their digests."""
    return {file["name"]: file["sha256"] for file in body.values() if isinstance(file, dict) and "sha256" in file}


def replaced_in(action: str, body: dict[str, Any]) -> set[str]:
    """The plain files that an entry says are replaced."""
    return set(body) if action == REPLACED else set()


def erased_in(action: str, body: dict[str, Any]) -> set[str]:
    """The scopes that an entry says are erased."""
    return set(body.get(SCOPES, ())) if action == ERASED else set()


def digest_of(path: Path) -> str:
    """The SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1024)
def _cached_digest(path: Path, *_: int) -> str:
    return digest_of(path)


def altered_file(name: str) -> VaultError:
    """The error for a file whose content does not have its digest."""
    return VaultError(
        f"the vault's file {name} must have its recorded digest, and it was altered; restore it from a backup"
    )


def missing_file(name: str) -> VaultError:
    """The error for a file that does not exist."""
    return VaultError(f"the vault's file {name} must exist, and it is gone; restore it from a backup")
