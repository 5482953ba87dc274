"""The encrypted store of a vault: its files are encrypted before they reach a disk or a bucket, and read in memory.

The digests in ledger entries are those of the encrypted bytes, so that integrity checks and backups need no data key.
The same content under the same name gives the same bytes again, until there is a new master key. Files under an earlier
key, and the plain ones of version 0.2 and earlier ones, stay readable until `encrypt_files` replaces them, and the
ledger records what by.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.errors import ReleaseError, is_of_arrow
from sfumato.keys.encrypted_file import HEADER, EncryptedReader, EncryptedWriter, FileCipher, Spill, is_encrypted_under
from sfumato.keys.file_reader import BinaryFile
from sfumato.keys.key import Key
from sfumato.ledger.ledger import Ledger
from sfumato.vault.data_keys import DataKeys, PinnedDataKeys
from sfumato.vault.store import DIGITS, Store, altered_file, file_name

SUFFIX = ".encrypted"
"""The end of the names of encrypted files: a name in the ledger says what its file must be."""

Opener = Callable[[], BinaryFile]
"""Opens a stored file as a binary file to read from at any position; every call starts anew."""

_VERSION = re.compile(r"(\d+)-")
"""How the names of the files of one version begin."""

_GENERATION = re.compile(rf"\.(\d+){re.escape(SUFFIX)}")
"""How the names of the encrypted files of datasets end: with the generation of their key."""

_DIGEST = re.compile(rf"[0-9a-f]{{{DIGITS}}}(?=[^/]*$)")


@dataclass(frozen=True)
class EncryptedStore:
    """The files of a vault by name, encrypted under the keys of their datasets or of uploads."""

    files: Store
    """The encrypted bytes."""
    keys: DataKeys
    ledger: Ledger

    def pinned(self) -> EncryptedStore:
        """The same store for one command, which reads each key once; what it writes is checked when it is recorded."""
        return replace(self, keys=PinnedDataKeys.of(self.keys))

    def folder(self, dataset: str) -> str:
        """The folder of a dataset, whose name nobody can read from it."""
        return f"datasets/{self.keys.token(dataset)}"

    def put(self, name: str, write: Callable[[Any], None]) -> dict[str, str]:
        """Store what `write` writes, with the digest of the file in its name for `{}`; return name and digest."""
        file_name(name, "0" * DIGITS)
        try:
            with Spill(self.files.scratch()) as spill:
                write(spill.writer)
                return self.put_spill(name, spill)
        except Exception as error:
            if not (isinstance(error, OSError) or is_of_arrow(error)):
                raise
            raise ReleaseError(f"{name} could not be stored: {str(error).splitlines()[0]}") from None

    def put_text(self, name: str, text: str) -> dict[str, str]:
        """Store a text."""
        return self.put(name, lambda file: file.write(text.encode()))

    def put_spill(self, name: str, spill: Spill) -> dict[str, str]:
        """Store the content of a temporary file: it is read twice, first for its digest, which determines its key."""
        name = f"{name}.{self.keys.generation()}{SUFFIX}" if name.startswith("datasets/") else f"{name}{SUFFIX}"
        key = self.keys.get_or_create(scope_of(file_name(name, "0" * DIGITS)))
        content = spill.reader()
        cipher = FileCipher.of(key, hashlib.file_digest(content, "sha256").digest(), name)
        content.seek(0)

        def write(path: Path) -> None:
            with path.open("wb") as file, EncryptedWriter(file, cipher) as encrypted:
                shutil.copyfileobj(content, encrypted, cipher.segment)

        return self.files.put(name, write)

    @contextlib.contextmanager
    def open(self, file: dict[str, str]) -> Iterator[Opener]:
        """A file that an entry refers to, if it has its digest."""
        file = self.resolved(file)
        key = self._key(file["name"])  # first: without it, the file was erased rather than lost
        with self.files.fetch(file["name"]) as path:
            if self.files.digest_of(path) != file["sha256"]:
                raise altered_file(file["name"])
            yield self._opener(file["name"], path, key)

    @contextlib.contextmanager
    def fetch(self, name: str) -> Iterator[Opener]:
        """A file that no entry refers to, such as a part of an upload; its key alone authenticates it."""
        key = self._key(name)
        with self.files.fetch(name) as path:
            yield self._opener(name, path, key)

    def read_text(self, file: dict[str, str]) -> str:
        """The text of a short file."""
        with self.open(file) as opener, opener() as content:
            return content.read().decode()

    def is_readable(self, file: dict[str, str]) -> bool:
        """Whether the key that a file is encrypted under still exists."""
        name = self.resolved(file)["name"]
        if not is_encrypted(name):
            return True
        key = self.keys.find(scope_of(name))
        return key is not None and is_encrypted_under(self.files.head(name, HEADER), key)

    def drop(self, name: str) -> None:
        """Delete a file that no entry refers to."""
        self.files.drop(name)

    def names(self, folder: str = "") -> list[str]:
        """The names of all files, or of those in a folder."""
        return self.files.names(folder)

    def resolved(self, file: dict[str, str]) -> dict[str, str]:
        """The file itself, or the one that replaced it."""
        if is_of_generation(file["name"], self.keys.generation()):
            return file
        folder = file_name(file["name"]).split("/")[1]
        with self.ledger.reading(self.keys.master_keys()) as reading:
            is_token = is_encrypted(file["name"])
            entry = reading.latest_by_token("storage", folder) if is_token else reading.latest("storage", folder)
        found = {} if entry is None else entry.body
        return dict(found.get(file["name"], file))

    def _key(self, name: str) -> Key | None:
        """The key of a file; `None` for one of an earlier version, which is not encrypted."""
        return self.keys.get(scope_of(name)) if is_encrypted(name) else None

    def _opener(self, name: str, path: Path, key: Key | None) -> Opener:
        if key is None:
            return lambda: path.open("rb")
        return lambda: EncryptedReader.open(path.open("rb", buffering=0), key, name_without_digest(name))


def is_encrypted(name: str) -> bool:
    """Whether a file of this name is encrypted."""
    return name.endswith(SUFFIX)


def plain_name(name: str) -> str:
    """The name of a file of a dataset without the ending that says how it is encrypted."""
    return _GENERATION.sub("", name)


def name_without_digest(name: str) -> str:
    """The name that a file was given before its digest was known; its encryption is bound to it."""
    return _DIGEST.sub("{}", name)


def scope_of(name: str) -> str:
    """The scope of the key that a file is encrypted under; each version of a dataset has a key of its own."""
    folder, owner, rest = file_name(name).split("/")
    if folder == "uploads":
        return folder
    version, generation = version_of(name), _GENERATION.search(rest)
    scope = f"{folder}/{owner}" if version is None else f"{folder}/{owner}/{version}"
    return f"{scope}@{generation[1]}" if generation else scope


def version_of(name: str) -> int | None:
    """The version that a file of a dataset belongs to; `None` for its policy and its scheme."""
    found = _VERSION.match(file_name(name).split("/")[2])
    return int(found[1]) if found else None


def is_of_generation(name: str, generation: int) -> bool:
    """Whether a file of a dataset is encrypted under a data key of a generation."""
    return scope_of(name).endswith(f"@{generation}")
