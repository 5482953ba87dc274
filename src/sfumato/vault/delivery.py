"""Delivery: copies that are sent while they are made, recorded before the first byte and signed with the last."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from sfumato.errors import GrantError, NotGranted
from sfumato.ledger.chain import canonical
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.levels import Level
from sfumato.release.certificate import signed
from sfumato.release.copying import CopyStream
from sfumato.release.layout import SOFTWARE
from sfumato.release.manifest import FORMAT, Manifest
from sfumato.tables.source import Source
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import RequestedLevel, require
from sfumato.vault.lifecycle import VaultLifecycle
from sfumato.vault.releases import CopyRequest, RepeatIssuer, VaultIssuer

MAX_LEVELS = 20
"""The most levels below that of its grant at which a recipient may request one version of a dataset.

Every copy that was sent stays in the ledger for good.
"""


@dataclass(frozen=True)
class Delivery:
    """A copy that a recipient may have now. Nothing happens before its bytes are asked for."""

    vault: VaultLifecycle
    request: CopyRequest
    head: str
    """The head of the ledger when all of this was found in it."""
    released: tuple[int, str] | None
    """The rows and the digest of the copy, if it was released before."""

    @classmethod
    def of(
        cls,
        vault: VaultLifecycle,
        recipient: str,
        dataset: str,
        level: RequestedLevel = None,
        since: int | None = None,
    ) -> Delivery:
        """The copy that a recipient was granted, or a less faithful one, or the rows alone since a version.

        A dataset that does not exist and one that was never granted get the same answer after the same work.
        """
        keys = vault.keys()
        with vault.ledger.reading(keys) as reading:
            if reading.latest("grant", dataset, recipient) is None:
                raise NotGranted(f"there is no dataset {dataset!r} that you were granted; ask its owner")
            now = Dataset.of(require(reading, "dataset", dataset), vault.store)
            request = CopyRequest.of(reading, now, recipient, keys, vault.now(), level, since)
            recorded = request.recorded(reading)
            if since is not None and not recorded:
                _require_received(reading, request, since)
            if not recorded and (level, since) != (None, None):
                _check_level_count(reading, request)
            found = [entry.body for entry in recorded if entry.body["digest"]]
            released = (found[0]["rows"], found[0]["digest"]) if found else None
            return cls(vault, request, reading.head().head, released)

    def by(self, actor: str) -> Delivery:
        """The same delivery, requested by somebody else."""
        return replace(self, vault=self.vault.acting_as(actor))

    def tag(self, file_format: str) -> str:
        """The entity tag of the bytes: equal for the same copy in the same format, on every server."""
        body, request = self.request.dataset.body, self.request
        files = [*(part.source["sha256"] for part in request.dataset.parts), body["scheme"]["sha256"]]
        terms = [request.grant.recipient, request.dataset.name, request.terms(), files]
        content = [*terms, file_format, SOFTWARE, FORMAT, pa.__version__]
        key = request.key.derive("tag")  # keyed: else one who knows all records but one could test guesses of it
        return hmac.digest(key.expose(), canonical(content).encode(), "sha256").hex()[:32]

    def chunks(self, file_format: str) -> Iterator[bytes]:
        """The bytes of the copy; recorded as begun before the first one, and as released before the last."""
        with self.request.source() as source:
            issuer = self._issuer()
            stream = CopyStream(self.request.clear(source, issuer), file_format, threads=1)
            issuer.record("began", self._row_count(source))
            yield from filter(None, stream)

    def manifest(self) -> Manifest | None:
        """The manifest and certificate of a copy that was released; nothing is signed that is not in the ledger."""
        if self.released is None:
            return None
        request, (rows, digest) = self.request, self.released
        draft = self._issuer().begin(request.scheme.manifest(request.dataset.schema, self.level, request.key))
        return signed(replace(draft, rows=rows, digest=digest), request.key)

    @property
    def level(self) -> Level:
        """The level of the copy."""
        return Level(self.request.fidelity)

    def _issuer(self) -> VaultIssuer:
        ledger, now = self.vault.ledger, self.vault.now
        if self.released is None:
            return VaultIssuer(ledger, self.request, now)
        return RepeatIssuer(ledger, self.request, now, self.head, self.released[1])

    def _row_count(self, source: Source) -> int:
        """The number of rows that the recipient sees: as recorded, else by a look at the columns that decide it."""
        if self.released is not None:
            return self.released[0]
        with self.vault.ledger.reading(self.request.keys) as reading:
            before = self.request.recorded(reading)
        if before:
            return int(before[0].body["rows"])
        view = self.request.grant.view
        if view.where is None:
            return int(self.request.dataset.body["rows"]) - (self.request.since or (0, 0))[1]
        return sum(int(view.holds(batch).sum()) for batch in source.batches(sorted(view.needs())))


def _require_received(reading: LedgerReader, request: CopyRequest, version: int) -> None:
    """Refuse the rows since a version to a recipient without it: they would tell which rows came when."""
    releases = reading.entries(Query(kind="release", dataset=request.dataset.name, recipient=request.grant.recipient))
    if not any(one.body["version"] == version for one in releases):
        raise GrantError(
            f"the rows since version {version} are for recipients who have that version, and you received no copy of "
            "it; request the whole copy"
        )


def _check_level_count(reading: LedgerReader, request: CopyRequest) -> None:
    """Refuse a copy at yet another level, or since yet another version, to a recipient who has received many."""
    releases = reading.entries(Query(kind="release", dataset=request.dataset.name, recipient=request.grant.recipient))
    now = [one.body for one in releases if one.body["version"] == request.dataset.version]
    levels, versions = {one["fidelity"] for one in now}, {one["since"] for one in now if "since" in one}
    if request.fidelity != request.grant.fidelity and len(levels - {request.grant.fidelity}) >= MAX_LEVELS:
        known = ", ".join(f"{fidelity:g}" for fidelity in sorted(levels))
        raise GrantError(
            f"a recipient may request at most {MAX_LEVELS} levels of one version of a dataset, and has received copies "
            f"at {known}; request one of these"
        )
    if request.since is not None and len(versions) >= MAX_LEVELS:
        raise GrantError(
            f"a recipient may request the rows of a version since at most {MAX_LEVELS} others, and has received those "
            f"since {', '.join(map(str, sorted(versions)))}; request one of these, or all rows"
        )
