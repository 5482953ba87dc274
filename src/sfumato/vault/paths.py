"""File paths of a vault: its folder, its store, and the files that it may write copies to."""

from __future__ import annotations

import re
from pathlib import Path

from sfumato.errors import SfumatoError, VaultError
from sfumato.ledger.database import FILE, Database, is_url
from sfumato.release.manifest import Manifest
from sfumato.tables.database import DatabaseTable, is_database, without_password
from sfumato.tables.filesystem import is_file, is_folder


def prepare_location(location: str | Path, store: str | None) -> str:
    """Create the folder of a vault, which must be new or empty, and return the location of its store."""
    if store is not None and re.search(r"://[^/@]*:[^/@]*@", store):
        raise VaultError(
            "the URL of a store must not hold a password, since it is stored in plain text; configure it in fsspec"
        )
    if is_url(location):
        Database(location)  # raises an error for other databases than PostgreSQL
        if store is None:
            raise VaultError("a vault in a database needs a store for its tables; give its path or URL (--store)")
        return store if is_url(store) else str(Path(store).absolute())
    folder = Path(location)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        other_files = [path.name for path in folder.iterdir() if not path.name.startswith(FILE)]
    except OSError as error:
        raise VaultError(f"the folder {folder} could not be created: {error.strerror}") from None
    if other_files and not (folder / FILE).exists():
        raise VaultError(
            f"a vault needs a new or empty folder, and {folder} contains {other_files[0]!r}; choose another name"
        )
    return "." if store is None else store


def default_copy_path(outbox: Path | None, dataset: str, recipient: str, version: int) -> Path:
    """The file in the vault's folder for a copy that is released without an output path."""
    if outbox is None:
        raise VaultError(
            "only a vault in a folder has default paths for copies, and only for whole ones at the level of the grant; "
            "name the output file (--out)"
        )
    folder = outbox / dataset
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{recipient}.v{version}.parquet"


def check_replaceable(out: str | Path, dataset: str, recipient: str) -> None:
    """Raise `VaultError` for an existing file or table that is not an earlier copy for the same recipient."""
    if not (DatabaseTable.of(str(out)).columns() if is_database(out) else is_file(out) or is_folder(out)):
        return
    try:
        before = Manifest.of(out)
        same = (before.dataset, before.recipient) == (dataset, recipient)
    except SfumatoError:
        same = False
    if not same:
        raise VaultError(
            f"a release overwrites only an earlier copy of {dataset} for {recipient}, and "
            f"{without_password(str(out))} is something else; choose another name, or delete it"
        )
