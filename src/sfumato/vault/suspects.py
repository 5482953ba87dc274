"""Who was given which copy of a dataset: the question that tracing begins with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sfumato.keys.key import Key
from sfumato.ledger.ledger import Query, Reading
from sfumato.vault.alignment import Issue
from sfumato.vault.datasets import Dataset
from sfumato.vault.store import Store


def issues(reading: Reading, dataset: str, store: Store, keys: Mapping[int, Key]) -> list[Issue]:
    """All copies of a dataset that were ever released, by version and key; those of a lost key are left out."""
    versions = {
        entry.body["version"]: Dataset.of(entry, store)
        for entry in reading.entries(Query(kind="dataset", dataset=dataset))
    }
    holders: dict[tuple[int, int], dict[float, list[str]]] = defaultdict(lambda: defaultdict(list))
    names: dict[float, str | float] = {}
    conditions: dict[tuple[int, int], set[str | None]] = defaultdict(set)
    for entry in reading.entries(Query(kind="release", dataset=dataset)):
        said = entry.body
        names[said["fidelity"]] = said["level"]
        conditions[said["version"], said["generation"]].add(said["where"])
        given = holders[said["version"], said["generation"]][said["fidelity"]]
        if entry.recipient not in given:
            given.append(entry.recipient)
    return [
        Issue(versions[version], keys[generation], given, names, frozenset(conditions[version, generation]))
        for (version, generation), given in sorted(holders.items())
        if generation in keys
    ]
