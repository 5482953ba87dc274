"""The audit_input: the copies that are audited, with the original of the same records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa

from sfumato.attacks import Evidence, Knowledge, Records, simulated
from sfumato.audit.alignment import aligned, matched, needed, shared_ids
from sfumato.errors import AttackError
from sfumato.kernels import Rows
from sfumato.release.evidence import copy_evidence, records, together
from sfumato.release.manifest import Manifest
from sfumato.tables.sampling import one_in

KNOWN = 2000
"""Records that the attacker is assumed to know, of those that are audited; at most one in ten."""


@dataclass(frozen=True)
class AuditInput:
    """What is audited: the original and the copies of the same records, as attacks see them."""

    names: tuple[str, ...]
    manifests: tuple[Manifest, ...]
    copies: tuple[Evidence, ...]
    original: pa.Table
    truth: Records

    @classmethod
    def of(cls, original: pa.Table, copies: dict[str, pa.Table]) -> AuditInput:
        """Copies by their holders' names; records that not all of them hold are left out."""
        if not copies:
            raise AttackError("an audit needs at least one copy; grant one, or name the files")
        manifests = [Manifest.of(copy) for copy in copies.values()]
        ids = needed(original.column_names, shared_ids(manifests))
        models = [model for manifest in manifests for model in manifest.models]
        table, *found = matched([aligned(original, models), *copies.values()], ids)
        if table.num_rows < 2:
            raise AttackError("an audit needs records that all holders of copies have, and there are none")
        shown = [copy_evidence(copy, manifest) for copy, manifest in zip(found, manifests, strict=True)]
        return cls(tuple(copies), tuple(manifests), tuple(shown), table, records(table, models))

    def take(self, rows: Rows) -> AuditInput:
        """Some of the records."""
        return replace(
            self,
            copies=tuple(copy.take(rows) for copy in self.copies),
            original=self.original.take(pa.array(rows)),
            truth=self.truth.take(rows),
        )

    def split(self, share: int) -> tuple[AuditInput, Records]:
        """All but one record in so many, and the truth about those."""
        apart = one_in(share, len(self.truth))
        return self.take(np.delete(np.arange(len(self.truth)), apart)), self.truth.take(apart)

    def paths(self) -> int:
        """On how many paths the copies of some column lie: on more than one, pooling them gains."""
        parts: dict[str, set[str]] = {}
        for copy in self.copies:
            lanes = [(part.model.columns, part.path) for part in copy.numbers]
            lanes += [(part.model.columns, part.path) for part in copy.categories]
            for columns, path in lanes:
                for column in columns:
                    parts.setdefault(column, set()).add(path)
        return max(map(len, parts.values()), default=1)

    def known(self) -> Rows:
        """The places of the records that attackers know."""
        return one_in(max(len(self.truth) // KNOWN, 10), len(self.truth))

    def pooled(self, first: int | None = None, *, knows: bool = True) -> Evidence:
        """All copies, or the first few, in one hand."""
        return together(self.copies[:first], self._knowledge() if knows else None)

    def alone(self, i: int, *, knows: bool) -> Evidence:
        """One of the copies."""
        return together([self.copies[i]], self._knowledge() if knows else None)

    def twin(self) -> AuditInput:
        """The same levels with noise that is independent between copies, by the same published models."""
        apart = []
        for i, copy in enumerate(self.copies):
            own = tuple(replace(part, path=f"{part.path}#{i}") for part in copy.numbers)
            drawn = tuple(replace(part, path=f"{part.path}#{i}") for part in copy.categories)
            apart.append(replace(copy, numbers=own, categories=drawn, turned=()))  # a turn is not drawn anew
        made = simulated(together(apart), self.truth)
        numbers, categories = iter(made.numbers), iter(made.categories)
        copies = [
            replace(
                copy,
                numbers=tuple(islice(numbers, len(copy.numbers))),
                categories=tuple(islice(categories, len(copy.categories))),
            )
            for copy in apart
        ]
        return replace(self, copies=tuple(copies))

    def _knowledge(self) -> Knowledge:
        return Knowledge(known=self.truth.take(self.known()), places=self.known())
