"""Encryption of stored files anew: of those that earlier versions stored in plain, and of all under a new master key.

The ledger records which file replaced which. The keys of the replaced files are destroyed with that entry.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.vault import data_keys
from sfumato.vault.encrypted_store import (
    EncryptedStore,
    is_encrypted,
    is_of_generation,
    name_without_digest,
    plain_name,
    scope_of,
)
from sfumato.vault.grants import existing
from sfumato.vault.store import REPLACED, files_in


def encrypt_files(ledger: Ledger, keys: Mapping[int, Key], store: EncryptedStore) -> list[Entry]:
    """Encrypt the files of all datasets under data keys of the current generation; repeating it finishes it."""
    with ledger.reading(keys) as reading:
        datasets = [entry.dataset for entry in existing(reading, "dataset")]
    entries = [_encrypt_dataset(ledger, keys, store, dataset) for dataset in datasets]
    return [entry for entry in entries if entry is not None]


def recorded_files(reading: LedgerReader, dataset: str) -> dict[str, str]:
    """All files that entries about a dataset refer to, replaced ones too, with their digests."""
    entries = [entry for kind in ("dataset", "storage") for entry in reading.entries(Query(kind=kind, dataset=dataset))]
    return {name: digest for entry in entries for name, digest in files_in(entry.body).items()}


def outdated_datasets(reading: LedgerReader, datasets: list[Entry]) -> tuple[list[str], list[str]]:
    """The datasets whose files are plain, and those whose files are encrypted under an earlier key."""
    generation = reading.head().generation
    current = {entry.dataset: _current(reading, entry) for entry in datasets}
    plain = [name for name, file in current.items() if not is_encrypted(file)]
    return plain, [n for n, file in current.items() if n not in plain and not is_of_generation(file, generation)]


def _current(reading: LedgerReader, entry: Entry) -> str:
    """The file of a dataset's scheme, which is replaced together with all others."""
    name = str(entry.body["scheme"]["name"])
    if is_of_generation(name, reading.head().generation):
        return name
    replaced = reading.latest("storage", entry.dataset)
    return name if replaced is None or name not in replaced.body else str(replaced.body[name]["name"])


@dataclass(frozen=True)
class _Files:
    """The files of a dataset at one moment."""

    recorded: dict[str, str]
    replacements: dict[str, dict[str, str]]
    state: tuple[int, ...]
    """The numbers of the latest entries about its versions, erased versions and storage."""

    @classmethod
    def of(cls, reading: LedgerReader, dataset: str) -> _Files:
        latest = [reading.latest(kind, dataset) for kind in ("dataset", "version", "storage")]
        replacements = {} if latest[-1] is None else latest[-1].body
        state = tuple(0 if entry is None else entry.number for entry in latest)
        return cls(recorded_files(reading, dataset), replacements, state)

    def current(self) -> dict[str, dict[str, str]]:
        """The file that each recorded one is now."""
        return {n: self.replacements.get(n, {"name": n, "sha256": d}) for n, d in self.recorded.items()}


def _encrypt_dataset(ledger: Ledger, keys: Mapping[int, Key], store: EncryptedStore, dataset: str) -> Entry | None:
    """Replace the files of a dataset that are plain, or under an earlier key; the entry, if there are any."""
    with ledger.reading(keys) as reading:
        files = _Files.of(reading, dataset)
    _drop_replaced(store, dataset, files)
    generation, current = store.keys.generation(), files.current()
    outdated = {
        file["name"]: file
        for file in current.values()
        if not is_of_generation(file["name"], generation) and store.is_readable(file)  # else it was erased
    }
    if not outdated:
        return None
    fresh: dict[str, dict[str, str]] = {}
    try:
        for name, file in outdated.items():
            fresh[name] = _encrypted(store, dataset, file)
        body = {name: fresh.get(file["name"], file) for name, file in current.items()}
        with ledger.writing(keys) as writing:
            if _Files.of(writing, dataset).state != files.state:
                raise VaultError(f"somebody else changed {dataset} meanwhile; run `sfumato encrypt` to go on")
            for scope in {scope_of(name) for name in outdated}:
                data_keys.erase(writing, scope)
            replaced = {name: file for name, file in body.items() if file["name"] != name}
            entry = writing.append(REPLACED, "storage", replaced, dataset=dataset)
    except VaultError:
        discard_files(ledger, keys, store, dataset, {file["name"] for file in fresh.values()})
        raise
    for name in outdated:
        store.drop(name)
    return entry


def _drop_replaced(store: EncryptedStore, dataset: str, files: _Files) -> None:
    """Delete replaced files that an interruption left."""
    for folder in (store.folder(dataset), f"datasets/{dataset}"):  # the latter is that of an earlier version
        for name in set(store.names(folder)) & set(files.replacements):
            store.drop(name)


def discard_files(
    ledger: Ledger, keys: Mapping[int, Key], store: EncryptedStore, dataset: str, names: Iterable[str]
) -> None:
    """Delete files that no entry refers to, and their keys: the dataset may have been erased meanwhile."""
    with ledger.writing(keys) as writing:
        recorded = set(recorded_files(writing, dataset))
        unrecorded = set(names) - recorded
        for scope in set(map(scope_of, unrecorded)) - set(map(scope_of, recorded)):
            data_keys.erase(writing, scope)
    for name in unrecorded:
        store.drop(name)


def _encrypted(store: EncryptedStore, dataset: str, file: dict[str, str]) -> dict[str, str]:
    name = f"{store.folder(dataset)}/{name_without_digest(plain_name(file['name'])).rpartition('/')[2]}"
    with store.open(file) as opener, opener() as content:
        return store.put(name, lambda target: shutil.copyfileobj(content, target))
