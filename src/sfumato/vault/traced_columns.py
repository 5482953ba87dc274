"""The columns by whose noise a leak is traced: numbers with additive noise, or the normal scores of other values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.kernels import Floats, Mask, Words
from sfumato.kernels.cholesky import gram
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.mechanisms._copula_scheme import CopulaScheme
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.release.scheme import TableScheme
from sfumato.tables import numeric
from sfumato.tables.columns import restored
from sfumato.tables.margin import Cells, Margin, known_values

_FINE = 1e-3
"""Values with a longer interval of scores are equal to those of the original too often, by coincidence."""


class TracedColumns(ABC):
    """Some columns of a scheme, with noise that is additive: in their numbers, or in their scores."""

    def __init__(self, scheme: GaussianScheme | CopulaScheme, names: Sequence[str], factor: Floats) -> None:
        self._drawn = scheme
        self.columns = tuple(name for name in scheme.columns if name in names)
        self._indices = [scheme.columns.index(name) for name in self.columns]
        self.shape: Floats = gram(factor)[np.ix_(self._indices, self._indices)]
        """The covariance of the noise at time 1."""

    def paths(self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key) -> tuple[Floats, Floats]:
        """The records, `(column, row)`, and the noise of some levels, `(level, column, row)`."""
        records, noise = self._drawn.paths(batch, rows, levels, key)
        return records[self._indices], noise[:, self._indices]

    @abstractmethod
    def read(self, leaked: pa.Table, schema: pa.Schema) -> Floats:
        """The cells of a file, `(column, row)`, NaN where there is none; `schema` is that of the original."""

    @abstractmethod
    def at_level(self, cells: Floats, level: Level) -> Floats:
        """The sums of record and noise that a copy of this level shows by these cells."""

    @abstractmethod
    def resolution(self, cells: Floats) -> Floats:
        """The variance of what the cells of each column leave unknown of those sums."""

    @abstractmethod
    def is_original(self, cells: Floats, batch: pa.RecordBatch) -> Mask:
        """Whether cells are those of the original, for cells that can show it."""


class TracedNumbers(TracedColumns):
    """Columns of numbers with additive noise."""

    def __init__(self, scheme: GaussianScheme, names: Sequence[str]) -> None:
        super().__init__(scheme, names, scheme.factor)
        self._scheme = scheme

    def read(self, leaked: pa.Table, schema: pa.Schema) -> Floats:
        return np.array([_numbers(leaked.column(name), schema.field(name).type) for name in self.columns])

    def at_level(self, cells: Floats, level: Level) -> Floats:
        return restored(cells.T, self._scheme.model(level).narrowed(self.columns)).T

    def resolution(self, cells: Floats) -> Floats:
        return np.array([_grain(line) ** 2 / 12 for line in cells])

    def is_original(self, cells: Floats, batch: pa.RecordBatch) -> Mask:
        original = self._scheme.records(batch)[self._indices]
        step = self._scheme.step[self._indices][:, None]
        same: Mask = np.isclose(cells, original, rtol=1e-9, atol=1.01 * step)[np.isfinite(cells)]
        return same


class TracedScores(TracedColumns):
    """Columns whose normal scores have additive noise; a cell shows the mean of the scores that lead to it."""

    def __init__(self, scheme: CopulaScheme, names: Sequence[str]) -> None:
        super().__init__(scheme, names, scheme.root)
        self._scheme = scheme

    def read(self, leaked: pa.Table, schema: pa.Schema) -> Floats:
        kinds = [schema.field(name).type for name in self.columns]
        arrays = [cast(leaked.column(name).combine_chunks(), k) for name, k in zip(self.columns, kinds, strict=True)]
        return np.array([margin.mean_scores(cells) for margin, cells in self._cells(arrays)])

    def _cells(self, arrays: Sequence[pa.Array]) -> Iterator[tuple[Margin, Cells]]:
        for name, i, array in zip(self.columns, self._indices, arrays, strict=True):
            margin = self._scheme.sampler.margins[i]
            yield margin, margin.cells(known_values(array, margin), name)

    def at_level(self, cells: Floats, level: Level) -> Floats:
        return cells / math.sqrt(level.fidelity)

    def resolution(self, cells: Floats) -> Floats:
        known = np.array([np.var(line[np.isfinite(line)]) if np.isfinite(line).any() else 0.0 for line in cells])
        return np.maximum(1.0 - known, 0.0)

    def is_original(self, cells: Floats, batch: pa.RecordBatch) -> Mask:
        shown = list(self._cells([batch.column(name) for name in self.columns]))
        original = np.array([margin.mean_scores(one) for margin, one in shown])
        fine = np.array([one.upper - one.lower < _FINE for _, one in shown])
        same: Mask = (cells == original)[fine & np.isfinite(cells)]
        return same


def traced_columns(scheme: TableScheme, names: Sequence[str]) -> TracedColumns | None:
    """The columns of a scheme that a file with columns of these names is traced by: the largest group; or none."""
    found: list[TracedColumns] = [
        TracedNumbers(part, names) if isinstance(part, GaussianScheme) else TracedScores(part, names)
        for part in scheme.schemes
        if isinstance(part, GaussianScheme | CopulaScheme)
    ]
    return max(found, key=lambda one: len(one.columns)) if found else None


def typed(table: pa.Table, column_types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """The columns cast to the types of the original, null where a cell cannot be cast."""
    arrays = [cast(table.column(name).combine_chunks(), column_types[name]) for name in table.column_names]
    return pa.RecordBatch.from_arrays(arrays, names=table.column_names)


def cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column cast to another type, null where a cell cannot be cast."""
    try:
        return array.cast(kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([_cell(value, kind) for value in array], kind)


def _cell(value: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return value.cast(kind, safe=False).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        return None


def _numbers(column: pa.ChunkedArray, kind: pa.DataType) -> Floats:
    """The numbers of a column, NaN where a cell is not a number."""
    array = column.combine_chunks()
    wanted = kind if types.is_temporal(kind) else pa.float64()
    changed = cast(array, wanted) if not numeric.is_number(array.type) or types.is_temporal(kind) else array
    values, null = numeric.read(changed)
    return np.where(null, np.nan, values) if len(null) else values


def _grain(numbers: Floats) -> float:
    """The power of ten to which most of a column's numbers were rounded; 0 if they were not."""
    nonzero = numbers[np.isfinite(numbers) & (numbers != 0)]
    grain = np.zeros_like(nonzero)
    for power in range(-9, 10):
        steps = nonzero / 10.0**power
        exact = np.abs(steps - np.rint(steps)) <= 1e-13 * np.abs(steps)
        grain[exact & (np.abs(steps) > 0.5)] = 10.0**power
    return float(np.median(grain)) if grain.size else 0.0
