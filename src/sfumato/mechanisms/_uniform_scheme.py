"""The fitted uniform mechanism: random replacement over fixed domains, at any point of the path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from sfumato.errors import LevelError
from sfumato.kernels import NULL, Words
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.keys.stream import Stream, pairs
from sfumato.levels import Level
from sfumato.mechanisms import Scheme, path_name
from sfumato.mechanisms._entity_rows import ENTITY_ROWS
from sfumato.mechanisms._replacement import Replacement
from sfumato.mechanisms._single_records import SingleReplacement
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.tables.domain import CategoryCodes, Domain
from sfumato.tables.record_ids import record_ids

LEAST = 1e-9
"""The least retention: below, a copy is noise and takes long to make."""

_MOST_LISTED = 1 << 16
"""Domains with more values are not listed for the perturbation of single records."""


_NO_NULLS: npt.NDArray[np.bool_] = np.empty(0, np.bool_)


class UniformScheme(Scheme):
    """`Y` is `X` with probability `p`, else uniform over the product of the domains."""

    def __init__(
        self,
        columns: tuple[str, ...],
        domains: tuple[Domain, ...],
        scale: float,
        perturbs_null: bool,
        tree: PathTree,
        entities: tuple[str, float] | None = None,
    ) -> None:
        self.columns = columns
        self._domains, self._scale, self._perturbs_null, self._tree = domains, scale, perturbs_null, tree
        self._entity = None if entities is None else entities[0]
        self._entity_rows = 1.0 if entities is None else entities[1]
        named = () if self._entity is None else (self._entity,)
        self.path = path_name(*columns, self.state(), scale, perturbs_null, tree.declaration, *named)

    def fields(self, schema: pa.Schema) -> list[pa.Field]:
        return [
            pa.field(name, domain.result_type(schema.field(name).type))
            for name, domain in zip(self.columns, self._domains, strict=True)
        ]

    def state(self) -> dict[str, Any]:
        entities = {} if self._entity is None else {ENTITY_ROWS: self._entity_rows}
        return {"domains": [domain.encode() for domain in self._domains]} | entities

    def model(self, level: Level) -> UniformReplacement:
        return UniformReplacement(
            columns=self.columns,
            domains=tuple(domain.encode() for domain in self._domains),
            retention=self._retention(level),
            perturbs_null=self._perturbs_null,
            collusion_resistant=True,
            entity_rows=self._entity_rows,
            entity=self._entity or "",
        )

    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        codes, null = self._codes(batch)
        secret, drawn = key.derive("uniform", self.path), self._drawn_for(batch, rows, key)
        return [
            self._decode(batch, self._replace(codes, null, drawn, self._retention(level), secret), null)
            for level in levels
        ]

    def single_record(self, schema: pa.Schema, level: Level, key: Key) -> SingleReplacement | None:
        kinds = [schema.field(name).type for name in self.columns]
        plain = all(types.is_string(kind) or types.is_integer(kind) for kind in kinds)
        plain = plain and all(0 < domain.count <= _MOST_LISTED and not domain.edges for domain in self._domains)
        if self._entity is not None or not plain:
            return None
        domains = [domain.typed(kind).to_pylist() for domain, kind in zip(self._domains, kinds, strict=True)]
        stream = Stream(key.derive("uniform", self.path))
        return SingleReplacement(stream, domains, self._retention(level), self._perturbs_null)

    def draws(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        codes, null = self._codes(batch)
        total = self._join(codes, null, self._sizes())
        return Stream(key.derive("uniform", self.path)).bits(
            "draws", pairs(self._drawn_for(batch, rows, key), self._words(total, null))
        )[::2]

    def _drawn_for(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        """The ids of what categories are drawn for: records, or the entities that they are of.

        A draw is addressed by a category too, so that it is one for all rows of an entity that have it: a category that
        an entity always has does not come out by a vote over its rows.
        """
        return rows if self._entity is None else record_ids(batch, (self._entity,), rows, key)

    def drift(self, later: Scheme) -> float:  # noqa: ARG002 - uniform draws have no shape
        return 1.0

    def _codes(self, batch: pa.RecordBatch) -> tuple[list[CategoryCodes], list[npt.NDArray[np.bool_]]]:
        """The index of each cell in its domain, and which cells are null: an empty array where none is."""
        codes = [
            domain.codes(batch.column(name), name) for name, domain in zip(self.columns, self._domains, strict=True)
        ]
        arrays = [batch.column(name) for name in self.columns]
        null = [
            part < 0 if domain.may_miss(array) else _NO_NULLS
            for part, domain, array in zip(codes, self._domains, arrays, strict=True)
        ]
        return codes, [missing if missing.any() else _NO_NULLS for missing in null]

    def _retention(self, level: Level) -> float:
        """`p = f^scale`: a scale multiplies the axis `-ln p`."""
        given = self._tree.locate(level).level
        retention = float(given.fidelity**self._scale)
        if not LEAST <= retention < 1:
            raise LevelError(
                f"the retention of {' x '.join(self.columns)} must be at least {LEAST:g} and below 1, and at fidelity "
                f"{given.fidelity:.6g} it is {retention:g}; change its scale or the level"
            )
        return retention

    def _sizes(self) -> list[int]:
        return [domain.count + self._perturbs_null for domain in self._domains]

    def _replace(
        self,
        codes: list[CategoryCodes],
        null: list[npt.NDArray[np.bool_]],
        rows: Words,
        retention: float,
        secret: Key,
    ) -> list[CategoryCodes]:
        """The codes after replacement, as one number over the product of the domains."""
        sizes = self._sizes()
        total, size = self._join(codes, null, sizes), math.prod(sizes)
        if size == 0:  # no category at all: every cell is null
            return codes
        words = self._words(total, null)
        return self._part(Replacement(secret, retention, size).copy(total, words, rows), sizes)

    def _words(self, total: CategoryCodes, null: list[npt.NDArray[np.bool_]]) -> Words:
        """What cells are addressed by, besides their records."""
        words = total.view(np.uint64)
        if self._perturbs_null or not all(missing.size for missing in null):
            return words
        return np.where(np.logical_and.reduce(null), NULL, words)

    def _join(self, codes: list[CategoryCodes], null: list[npt.NDArray[np.bool_]], sizes: list[int]) -> CategoryCodes:
        """One number over the product of the domains.

        A null is the last category, or stands at the first and is put back afterwards.
        """
        total: CategoryCodes | None = None
        for part, missing, count in zip(codes, null, sizes, strict=True):
            code = np.where(missing, count - 1 if self._perturbs_null else 0, part) if missing.size else part
            total = code if total is None else total * count + code
        if total is None:
            raise TypeError("a replacement has at least one column")
        return total

    @staticmethod
    def _part(total: CategoryCodes, sizes: list[int]) -> list[CategoryCodes]:
        """The inverse of `_join`."""
        out = []
        for count in reversed(sizes[1:]):
            total, code = np.divmod(total, count)
            out.append(code)
        return [total, *reversed(out)]

    def _decode(
        self, batch: pa.RecordBatch, codes: list[CategoryCodes], null: list[npt.NDArray[np.bool_]]
    ) -> list[pa.Array]:
        """The columns that have these codes."""
        out = []
        for name, domain, code, missing in zip(self.columns, self._domains, codes, null, strict=True):
            gone = code >= domain.count if self._perturbs_null else missing
            shown = np.where(gone, 0, code) if gone.any() else code
            out.append(domain.array(shown, gone, batch.column(name).type))
        return out
