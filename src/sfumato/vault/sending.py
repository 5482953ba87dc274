"""Copies that are sent while they are made: recorded before the first byte leaves, and signed with the last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.errors import GrantError
from sfumato.ledger.chain import canonical
from sfumato.ledger.ledger import Reading
from sfumato.release import digest
from sfumato.release.certificate import signed
from sfumato.release.copying import Copying
from sfumato.release.manifest import Manifest
from sfumato.release.plan import SOFTWARE
from sfumato.schema.levels import Level
from sfumato.schema.table import Source
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import Asked, known
from sfumato.vault.releases import Recorded, Request, under_other_keys

if TYPE_CHECKING:
    from sfumato.vault.vault import Vault


@dataclass(frozen=True)
class Sending:
    """A copy that a recipient may have now. Nothing happens before its bytes are asked for."""

    vault: Vault
    request: Request

    @classmethod
    def of(cls, vault: Vault, recipient: str, dataset: str, level: Asked = None) -> Sending:
        """The copy that a recipient was granted, or a less faithful one.

        A dataset that is not there, and one that was never granted, get the same answer after the same work.
        """
        keys = vault.keys()
        with vault.ledger.reading(keys) as reading:
            if reading.latest("grant", dataset, recipient) is None:
                raise NotGranted(f"there is no dataset {dataset!r} that you were granted; ask its owner")
            now = Dataset.of(known(reading, "dataset", dataset), vault.store)
            return cls(vault, Request.of(reading, now, recipient, keys, vault.now(), level))

    def tag(self, form: str) -> str:
        """Names the bytes: the same for the same copy in the same format, by whichever server."""
        body, request = self.request.dataset.body, self.request
        files = [body[name]["sha256"] for name in ("source", "scheme")]
        said = [request.grant.recipient, request.dataset.name, request.terms(), files, form, SOFTWARE, pa.__version__]
        return hashlib.sha256(canonical(said).encode()).hexdigest()[:32]

    def chunks(self, form: str) -> Iterator[bytes]:
        """The bytes of the copy; recorded as begun before the first one, and as given before the last."""
        request, ledger = self.request, self.vault.ledger
        seal = Recorded(ledger, request, self.vault.now)
        with request.dataset.source() as source:
            with ledger.reading() as reading:
                before = request.recorded(reading)
                beside = [] if before else under_other_keys(reading, request, self.vault.keys())
            if not before:
                request.scheme.check_motion(source)
                request.scheme.check_targets(source, [self.level], request.key, beside)
            seal.record("began", self._rows(source) if not before else before[0].body["rows"])
            copying = Copying(request.scheme, source, form, self.level, request.key, seal=seal, threads=1)
            yield from filter(None, copying)

    def manifest(self) -> Manifest:
        """The manifest and certificate of the copy, from the ledger if it was given, else by making it once."""
        request = self.request
        with self.vault.ledger.reading() as reading:
            given = self._given(reading)
        with request.dataset.source() as source:
            seal = Recorded(self.vault.ledger, request, self.vault.now)
            draft = seal.begin(request.scheme.manifest(source.schema, self.level, request.key))
            rows, mark = given or self._measured(source)
        return signed(replace(draft, rows=rows, digest=mark), request.key)

    def _given(self, reading: Reading) -> tuple[int, str] | None:
        found = [entry.body for entry in self.request.recorded(reading) if entry.body["digest"]]
        return (found[0]["rows"], found[0]["digest"]) if found else None

    def _measured(self, source: Source) -> tuple[int, str]:
        request, rows, marks = self.request, 0, []
        for [(copy, mark)] in request.scheme.blurred(source, [self.level], request.key, 1):
            rows += copy.num_rows
            marks.append(mark)
        return rows, digest.of_batches(marks)

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


class NotGranted(GrantError):
    """A dataset that a recipient may not know of."""
