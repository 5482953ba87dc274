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
    """All copies of a dataset that were ever released, by version and key; those of a lost key are left out.

    A record that did not change has the same noise in all versions. So whoever holds a level of one version is a
    suspect for all, together with those who hold the same level of another.
    """
    entries = reading.entries(Query(kind="dataset", dataset=dataset))
    versions = {entry.body["version"]: Dataset.of(entry, store) for entry in entries}
    holders: dict[int, dict[float, list[str]]] = defaultdict(lambda: defaultdict(list))
    conditions: dict[tuple[int, int], set[str | None]] = defaultdict(set)
    names: dict[float, str | float] = {}
    for entry in reading.entries(Query(kind="release", dataset=dataset)):
        said = entry.body
        names[said["fidelity"]] = said["level"]
        conditions[said["version"], said["generation"]].add(said["where"])
        given = holders[said["generation"]][said["fidelity"]]
        if entry.recipient not in given:
            given.append(entry.recipient)
    return [
        Issue(versions[version], keys[generation], holders[generation], names, frozenset(asked))
        for (version, generation), asked in sorted(conditions.items())
        if generation in keys
    ]
