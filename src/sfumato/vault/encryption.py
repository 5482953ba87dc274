"""Encryption of the files that earlier versions stored in plain: the ledger records which file replaced which."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.vault.encrypted_store import EncryptedStore, is_encrypted, name_without_digest
from sfumato.vault.grants import existing
from sfumato.vault.store import REPLACED, files_in


def encrypt_files(ledger: Ledger, keys: Mapping[int, Key], store: EncryptedStore) -> list[Entry]:
    """Replace the plain files of all datasets by encrypted ones; repeating it after an interruption finishes it."""
    with ledger.reading(keys) as reading:
        datasets = [entry.dataset for entry in existing(reading, "dataset")]
    entries = []
    for dataset in datasets:
        with ledger.reading(keys) as reading:
            plain, done = _plain_files(reading, dataset), reading.latest("storage", dataset) is not None
        if plain and not done:
            body = {name: _encrypted(store, name, digest) for name, digest in plain.items()}
            with ledger.writing(keys) as writing:
                if writing.latest("storage", dataset) is None:
                    entries.append(writing.append(REPLACED, "storage", body, dataset=dataset))
        for name in set(plain) & set(store.names(f"datasets/{dataset}")):
            store.drop(name)
    return entries


def is_stored_in_plain(reading: LedgerReader, entry: Entry) -> bool:
    """Whether files of a dataset, given by its latest entry, are not encrypted: they share the scheme of the first."""
    return not is_encrypted(entry.body["scheme"]["name"]) and reading.latest("storage", entry.dataset) is None


def _plain_files(reading: LedgerReader, dataset: str) -> dict[str, str]:
    """The plain files that the entries of a dataset refer to, with their digests."""
    entries = map(reading.authenticated, reading.entries(Query(kind="dataset", dataset=dataset)))
    return {n: digest for entry in entries for n, digest in files_in(entry.body).items() if not is_encrypted(n)}


def _encrypted(store: EncryptedStore, name: str, digest: str) -> dict[str, str]:
    with store.open({"name": name, "sha256": digest}) as opener, opener() as plain:
        return store.put(name_without_digest(name), lambda file: shutil.copyfileobj(plain, file))
