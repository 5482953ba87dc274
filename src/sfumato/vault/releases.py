"""Releases: a copy for a recipient, recorded before it appears. The same request gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sfumato.errors import GrantError, TamperedError
from sfumato.keys.key import Key
from sfumato.keys.signature import public_key
from sfumato.ledger.chain import Entry, canonical
from sfumato.ledger.ledger import Ledger, Query, Reading
from sfumato.release.certificate import signed
from sfumato.release.manifest import Manifest
from sfumato.release.run import Seal, release_file
from sfumato.schema.levels import Level
from sfumato.vault.datasets import Dataset, left
from sfumato.vault.grants import Grant, in_force, known
from sfumato.vault.records import Seen, exposure
from sfumato.vault.store import Store


@dataclass(frozen=True)
class Request:
    """What is released to whom, under which grant, with which key."""

    grant: Grant
    entry: Entry
    """Of the grant."""
    dataset: Dataset
    generation: int
    key: Key

    def terms(self) -> dict[str, Any]:
        """All that the bytes of the copy depend on."""
        grant = self.grant
        shown = {"columns": grant.columns and list(grant.columns), "where": grant.where}
        return {
            "version": self.dataset.version,
            "generation": self.generation,
            "level": grant.level,
            "fidelity": grant.fidelity,
            **shown,
        }


class Recorded(Seal):
    """Signs a copy and records it, if the grant is still in force, just before it appears."""

    def __init__(self, ledger: Ledger, store: Store, request: Request, now: Callable[[], datetime]) -> None:
        self._ledger, self._store, self._request, self._now = ledger, store, request, now

    def begin(self, draft: Manifest) -> Manifest:
        """Say for whom it is, and who signs."""
        request = self._request
        level = request.grant.level if isinstance(request.grant.level, str) else draft.level
        asked = request.dataset.scheme.policy.ladder.level(request.grant.level)
        return replace(
            draft,
            level=level,
            asked=asked.fidelity,
            recipient=request.grant.recipient,
            version=request.dataset.version,
            signer=public_key(request.key),
        )

    def finish(self, manifest: Manifest) -> Manifest:
        """Record it, once."""
        request = self._request
        grant, dataset = request.grant, request.dataset
        said = {**request.terms(), "rows": manifest.rows, "digest": manifest.digest}
        drawn = self._exposure(manifest.rows)
        with self._ledger.writing({request.generation: request.key}) as writing:
            _, entry = in_force(writing, grant.recipient, grant.dataset, self._now())
            if entry.number != request.entry.number or known(writing, "dataset", dataset.name).body != dataset.body:
                raise GrantError(f"the grant or {dataset.name} changed while the copy was made; release it again")
            before = writing.latest("release", dataset.name, grant.recipient)
            if before is not None and _same(before.body, request.terms()):
                if before.body["digest"] != manifest.digest:
                    raise TamperedError(
                        f"the same request must give the same copy, and this one of {dataset.name} differs from the "
                        f"one recorded as entry {before.number}; run `sfumato verify`"
                    )
            else:
                said["exposure"] = drawn
                if dataset.scheme.accepted:
                    said["accepted"] = dataset.scheme.accepted
                writing.append("released", "release", said, dataset=dataset.name, recipient=grant.recipient)
        return signed(manifest, request.key)

    def _exposure(self, rows: int) -> dict[str, Any]:
        """What the recipient holds with this copy. It takes long, so it is not done while others wait to write."""
        request = self._request
        with self._ledger.reading() as reading:
            earlier = held(reading, request.dataset.name, request.grant.recipient)
        this = seen(request.dataset.body, request.grant.fidelity, request.generation)
        numbers = request.dataset.has_numbers
        alone = left(request.grant.fidelity, request.dataset.body["stretch"]) if numbers else None
        if set(earlier) <= {this}:
            return {"draws": {"1": rows}, "error": alone, "alone": alone}
        return {**exposure(self._store, [*earlier, this], numbers=numbers), "alone": alone}


def release(
    request: Request,
    ledger: Ledger,
    out: Path,
    now: Callable[[], datetime],
    keys: Mapping[int, Key],
    progress: Callable[[int], None] | None,
    threads: int | None,
) -> Manifest:
    """Make a copy, record it, and let it appear."""
    dataset, grant = request.dataset, request.grant
    seal = Recorded(ledger, dataset.store, request, now)
    scheme, level = dataset.scheme.seen(grant.view), Level(grant.fidelity)
    with ledger.reading() as reading:
        beside = _under_other_keys(reading, request, keys)
    with dataset.source() as source:
        return release_file(
            scheme, source, out, level, request.key, threads=threads, progress=progress, seal=seal, beside=beside
        )


def _under_other_keys(reading: Reading, request: Request, keys: Mapping[int, Key]) -> list[tuple[Level, Key]]:
    """The most faithful copies of the dataset that anybody was given under each earlier key."""
    if not request.dataset.scheme.policy.targets:
        return []
    best: dict[int, float] = {}
    for entry in reading.entries(Query(kind="release", dataset=request.dataset.name)):
        generation = entry.body["generation"]
        if generation != request.generation and generation in keys:
            best[generation] = max(best.get(generation, 0.0), entry.body["fidelity"])
    return [(Level(fidelity), keys[generation]) for generation, fidelity in best.items()]


def held(reading: Reading, dataset: str, recipient: str | None = None) -> list[Seen]:
    """The copies of a dataset that a recipient, or all together, were given."""
    releases = reading.entries(Query(kind="release", dataset=dataset, recipient=recipient))
    versions = reading.entries(Query(kind="dataset", dataset=dataset))
    bodies = {entry.body["version"]: entry.body for entry in versions}
    given = [(bodies[one.body["version"]], one.body["fidelity"], one.body["generation"]) for one in releases]
    return list(dict.fromkeys(seen(*one) for one in given))


def seen(dataset: dict[str, Any], fidelity: float, generation: int) -> Seen:
    """A copy of a version at a level, as its holder sees it."""
    records = dataset["records"]
    return Seen(records["name"], records["sha256"], generation, Level(fidelity).noise / dataset["stretch"])


def _same(body: dict[str, Any], terms: dict[str, Any]) -> bool:
    return canonical({name: body.get(name) for name in terms}) == canonical(terms)
