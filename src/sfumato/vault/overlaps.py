"""Overlaps between datasets: records that two datasets share get independent noise in each, which can be averaged.

A dataset that shares records with another one is refused, unless the owner gives a reason. The ledger then records the
reason, and copies of the other dataset count in the exposure of a recipient.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import LedgerReader
from sfumato.tables.source import Source
from sfumato.vault.dataset_entries import OVERLAPS
from sfumato.vault.datasets import Dataset
from sfumato.vault.sketches import Sketch, extended, overlap, read_sketch, sketch, write_sketch

SKETCH, GENERATION = "sketch", "sketch generation"
"""The keys, in the entry of a version, of its sketch, and of the generation of the key that it was made with."""


class OverlapCheck:
    """Looks for the records of a new version in all other datasets."""

    def __init__(
        self,
        dataset: Dataset,
        key: Key,
        generation: int,
        reason: str | None,
        appended: tuple[Dataset, Source] | None = None,
    ) -> None:
        """Make the sketch of a version: that of the version before and of the rows that it appends, if it does."""
        self._dataset, self._key, self._generation, self._reason = dataset, key, generation, reason
        self._seen: set[int] = set()
        self._sketch = _computed(dataset, key) if appended is None else self._extended(*appended)
        name = f"{dataset.store.folder(dataset.name)}/{dataset.version}-{{}}.sketch"
        stored = dataset.store.put(name, lambda target: write_sketch(target, self._sketch))
        self.body = {**dataset.body, SKETCH: stored, GENERATION: generation}

    def check(self, datasets: Iterable[Entry]) -> None:
        """Compare with the latest versions of other datasets, those that were compared before excepted."""
        for entry in datasets:
            if entry.number in self._seen or entry.dataset == self._dataset.name or "source" not in entry.body:
                continue
            self._seen.add(entry.number)
            if entry.dataset in self.body.get(OVERLAPS, {}) or self._dataset.name in entry.body.get(OVERLAPS, {}):
                continue
            share = overlap(self._sketch, self._of(Dataset.of(entry, self._dataset.store)))
            if share:
                self._accept(entry.dataset, share)

    def _extended(self, before: Dataset, more: Source) -> Sketch:
        return extended(self._of(before), sketch(before.scheme, more, self._key, every=True))

    def _accept(self, other: str, share: float) -> None:
        """Record an overlap with its reason; refused without one."""
        if not (self._reason or "").strip():
            raise VaultError(
                f"the records of {self._dataset.name} must not be in another dataset, and {other} has {share:.0%} of "
                "those of the smaller of the two: each dataset has noise of its own, and recipients of both can "
                f"average it. Add later versions with `sfumato update {other} FILE`, and other parts for other "
                f"recipients with `sfumato grant --columns --where`; or give the reason (--accept-overlap REASON), "
                "which is recorded, and copies of both will count together in the exposure of a recipient"
            )
        accepted = {"share": round(share, 3), "reason": self._reason}
        self.body = {**self.body, OVERLAPS: {**self.body.get(OVERLAPS, {}), other: accepted}}

    def _of(self, other: Dataset) -> Sketch:
        """The sketch of another dataset, stored or, if an older key made it or nobody did, made now."""
        if other.body.get(GENERATION) != self._generation:
            return _computed(other, self._key)
        file = other.body[SKETCH]
        with other.store.open(file) as opener, opener() as content:
            return read_sketch(content)


def without_sketch(body: dict[str, Any]) -> dict[str, Any]:
    """The body of a version's entry without what changes with the master key."""
    return {name: value for name, value in body.items() if name not in (SKETCH, GENERATION)}


def overlapping(reading: LedgerReader, dataset: str) -> list[str]:
    """The datasets that share records with this one, whichever of the two was added first."""
    latest = reading.latest("dataset", dataset)
    named = {} if latest is None else latest.body.get(OVERLAPS, {})
    others = [entry.dataset for entry in reading.current("dataset") if dataset in entry.body.get(OVERLAPS, {})]
    return sorted({*named, *others})


def _computed(dataset: Dataset, key: Key) -> Sketch:
    with dataset.source() as source:
        return sketch(dataset.scheme, source, key)
