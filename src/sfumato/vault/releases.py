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
from sfumato.ledger.ledger import Ledger, LedgerReader, Query
from sfumato.levels import Level
from sfumato.release.certificate import signed
from sfumato.release.copying import Issuer
from sfumato.release.files import release_file
from sfumato.release.manifest import Manifest
from sfumato.release.scheme import TableScheme
from sfumato.vault.datasets import Dataset, left
from sfumato.vault.grants import Asked, Grant, below, in_force, known
from sfumato.vault.record_changes import Seen, exposure


@dataclass(frozen=True)
class Request:
    """What is released to whom, under which grant, with which key."""

    grant: Grant
    entry: Entry
    """Of the grant."""
    dataset: Dataset
    generation: int
    key: Key
    level: str | float
    """The level of the copy, as it was asked for: that of the grant, or a lower one."""
    fidelity: float
    keys: Mapping[int, Key]
    """All of them, by which earlier entries are checked."""

    @classmethod
    def of(
        cls,
        reading: LedgerReader,
        dataset: Dataset,
        recipient: str,
        keys: Mapping[int, Key],
        now: datetime,
        asked: Asked,
    ) -> Request:
        """What a recipient may have now, at the level of its grant or at a lower one that it asks for."""
        grant, entry = in_force(reading, recipient, dataset.name, now)
        level, fidelity = (grant.level, grant.fidelity) if asked is None else below(dataset, entry, asked)
        generation = reading.head().generation
        return cls(grant, entry, dataset, generation, keys[generation], level, fidelity, keys)

    @property
    def scheme(self) -> TableScheme:
        """What makes the copy."""
        return self.dataset.scheme.seen(self.grant.view)

    def terms(self) -> dict[str, Any]:
        """All that the bytes of the copy depend on."""
        grant = self.grant
        shown = {"columns": grant.columns and list(grant.columns), "where": grant.where}
        return {
            "version": self.dataset.version,
            "generation": self.generation,
            "level": self.level,
            "fidelity": self.fidelity,
            **shown,
        }

    def recorded(self, reading: LedgerReader) -> list[Entry]:
        """The entries that say that this very copy was given, or begun to be."""
        query = Query(kind="release", dataset=self.dataset.name, recipient=self.grant.recipient)
        terms = self.terms()
        found = reading.entries(query)
        return [one for one in found if canonical({name: one.body.get(name) for name in terms}) == canonical(terms)]


class Recorded(Issuer):
    """Signs a copy and records it, if the grant is still in force, just before it is whole."""

    def __init__(self, ledger: Ledger, request: Request, now: Callable[[], datetime]) -> None:
        self._ledger, self._request, self._now = ledger, request, now

    def begin(self, draft: Manifest) -> Manifest:
        """Say for whom it is, and who signs."""
        request = self._request
        return replace(
            draft,
            level=request.level if isinstance(request.level, str) else draft.level,
            requested_fidelity=request.dataset.scheme.policy.ladder.level(request.level).fidelity,
            recipient=request.grant.recipient,
            version=request.dataset.version,
            signer=public_key(request.key),
        )

    def finish(self, manifest: Manifest) -> Manifest:
        """Record it, once."""
        self.record("released", manifest.rows, manifest.digest)
        return signed(manifest, self._request.key)

    def record(self, action: str, rows: int, digest: str = "") -> None:
        """Say in the ledger that the copy is given, unless it says so; without a digest, that it is begun."""
        request, dataset, keys = self._request, self._request.dataset, self._request.keys
        with self._ledger.reading(keys) as reading:
            if self._is_said(reading, digest):
                return
            before = request.recorded(reading)
        said = {**request.terms(), "rows": rows, "digest": digest}
        said["exposure"] = before[0].body["exposure"] if before else self._exposure(rows)
        if dataset.scheme.accepted:
            said["accepted"] = dataset.scheme.accepted
        with self._ledger.writing(keys) as writing:
            if not self._is_said(writing, digest):
                writing.append(action, "release", said, dataset=dataset.name, recipient=request.grant.recipient)

    def _is_said(self, reading: LedgerReader, digest: str) -> bool:
        """Whether the ledger says it already; refused if the copy may not be given, or is another than it says."""
        self._check_grant(reading)
        before = self._request.recorded(reading)
        for entry in before:
            if digest and entry.body["digest"] not in ("", digest):
                raise TamperedError(
                    f"the same request must give the same copy, and this one of {entry.dataset} differs from the one "
                    f"recorded as entry {entry.number}; run `sfumato verify`"
                )
        return any(entry.body["digest"] or not digest for entry in before)

    def _check_grant(self, reading: LedgerReader) -> None:
        """Refuse what was granted when the copy was begun, and is no more."""
        request, dataset = self._request, self._request.dataset
        _, entry = in_force(reading, request.grant.recipient, dataset.name, self._now())
        if entry.number != request.entry.number or known(reading, "dataset", dataset.name).body != dataset.body:
            raise GrantError(f"the grant or {dataset.name} changed while the copy was made; release it again")

    def _exposure(self, rows: int) -> dict[str, Any]:
        """What the recipient holds with this copy. It takes long, so it is not done while others wait to write."""
        request = self._request
        with self._ledger.reading() as reading:
            earlier = held(reading, request.dataset.name, request.grant.recipient)
        this = seen(request.dataset.body, request.fidelity, request.generation)
        numbers = request.dataset.has_numbers
        alone = left(request.fidelity, request.dataset.body["stretch"]) if numbers else None
        if set(earlier) <= {this}:
            return {"draws": {"1": rows}, "error": alone, "alone": alone}
        return {**exposure(request.dataset.store, [*earlier, this], numbers=numbers), "alone": alone}


class Again(Recorded):
    """A copy that was given before: as long as the ledger says nothing new, there is nothing to ask or to say."""

    def __init__(self, ledger: Ledger, request: Request, now: Callable[[], datetime], head: str, digest: str) -> None:
        super().__init__(ledger, request, now)
        self._head, self._digest = head, digest

    def record(self, action: str, rows: int, digest: str = "") -> None:
        """Look at the ledger's head, and further only if it has moved."""
        with self._ledger.reading() as reading:
            same = reading.head().head == self._head
        if not same or digest not in ("", self._digest) or self._request.grant.is_over(self._now()):
            super().record(action, rows, digest)


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
    seal = Recorded(ledger, request, now)
    with ledger.reading() as reading:
        beside = under_other_keys(reading, request, keys)
    with request.dataset.source() as source:
        return release_file(
            request.scheme,
            source,
            out,
            Level(request.fidelity),
            request.key,
            threads=threads,
            progress=progress,
            seal=seal,
            beside=beside,
        )


def under_other_keys(reading: LedgerReader, request: Request, keys: Mapping[int, Key]) -> list[tuple[Level, Key]]:
    """The most faithful copies of the dataset that anybody was given under each earlier key."""
    if not request.dataset.scheme.policy.targets:
        return []
    best: dict[int, float] = {}
    for entry in reading.entries(Query(kind="release", dataset=request.dataset.name)):
        generation = entry.body["generation"]
        if generation != request.generation and generation in keys:
            best[generation] = max(best.get(generation, 0.0), entry.body["fidelity"])
    return [(Level(fidelity), keys[generation]) for generation, fidelity in best.items()]


def held(reading: LedgerReader, dataset: str, recipient: str | None = None) -> list[Seen]:
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
