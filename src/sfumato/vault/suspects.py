"""Who was given which copy of a dataset: the question that tracing begins with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.ledger import LedgerReader, Query
from sfumato.tables.view import View
from sfumato.vault.datasets import Dataset
from sfumato.vault.leak_alignment import Copy, Issue
from sfumato.vault.store import Store


def issues(reading: LedgerReader, dataset: str, store: Store, keys: Mapping[int, Key]) -> tuple[list[Issue], int]:
    """All copies of a dataset that were ever released, by version and key, and how many were made with a lost key."""
    entries = reading.entries(Query(kind="dataset", dataset=dataset))
    versions = {entry.body["version"]: Dataset.of(entry, store) for entry in entries}
    holders: dict[tuple[int, int], dict[Copy, list[str]]] = defaultdict(lambda: defaultdict(list))
    levels: dict[int, set[float]] = defaultdict(set)
    for entry in reading.entries(Query(kind="release", dataset=dataset)):
        said = entry.body
        view = View(None if said["columns"] is None else tuple(said["columns"]), said["where"])
        given = holders[said["version"], said["generation"]][said["fidelity"], view]
        if entry.recipient not in given:
            given.append(entry.recipient)
        levels[said["generation"]].add(said["fidelity"])
    if holders and not any(generation in keys for _, generation in holders):
        raise VaultError("the copies of this dataset were made with a key that is lost, and cannot be traced any more")
    lost = sum(len(names) for (_, turn), given in holders.items() if turn not in keys for names in given.values())
    found = [
        Issue(versions[version], keys[generation], given, frozenset(levels[generation]))
        for (version, generation), given in sorted(holders.items())
        if generation in keys
    ]
    return found, lost
