"""The candidates of a leak: which recipient received which copy of a dataset, from the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.vault.datasets import Dataset
from sfumato.vault.encrypted_store import EncryptedStore
from sfumato.vault.grants import granted_view
from sfumato.vault.leak_alignment import ReleasedCopy, ReleaseGroup


def release_groups(
    reading: LedgerReader, dataset: str, store: EncryptedStore, keys: Mapping[int, Key]
) -> tuple[list[ReleaseGroup], int]:
    """All released copies of a dataset, by version and key, and the number of those that nobody can make again.

    Their key is lost, or the version that they were made from was erased.
    """
    entries = reading.entries(Query(kind="dataset", dataset=dataset))
    versions = {entry.body["version"]: Dataset.of(entry, store) for entry in entries}
    holders: dict[tuple[int, int], dict[ReleasedCopy, list[str]]] = defaultdict(lambda: defaultdict(list))
    levels: dict[int, set[float]] = defaultdict(set)
    for entry in reading.entries(Query(kind="release", dataset=dataset)):
        body = entry.body
        copy = ReleasedCopy(body["fidelity"], granted_view(body))
        recipients = holders[body["version"], body["generation"]][copy]
        if entry.recipient not in recipients:
            recipients.append(entry.recipient)
        levels[body["generation"]].add(copy.fidelity)
    readable = {
        number for number, version in versions.items() if all(store.is_readable(part.source) for part in version.parts)
    }
    again = {group for group in holders if group[0] in readable and group[1] in keys}
    if holders and not again:
        raise VaultError(
            "the copies of this dataset can no longer be traced: they were made with a key that is lost, or from "
            "versions that were erased"
        )
    found = [
        ReleaseGroup(versions[version], keys[generation], holders[version, generation], frozenset(levels[generation]))
        for version, generation in sorted(again)
    ]
    return found, sum(_count(copies) for group, copies in holders.items() if group not in again)


def _count(copies: Mapping[ReleasedCopy, list[str]]) -> int:
    return sum(map(len, copies.values()))
