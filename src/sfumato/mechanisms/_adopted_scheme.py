"""The fitted adopted mechanism: noise whose path passes through that of a copy which was released earlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.kernels import Floats, Mask, Words
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.levels import Level
from sfumato.mechanisms._gaussian_scheme import GaussianScheme, Spec
from sfumato.models.gaussian_noise import STATED
from sfumato.tables import numeric
from sfumato.tables.record_ids import hashed

_NO_SECRET = Key.from_bytes(bytes(32))


class AdoptedScheme(GaussianScheme):
    """`Y(t) = X + B(t) + min(t/t₁, 1)·(Y₁ - X - B(t₁))`, with `B = L·W` and `Y₁` the earlier copy.

    This is the path of the noise given its point at `t₁` (li2012, Algorithm 3 with v₁ given): at `t₁` the copy is `Y₁`
    itself, a less faithful one adds noise to it, and a more faithful one is such that `Y₁` adds noise to that.
    """

    def __init__(self, specs: Sequence[Spec], state: dict[str, Any], tree: PathTree) -> None:
        super().__init__(specs, state, tree)
        self._earlier: tuple[str, ...] = tuple(state["earlier"])
        self._adopted = Level(state["fidelity"])
        self._time = self._locate(self._adopted).node.time

    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        given, own = self._given(batch), self._own_ids(batch, rows)
        *copies, drawn = super().perturb_levels(batch, own, [*levels, self._adopted], key)
        at_earlier = np.array([numeric.read(array)[0] for array in drawn])
        correction = np.nan_to_num(given - at_earlier)  # a record that was not released then keeps its noise
        return [
            self._corrected(copy, self._share(level) * correction) for copy, level in zip(copies, levels, strict=True)
        ]

    def draws(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        return super().draws(batch, self._own_ids(batch, rows), key)

    def paths(self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key) -> tuple[Floats, Floats]:
        own = self._own_ids(batch, rows)
        original, noise = super().paths(batch, own, [*levels, self._adopted], key)
        correction = np.nan_to_num(self._given(batch) - original - noise[-1])
        shares = np.array([self._share(level) for level in levels])
        return original, noise[:-1] + shares[:, None, None] * correction

    @property
    def _shape_source(self) -> str:
        return STATED

    def _share(self, level: Level) -> float:
        """The share of the earlier noise in that of a level."""
        return min(self._locate(level).node.time / self._time, 1.0)

    def _corrected(self, copy: list[pa.Array], correction: Floats) -> list[pa.Array]:
        """A copy whose path passes through the earlier one, on the lattice again."""
        out = []
        for array, name, step, more in zip(copy, self.columns, self.step, correction, strict=True):
            values, null = numeric.read(array)
            out.append(numeric.write(np.rint((values + more) / step) * step, null, array.type, name))
        return out

    def _own_ids(self, batch: pa.RecordBatch, rows: Words) -> Words:
        """Ids that change with the earlier values: other ones need other noise."""
        return rows ^ hashed(batch, self._earlier, _NO_SECRET)

    def _given(self, batch: pa.RecordBatch) -> Floats:
        """The earlier values, `(column, row)`; NaN for a record that was not released then."""
        given, lacks = np.empty((len(self.columns), batch.num_rows)), []
        for i, (name, earlier) in enumerate(zip(self.columns, self._earlier, strict=True)):
            missing = as_mask(batch.column(name))
            values, _ = numeric.read(batch.column(earlier))
            given[i] = np.where(as_mask(batch.column(earlier)) | missing, np.nan, values)
            lacks.append(np.isnan(given[i]) & ~missing)
        partly = np.any(lacks, axis=0) & ~np.isnan(given).all(axis=0)
        if partly.any():
            raise SourceError(
                f"a record must have been released with all its numbers or not at all, and {int(partly.sum())} in one "
                f"batch lack some of {', '.join(self._earlier)}; complete them, or make all of them null"
            )
        return given


def as_mask(array: pa.Array) -> Mask:
    """Which values are null."""
    return np.asarray(array.is_null())
