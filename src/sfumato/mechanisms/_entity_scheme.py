"""Gaussian noise for records that belong together: a part that all rows of an entity share, and a part per row.

Rows of one patient vary as `b + e`, with one `b` per patient. Noise of a single draw per row would vanish in their
mean, and noise of a single draw per patient would vanish in their differences. Here both parts have noise in their own
shape (huang2005's principle, for rows instead of columns): `Z = L_B·U(t) + L_W·V(t)` with `U` per entity and `V` per
row, on one path. Every linear combination of an entity's rows then has noise in proportion to its own variance.

A column that is constant in entities has no noise per row. Its own part of `U` is drawn for the entity and its value,
so that a correction draws it again; no other column uses that draw, so that one that is missing in some rows, or
changes after all, does not give the others several draws to average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats, Words
from sfumato.kernels.cholesky import gram
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.keys.stream import Stream
from sfumato.levels import Level
from sfumato.mechanisms._brownian_noise import OWN, Addresses
from sfumato.mechanisms._compiled import Labels
from sfumato.mechanisms._entity_rows import ENTITY_ROWS
from sfumato.mechanisms._gaussian_scheme import GaussianScheme, Spec
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.tables.record_ids import record_ids

BETWEEN, WITHIN, CONSTANT = "between", "within", "constant"
"""The keys of a scheme's state that hold the two factors, and which columns are constant."""


class EntityScheme(GaussianScheme):
    """`Y = X + L_B·U(t) + L_W·V(t)`, with one `U` per entity and one `V` per row."""

    def __init__(self, specs: Sequence[Spec], state: dict[str, Any], tree: PathTree, entity: str) -> None:
        super().__init__(specs, state, tree, entity)
        self.entity = entity
        self._between, self._within = np.array(state[BETWEEN], np.float64), _triangle(state[WITHIN])
        total = np.diag(gram(self._between)) + np.diag(gram(self._within))
        if not np.allclose(np.sqrt(total), self._sizes, rtol=1e-6):
            raise ValueError("the two parts of an entity's noise must add up to the spread")

    @property
    def _factor_in_steps(self) -> Floats:
        parts: Floats = np.hstack([self._between, self._within]) / self.step[:, None]
        return parts

    @property
    def covariance(self) -> Floats:
        return gram(self._between) + gram(self._within)

    def model(self, level: Level) -> GaussianNoise:
        whole = super().model(level)
        shared = whole.noise * gram(self._between)
        return replace(
            whole,
            between=tuple(tuple(line[: i + 1].tolist()) for i, line in enumerate(shared)),
            entity_rows=float(self._state[ENTITY_ROWS]),
            entity=self.entity,
        )

    @property
    def _streams(self) -> tuple[Labels, ...]:
        return tuple(("entity column", name) for name in self.columns) + super()._streams

    def _addresses(self, secret: Key, batch: pa.RecordBatch, rows: Words, key: Key) -> Addresses:
        """Those of the rows, and those of their entities for the part that is shared."""
        entities, stream = record_ids(batch, (self.entity,), rows, key), Stream(secret.derive("entity"))
        given = [stream.addresses(entities, [np.zeros(len(rows), np.uint64)])]
        streams = []
        words = self._read(batch)[0] if any(self._state[CONSTANT]) else []
        for i, constant in enumerate(self._state[CONSTANT]):
            streams.append(len(given) if constant else 0)
            if constant:
                given.append(stream.addresses(entities, [words[i]]))
        return Addresses(rows, [entities], given, [*streams, *[OWN] * len(self.columns)])


def _triangle(lines: Sequence[Sequence[float]]) -> Floats:
    out = np.zeros((len(lines), len(lines)))
    for i, line in enumerate(lines):
        out[i, : i + 1] = line
    return out
