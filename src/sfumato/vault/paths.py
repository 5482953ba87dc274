"""Where a vault, its store and its copies may lie."""

from __future__ import annotations

import re
from pathlib import Path

from sfumato.errors import SfumatoError, VaultError
from sfumato.ledger.database import FILE, Database, is_url
from sfumato.release.manifest import Manifest


def prepared(location: str | Path, store: str | None) -> str:
    """Make the folder, if it is one that is new or empty, and say where the store is."""
    if store is not None and re.search(r"://[^/@]*:[^/@]*@", store):
        raise VaultError("a store's URL must not hold a password, it would be kept in plain; set it where fsspec looks")
    if is_url(location):
        Database(location)  # refuses what is no PostgreSQL
        if store is None:
            raise VaultError(
                "a vault in a database must be told where to keep tables; give a store (--store), a path or a URL"
            )
        return store if is_url(store) else str(Path(store).absolute())
    folder = Path(location)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        strange = [path.name for path in folder.iterdir() if not path.name.startswith(FILE)]
    except OSError as error:
        raise VaultError(f"the folder {folder} could not be made: {error.strerror}") from None
    if strange and not (folder / FILE).exists():
        raise VaultError(f"a vault needs a new or empty folder, and {folder} holds {strange[0]!r}; choose another name")
    return "." if store is None else store


def place_in(outbox: Path | None, dataset: str, recipient: str, version: int) -> Path:
    """Where a copy goes of which nobody says where it shall go."""
    if outbox is None:
        raise VaultError(
            "there is a place only for copies from a vault in a folder, at the level of the grant; say where the copy "
            "shall be written (--out)"
        )
    folder = outbox / dataset
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / f"{recipient}.v{version}.parquet"


def check_replaced(path: Path, dataset: str, recipient: str) -> None:
    """Refuse to replace a file that is not an earlier copy for the same recipient."""
    if not path.exists():
        return
    try:
        before = Manifest.of(path)
        same = (before.dataset, before.recipient) == (dataset, recipient)
    except SfumatoError:
        same = False
    if not same:
        raise VaultError(
            f"a release replaces nothing but an earlier copy of {dataset} for {recipient}, and {path} is something "
            "else; choose another name, or remove it"
        )
