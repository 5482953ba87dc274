"""Audit input: the copies under audit as evidence for attacks, with the original of the same records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pyarrow as pa

from sfumato.attacks import Evidence, Knowledge, Numbers, Records, simulate_copies
from sfumato.audit.alignment import (
    in_secret_order,
    match_records,
    require_aligned,
    require_identifiers,
    shared_identifiers,
)
from sfumato.errors import AttackError
from sfumato.kernels import Rows
from sfumato.models import of_type
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import copy_evidence, original_records, pooled_evidence, with_public
from sfumato.release.manifest import Manifest
from sfumato.tables.columns import with_bins
from sfumato.tables.margin import coarsened_scores
from sfumato.tables.sampling import one_in, pseudo_random_order

MAX_KNOWN = 2000
"""About how many of the audited records the attacker is assumed to know; at most one in ten."""


def _coarsened(part: Numbers) -> Numbers:
    """Simulated scores as those of the values that a copy would show."""
    if part.copula is None:
        return part
    return replace(part, data=coarsened_scores(part.values, part.copula))


def entity_column(manifests: Sequence[Manifest], original: pa.Table) -> str | None:
    """The column of the original that names entities, where rows of one share noise."""
    named = {model.entity_column for manifest in manifests for model in manifest.models}
    return next((name for name in sorted(named) if name and name in original.column_names), None)


def entity_codes(original: pa.Table, column: str) -> Rows:
    """The entity of each record as a number."""
    indices = original.column(column).combine_chunks().dictionary_encode().indices
    codes: Rows = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _shows(manifest: Manifest, column: str) -> bool:
    """Whether a copy shows a column as it is."""
    return any(column in model.columns for model in of_type(manifest.models, Unchanged))


@dataclass(frozen=True)
class AuditInput:
    """The original and the copies of the same records, in the same row order."""

    names: tuple[str, ...]
    """The names of the recipients who hold the copies."""
    manifests: tuple[Manifest, ...]
    copies: tuple[Evidence, ...]
    original: pa.Table
    truth: Records
    """The original in the form in which estimates are scored."""
    tables: tuple[pa.Table, ...]
    """The copies as they stand."""

    @classmethod
    def of(cls, original: pa.Table, copies: dict[str, pa.Table]) -> AuditInput:
        """Match copies, by the names of their holders, with the original; records that a copy lacks are left out."""
        if not copies:
            raise AttackError("an audit needs at least one copy; grant one, or name the files")
        manifests = [Manifest.of(copy) for copy in copies.values()]
        ids = require_identifiers(original.column_names, shared_identifiers(manifests))
        models = [model for manifest in manifests for model in manifest.models]
        aligned = require_aligned(original, in_secret_order=not ids and in_secret_order(manifests))
        table, *matched = match_records([aligned, *copies.values()], ids)
        if table.num_rows < 2:
            raise AttackError(
                "an audit needs at least two records that all copies have, and there are fewer; audit copies of the "
                "same records"
            )
        evidence = [copy_evidence(copy, manifest) for copy, manifest in zip(matched, manifests, strict=True)]
        column = entity_column(manifests, table)
        if column is not None:  # published or not, attackers may know which records belong together
            evidence = [
                part if _shows(manifest, column) else with_public(part, table, column)
                for part, manifest in zip(evidence, manifests, strict=True)
            ]
        table = with_bins(table, of_type(models, UniformReplacement))
        truth = original_records(table, models)
        return cls(tuple(copies), tuple(manifests), tuple(evidence), table, truth, tuple(matched))

    def take(self, rows: Rows) -> AuditInput:
        """The input restricted to some rows."""
        return replace(
            self,
            copies=tuple(copy.take(rows) for copy in self.copies),
            original=self.original.take(pa.array(rows)),
            truth=self.truth.take(rows),
            tables=tuple(table.take(pa.array(rows)) for table in self.tables),
        )

    def sample(self, most: int) -> AuditInput:
        """The input restricted to a random sample of its records, or of its entities, if there are more records."""
        if len(self.truth) <= most:
            return self
        entities = self.entities
        if entities is None:
            return self.take(np.sort(pseudo_random_order(len(self.truth))[:most]))
        rank = np.argsort(pseudo_random_order(int(entities.max()) + 1))[entities]
        return self.take(np.sort(np.argsort(rank, kind="stable")[:most]))

    def hold_out(self, one_in_so_many: int) -> tuple[AuditInput, AuditInput]:
        """The input without one record in so many, and those records as a control."""
        control = self._one_in(one_in_so_many)
        return self.take(np.delete(np.arange(len(self.truth)), control)), self.take(control)

    def one_per_entity(self) -> AuditInput:
        """The input restricted to one record of each entity, whose noise is independent of that of all others."""
        entities = self.entities
        if entities is None:
            return self
        order = pseudo_random_order(len(self.truth))
        _, first = np.unique(entities[order], return_index=True)
        return self.take(np.sort(order[first]))

    @property
    def entities(self) -> Rows | None:
        """The entity of each record as a number, where rows of one share noise."""
        column = entity_column(self.manifests, self.original)
        return None if column is None else entity_codes(self.original, column)

    @property
    def best_copy(self) -> int:
        """The index of the most faithful copy."""
        return max(range(len(self.copies)), key=lambda i: self.manifests[i].fidelity)

    def path_count(self) -> int:
        """The largest number of paths that the copies of a column lie on; with several, collusion adds information."""
        paths: dict[str, set[str]] = {}
        for copy in self.copies:
            parts = [(part.model.columns, part.path) for part in copy.numbers]
            parts += [(part.model.columns, part.path) for part in copy.categories]
            for columns, path in parts:
                for column in columns:
                    paths.setdefault(column, set()).add(path)
        return max(map(len, paths.values()), default=1)

    def known_rows(self) -> Rows:
        """The row indices of the records that attackers know."""
        return self._one_in(max(len(self.truth) // MAX_KNOWN, 10))

    def _one_in(self, so_many: int) -> Rows:
        """One record in so many, or all records of one entity in so many: others of it would tell about it."""
        entities = self.entities
        if entities is None:
            return one_in(so_many, len(self.truth))
        _, known = np.unique(entities, return_inverse=True)
        return np.flatnonzero(np.isin(known, one_in(so_many, int(known.max()) + 1)))

    def combined(self, first: int | None = None, *, known_records: bool = True) -> Evidence:
        """The evidence of a coalition that holds all copies, or the first few, and maybe some known records."""
        return pooled_evidence(self.copies[:first], self._knowledge() if known_records else None)

    def single(self, i: int, *, known_records: bool) -> Evidence:
        """The evidence of an attacker who holds one copy, and maybe some known records."""
        return pooled_evidence([self.copies[i]], self._knowledge() if known_records else None)

    def with_independent_noise(self) -> AuditInput:
        """Simulated copies of the same levels and public models, whose noise is independent between copies."""
        separate = []
        for i, copy in enumerate(self.copies):
            numbers = tuple(replace(part, path=f"{part.path}#{i}") for part in copy.numbers)
            categories = tuple(replace(part, path=f"{part.path}#{i}") for part in copy.categories)
            # linear maps are left out, since they are not redrawn
            separate.append(replace(copy, numbers=numbers, categories=categories, linear_maps=()))
        drawn = simulate_copies(pooled_evidence(separate), self.truth)
        drawn_numbers, drawn_categories = iter(drawn.numbers), iter(drawn.categories)
        copies = [
            replace(
                copy,
                numbers=tuple(map(_coarsened, islice(drawn_numbers, len(copy.numbers)))),
                categories=tuple(islice(drawn_categories, len(copy.categories))),
            )
            for copy in separate
        ]
        return replace(self, copies=tuple(copies))

    def _knowledge(self) -> Knowledge:
        return Knowledge(known=self.truth.take(self.known_rows()), known_rows=self.known_rows())
