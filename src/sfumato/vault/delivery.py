"""Copies that are sent while they are made: recorded before the first byte leaves, and signed with the last."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.errors import NotGranted
from sfumato.ledger.chain import canonical
from sfumato.levels import Level
from sfumato.release.certificate import signed
from sfumato.release.copying import Copying
from sfumato.release.manifest import Manifest
from sfumato.release.scheme import SOFTWARE
from sfumato.tables.source import Source
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import Asked, known
from sfumato.vault.releases import Again, Recorded, Request, under_other_keys

if TYPE_CHECKING:
    from sfumato.vault.vault import Vault


@dataclass(frozen=True)
class Delivery:
    """A copy that a recipient may have now. Nothing happens before its bytes are asked for."""

    vault: Vault
    request: Request
    head: str
    """Of the ledger, when all of this was found in it."""
    given: tuple[int, str] | None
    """The rows and the digest of the copy, if it was given before."""

    @classmethod
    def of(cls, vault: Vault, recipient: str, dataset: str, level: Asked = None) -> Delivery:
        """The copy that a recipient was granted, or a less faithful one.

        A dataset that is not there, and one that was never granted, get the same answer after the same work.
        """
        keys = vault.keys()
        with vault.ledger.reading(keys) as reading:
            if reading.latest("grant", dataset, recipient) is None:
                raise NotGranted(f"there is no dataset {dataset!r} that you were granted; ask its owner")
            now = Dataset.of(known(reading, "dataset", dataset), vault.store)
            request = Request.of(reading, now, recipient, keys, vault.now(), level)
            found = [entry.body for entry in request.recorded(reading) if entry.body["digest"]]
            given = (found[0]["rows"], found[0]["digest"]) if found else None
            return cls(vault, request, reading.head().head, given)

    def by(self, actor: str) -> Delivery:
        """The same, asked for by somebody else."""
        return replace(self, vault=self.vault.acting_as(actor))

    def tag(self, form: str) -> str:
        """Names the bytes: the same for the same copy in the same format, by whichever server."""
        body, request = self.request.dataset.body, self.request
        files = [body[name]["sha256"] for name in ("source", "scheme")]
        said = [request.grant.recipient, request.dataset.name, request.terms(), files, form, SOFTWARE, pa.__version__]
        key = request.key.derive("tag")  # else who knows all records but one could test guesses of that one
        return hmac.digest(key.expose(), canonical(said).encode(), "sha256").hex()[:32]

    def chunks(self, form: str) -> Iterator[bytes]:
        """The bytes of the copy; recorded as begun before the first one, and as given before the last."""
        request = self.request
        with request.dataset.source() as source:
            seal = self._seal()
            copying = Copying(request.scheme, source, form, self.level, request.key, seal=seal, threads=1)
            seal.record("began", self.given[0] if self.given else self._begun(source))
            yield from filter(None, copying)

    def _begun(self, source: Source) -> int:
        """How many rows a copy that was not given yet will have; refused if it must not be given at all."""
        request = self.request
        with self.vault.ledger.reading() as reading:
            before = request.recorded(reading)
            beside = [] if before else under_other_keys(reading, request, self.vault.keys())
        if before:
            return int(before[0].body["rows"])
        request.scheme.check_motion(source)
        request.scheme.check_targets(source, [self.level], request.key, beside)
        return self._rows(source)

    def _seal(self) -> Recorded:
        ledger, now = self.vault.ledger, self.vault.now
        if self.given is None:
            return Recorded(ledger, self.request, now)
        return Again(ledger, self.request, now, self.head, self.given[1])

    def manifest(self) -> Manifest | None:
        """The manifest and certificate of a copy that was given; nothing is signed that is not in the ledger."""
        if self.given is None:
            return None
        request, (rows, mark) = self.request, self.given
        draft = self._seal().begin(request.scheme.manifest(request.dataset.schema, self.level, request.key))
        return signed(replace(draft, rows=rows, digest=mark), request.key)

    @property
    def level(self) -> Level:
        """The level of the copy."""
        return Level(self.request.fidelity)

    def _rows(self, source: Source) -> int:
        """How many rows the recipient sees, by a look at the columns that decide it."""
        view = self.request.grant.view
        if view.where is None:
            return int(self.request.dataset.body["rows"])
        return sum(int(view.holds(batch).sum()) for batch in source.batches(sorted(view.needs())))
