"""Releases from a vault: a copy for a recipient, recorded before it appears. The same request gives the same bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sfumato.errors import GrantError, NotAppended, TamperedError, VaultError
from sfumato.keys.key import Key
from sfumato.keys.signature import public_key
from sfumato.ledger.chain import Entry, canonical
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.levels import Level
from sfumato.release import gate
from sfumato.release.certificate import signed
from sfumato.release.gate import Clearance, Issuer, accepted_risks
from sfumato.release.manifest import Manifest
from sfumato.release.outputs import check_output, write_copy
from sfumato.release.scheme import TableScheme
from sfumato.tables.content_digest import BLAKE3, algorithm_of
from sfumato.tables.source import Source
from sfumato.vault.approvals import require_approval
from sfumato.vault.dataset_entries import APPENDED, residual_error, variance_ratio
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import Grant, RequestedLevel, active_grant, lower_level, require
from sfumato.vault.overlaps import overlapping
from sfumato.vault.record_changes import HeldCopy, exposure
from sfumato.vault.table_parts import parts_of

_ARRIVAL = "These rows were appended after version {}: with other copies they show which rows came when."


@dataclass(frozen=True)
class CopyRequest:
    """A copy that a recipient asks for: of which dataset, under which grant, with which key."""

    grant: Grant
    entry: Entry
    """The ledger entry of the grant."""
    dataset: Dataset
    generation: int
    key: Key
    level: str | float
    """The level of the copy, as it was requested: that of the grant, or a lower one."""
    fidelity: float
    keys: Mapping[int, Key]
    """The master keys of all generations, by which earlier entries are authenticated."""
    since: tuple[int, int] | None = None
    """The version after which rows were appended, if the copy has those alone, and the number of its rows."""

    @classmethod
    def of(
        cls,
        reading: LedgerReader,
        dataset: Dataset,
        recipient: str,
        keys: Mapping[int, Key],
        now: datetime,
        requested: RequestedLevel,
        since: int | None = None,
    ) -> CopyRequest:
        """The copy that a recipient may have now, at the level of its grant or at a lower one that it asks for.

        With `since` it has the rows alone that were appended after that version.
        """
        grant, entry = active_grant(reading, recipient, dataset.name, now)
        level, fidelity = (grant.level, grant.fidelity) if requested is None else lower_level(dataset, entry, requested)
        require_approval(reading, dataset, fidelity, grant.view)
        generation = reading.head().generation
        after = None if since is None else (since, _appended_since(reading, dataset, since))
        return cls(grant, entry, dataset, generation, keys[generation], level, fidelity, keys, after)

    @contextlib.contextmanager
    def source(self) -> Iterator[Source]:
        """The rows of the original that the copy is made of."""
        with self.dataset.source() if self.since is None else self.dataset.rows_after(self.since[1]) as source:
            yield source

    @property
    def scheme(self) -> TableScheme:
        """The scheme that makes the copy, with the view of the grant and the name of the recipient."""
        return self.dataset.scheme.with_view(self.grant.view).with_recipient(self.grant.recipient)

    def clear(self, source: Source, issuer: Issuer) -> Clearance[Source]:
        """Ask the release gate whether the copy may leave; ids were checked when the table was added."""
        scheme = self.scheme
        with contextlib.ExitStack() as stack:  # thresholds hold for the whole table, of which these may be few rows
            judged = stack.enter_context(self.dataset.source()) if scheme.policy.targets and self.since else source
            asked = gate.Request(scheme, source, source.schema, gate.sampler(scheme, judged), lambda: None)
            return gate.clear(asked, [Level(self.fidelity)], self.key, issuer=issuer)

    def terms(self) -> dict[str, Any]:
        """All that the bytes of the copy depend on."""
        grant = self.grant
        return {
            "version": self.dataset.version,
            "generation": self.generation,
            "level": self.level,
            "fidelity": self.fidelity,
            "columns": grant.columns and list(grant.columns),
            "where": grant.where,
            **({} if self.since is None else {"since": self.since[0]}),
        }

    def access(self, file_format: str) -> dict[str, Any]:
        """What the access log says about a delivery of the whole copy."""
        terms = {"version": self.dataset.version, "level": self.level, "fidelity": self.fidelity}
        since = {} if self.since is None else {"since": self.since[0]}
        return {**terms, **since, "format": file_format, "bytes": None}

    def recorded(self, reading: LedgerReader) -> list[Entry]:
        """The entries that record that this very copy was released, or that its release began."""
        query = Query(kind="release", dataset=self.dataset.name, recipient=self.grant.recipient)
        terms = {"since": None, **self.terms()}
        found = reading.entries(query)
        return [one for one in found if canonical({name: one.body.get(name) for name in terms}) == canonical(terms)]


class VaultIssuer(Issuer):
    """Answers for a copy from a vault: records it, if the grant is still in force, just before it is complete."""

    def __init__(self, ledger: Ledger, request: CopyRequest, now: Callable[[], datetime]) -> None:
        self._ledger, self._request, self._now = ledger, request, now

    def authorise(self) -> None:
        with self._ledger.reading(self._request.keys) as reading:
            self._check_grant(reading)

    @property
    def was_released(self) -> bool:
        with self._ledger.reading(self._request.keys) as reading:
            return bool(self._request.recorded(reading))

    @property
    def other_copies(self) -> Sequence[tuple[Level, Key]]:
        """The most faithful copies with other noise that anybody was given, of any version or overlapping dataset.

        Other noise has a copy under an earlier master key. It also has a copy of a dataset that shares records with
        this one, in whose stead a copy of this dataset under a key of its own is attacked.
        """
        request = self._request
        if not request.dataset.scheme.policy.targets:
            return []
        best: dict[int, float] = {}
        with self._ledger.reading(request.keys) as reading:
            for entry in reading.entries(Query(kind="release", dataset=request.dataset.name)):
                generation = entry.body["generation"]
                if generation != request.generation and generation in request.keys:
                    best[generation] = max(best.get(generation, 0.0), entry.body["fidelity"])
            elsewhere = [
                (Level(max(entry.body["fidelity"] for entry in found)), request.key.derive("overlap", other))
                for other in overlapping(reading, request.dataset.name)
                if (found := reading.entries(Query(kind="release", dataset=other)))
            ]
        return [(Level(fidelity), request.keys[generation]) for generation, fidelity in best.items()] + elsewhere

    def begin(self, draft: Manifest) -> Manifest:
        request = self._request
        return replace(
            draft,
            level=request.level if isinstance(request.level, str) else draft.level,
            requested_fidelity=request.dataset.scheme.policy.ladder.level(request.level).fidelity,
            recipient=request.grant.recipient,
            version=request.dataset.version,
            since=0 if request.since is None else request.since[0],
            limits=draft.limits if request.since is None else (*draft.limits, _ARRIVAL.format(request.since[0])),
            signer=public_key(request.key),
        )

    def digest_algorithm(self) -> str:
        with self._ledger.reading(self._request.keys) as reading:
            recorded = [entry.body["digest"] for entry in self._request.recorded(reading)]
        return next((algorithm_of(digest) for digest in recorded if digest), BLAKE3)

    def finish(self, manifest: Manifest) -> Manifest:
        self.record("released", manifest.rows, manifest.digest)
        return signed(manifest, self._request.key)

    def record(self, action: str, rows: int, digest: str = "") -> None:
        """Record the release, unless it is recorded already; without a digest, record that it began."""
        request, dataset, keys = self._request, self._request.dataset, self._request.keys
        with self._ledger.reading(keys) as reading:
            if self._is_recorded(reading, digest):
                return
            before = request.recorded(reading)
        body = {**request.terms(), "rows": rows, "digest": digest}
        body["exposure"] = before[0].body["exposure"] if before else self._exposure(rows)
        if accepted_risks(dataset.scheme):
            body["accepted"] = accepted_risks(dataset.scheme)
        with self._ledger.writing(keys) as writing:
            if not self._is_recorded(writing, digest):
                writing.append(action, "release", body, dataset=dataset.name, recipient=request.grant.recipient)

    def _is_recorded(self, reading: LedgerReader, digest: str) -> bool:
        """Whether the ledger has it already; refused without a grant, or if another copy was recorded for it."""
        self._check_grant(reading)
        before = self._request.recorded(reading)
        for entry in before:
            recorded = entry.body["digest"]
            if digest and recorded and algorithm_of(digest) != algorithm_of(recorded):
                raise VaultError(
                    f"this copy of {entry.dataset} was recorded by another version of the software in the meantime; "
                    "release it again"
                )
            if digest and recorded not in ("", digest):
                raise TamperedError(
                    f"the same request must give the same copy, and this one of {entry.dataset} differs from the one "
                    f"recorded as entry {entry.number}; run `sfumato verify`"
                )
        return any(entry.body["digest"] or not digest for entry in before)

    def _check_grant(self, reading: LedgerReader) -> None:
        """Refuse a copy whose grant or dataset changed since it was requested."""
        request, dataset = self._request, self._request.dataset
        _, entry = active_grant(reading, request.grant.recipient, dataset.name, self._now())
        if entry.number != request.entry.number or require(reading, "dataset", dataset.name).body != dataset.body:
            raise GrantError(f"the grant or {dataset.name} changed while the copy was made; release it again")
        require_approval(reading, dataset, request.fidelity, request.grant.view)

    def _exposure(self, rows: int) -> dict[str, Any]:
        """What the recipient holds with this copy; computed outside of any transaction, since it takes long."""
        request = self._request
        with self._ledger.reading(request.keys) as reading:
            earlier = held_copies(reading, request.dataset.name, request.grant.recipient)
            elsewhere = held_elsewhere(reading, request.dataset.name, request.grant.recipient)
        this = held_copy(request.dataset.body, request.fidelity, request.generation)
        noisy = request.dataset.has_additive_noise
        alone = residual_error(request.fidelity, request.dataset.variance_ratio) if noisy else None
        if set(earlier) <= set(this) and not elsewhere:
            return {"draws": {"1": rows}, "error": alone, "alone": alone}
        found = exposure(request.dataset.store, [*earlier, *this], numbers=noisy, elsewhere=elsewhere)
        return {**found, "alone": alone}


class FileIssuer(VaultIssuer):
    """Answers for a copy that is written to a file: each time is a delivery, which the access log records too."""

    def finish(self, manifest: Manifest) -> Manifest:
        request, finished = self._request, super().finish(manifest)
        with self._ledger.writing(request.keys) as writing:
            subject = {"dataset": request.dataset.name, "recipient": request.grant.recipient}
            writing.record_access("delivered", request.access("file"), **subject)
        return finished


class RepeatIssuer(VaultIssuer):
    """Answers for a copy that was released before: while the ledger is unchanged, nothing is checked or recorded."""

    def __init__(
        self, ledger: Ledger, request: CopyRequest, now: Callable[[], datetime], head: str, digest: str
    ) -> None:
        super().__init__(ledger, request, now)
        self._head, self._digest = head, digest

    def authorise(self) -> None:
        if not self._is_unchanged():
            super().authorise()

    @property
    def was_released(self) -> bool:
        return True

    def digest_algorithm(self) -> str:
        return algorithm_of(self._digest)

    def record(self, action: str, rows: int, digest: str = "") -> None:
        """Look at the ledger's head, and further only if it has changed."""
        if digest not in ("", self._digest) or not self._is_unchanged():
            super().record(action, rows, digest)

    def _is_unchanged(self) -> bool:
        with self._ledger.reading(self._request.keys) as reading:
            same = reading.verified_head().head == self._head
        return same and not self._request.grant.is_over(self._now())


def release(
    request: CopyRequest,
    ledger: Ledger,
    out: str | Path,
    now: Callable[[], datetime],
    progress: Callable[[int], None] | None,
    threads: int | None,
) -> Manifest:
    """Make a copy, record it, and let it appear."""
    with request.source() as source:
        check_output(source, out)
        cleared = request.clear(source, FileIssuer(ledger, request, now))
        return write_copy(cleared, out, threads=threads, progress=progress)


def _appended_since(reading: LedgerReader, dataset: Dataset, version: int) -> int:
    """The number of rows of an earlier version, if all later ones did nothing but append to it."""
    entries = reading.entries(Query(kind="dataset", dataset=dataset.name))
    bodies = {int(entry.body["version"]): entry.body for entry in entries}
    if version not in bodies or version >= dataset.version:
        raise GrantError(
            f"rows since a version need an earlier one, and the versions of {dataset.name} are 1 to {dataset.version}, "
            f"got {version}"
        )
    for later in range(version + 1, dataset.version + 1):
        if APPENDED not in bodies[later]:
            raise NotAppended(
                f"rows since a version need later ones that were appended, and version {later} of {dataset.name} was "
                "an update, which may have changed any row; release the whole copy"
            )
    return int(bodies[version]["rows"])


def held_copies(reading: LedgerReader, dataset: str, recipient: str | None = None) -> list[HeldCopy]:
    """The copies of a dataset that a recipient, or all together, were given."""
    releases = reading.entries(Query(kind="release", dataset=dataset, recipient=recipient))
    versions = reading.entries(Query(kind="dataset", dataset=dataset))
    bodies = {entry.body["version"]: entry.body for entry in versions}
    given = [(bodies[one.body["version"]], one.body["fidelity"], one.body["generation"]) for one in releases]
    return list(dict.fromkeys(part for one in given for part in held_copy(*one)))


def held_elsewhere(reading: LedgerReader, dataset: str, recipient: str | None = None) -> list[list[HeldCopy]]:
    """The copies, of each other dataset that shares records with this one, that a recipient, or all, were given."""
    held = [held_copies(reading, other, recipient) for other in overlapping(reading, dataset)]
    return [copies for copies in held if copies]


def held_copy(dataset: dict[str, Any], fidelity: float, generation: int) -> list[HeldCopy]:
    """A copy of a version at a level, as its holder sees it, by the parts of its table."""
    noise = Level(fidelity).noise / variance_ratio(dataset)
    records = [part.records for part in parts_of(dataset)]
    return [HeldCopy(one["name"], one["sha256"], generation, noise) for one in records]
