"""What naive Bayes needs of records: how many of each class have each category, or a number in each bin.

Of a copy in many files it is counted in three passes, by any engine, in memory that does not grow with the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.reconstruction import Grid
from sfumato.mining.copies.copy import Copy
from sfumato.mining.features.class_densities import counts_by_group, grid_of, grid_over
from sfumato.mining.features.contingency import Axis, Replaced, Shown, axes_of, counted
from sfumato.mining.features.features import Feature, Features, TrainingSet, check_lattice, number
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement


@dataclass(frozen=True)
class Tally:
    """Counts by class."""

    features: Features
    classes: Any
    retention: float
    """How likely a record shows its own class."""
    seen: Floats
    """Records by class."""
    counts: list[Floats]
    """Of each feature, a row a class."""
    grids: list[Grid | None]
    """Of each number."""


def in_files(X: Any) -> Copy | None:
    """A copy that lies in many files."""
    if isinstance(X, str | Path):
        X = Copy.of(X)
    return X if isinstance(X, Copy) and X.source.parts else None


def tally_in_memory(taught: TrainingSet) -> Tally:
    """Of records that are all there."""
    columns, count = list(enumerate(taught.features.columns)), len(taught.classes)
    grids = [None if feature.size else grid_of(feature, taught.values[:, i]) for i, feature in columns]
    counts = [counts_by_group(f, grids[i], taught.values[:, i], taught.labels, count) for i, f in columns]
    seen = np.bincount(taught.labels, minlength=count).astype(np.float64)
    return Tally(taught.features, taught.classes, taught.retention, seen, counts, grids)


def tally_of(miner: Any, copy: Copy, target: Any) -> Tally:
    """Of a copy in many files, whose column of classes is named."""
    if not isinstance(target, str):
        raise MiningError("the classes of a copy in many files are one of its columns; give its name as y")
    copy.model(target)  # refuses what is no column
    reader = _Reader.of(copy, target)
    ranges = copy.fold(copy.names, partial(_ranged, reader=reader), _Ranges.merged)
    if ranges.rows < 2:
        raise MiningError(f"at least two records must miss nothing, got {ranges.rows}; give more")
    grids = [ranges.grid(i, feature) for i, feature in enumerate(reader.features)]
    counts = copy.fold(copy.names, partial(_tallied, reader=reader, grids=grids), _added)
    names = [feature.name for feature in reader.features]
    miner.n_features_in_, miner.feature_names_in_ = len(names), np.array(names, dtype=object)
    retention = reader.target.retention if isinstance(reader.target, Replaced) else 1.0
    features = Features(tuple(reader.features), copy.noise(names), True)
    return Tally(features, reader.classes, retention, counts[0], counts[1:], grids)


@dataclass(frozen=True)
class _Reader:
    """Reads records that miss nothing, as numbers and codes; it knows all categories that there are."""

    features: list[Feature]
    axes: list[Axis | None]
    target: Axis
    classes: Any
    order: Rows
    """The place of each code of the target among the classes."""

    @classmethod
    def of(cls, copy: Copy, target: str) -> _Reader:
        names = [name for name in copy.names if name != target and not _is_id(copy, name)]
        if not names:
            raise MiningError("at least one column must be left to learn from, and there is none")
        kinds = [None if copy.is_number(name) else axes_of(copy, [name])[0] for name in names]
        labelled = axes_of(copy, [target])[0]
        found = [axis.columns[0] for axis in (*kinds, labelled) if isinstance(axis, Shown)]
        known = dict(zip(found, counted(copy, [[name] for name in found]), strict=True)) if found else {}
        axes = [known[axis.columns[0]].axes[0] if isinstance(axis, Shown) else axis for axis in kinds]
        shown = known[target].axes[0] if isinstance(labelled, Shown) else labelled
        labels = [label for (label,) in shown.labels]
        kept = [label for label in labels if label is not None]
        classes = np.array(kept) if isinstance(shown, Replaced) else np.unique(np.array(kept))
        order = np.array([-1 if label is None else int(np.flatnonzero(classes == label)[0]) for label in labels])
        features = [_feature(copy, name, axis) for name, axis in zip(names, axes, strict=True)]
        return cls(features, axes, shown, classes, order)

    def read(self, copy: Copy, tables: Iterable[pa.Table]) -> Iterator[tuple[Floats, Rows]]:
        """The values and classes of some records at a time."""
        for table in tables:
            columns = [self._column(copy, table, i) for i in range(len(self.features))]
            codes = self.target.codes(copy, table)
            groups = np.where(codes < 0, -1, self.order[codes])
            values = np.column_stack(columns)
            whole = (groups >= 0) & ~np.isnan(values).any(axis=1)
            yield values[whole], groups[whole]

    def _column(self, copy: Copy, table: pa.Table, place: int) -> Floats:
        feature, axis = self.features[place], self.axes[place]
        if axis is None:
            values = copy.values(table, [feature.name])[:, 0]
            check_lattice(values, feature)
            return values
        codes = axis.codes(copy, table)
        return np.where(codes < 0, np.nan, codes)


def _is_id(copy: Copy, name: str) -> bool:
    model = copy.model(name)
    if isinstance(model, Rotation):
        raise MiningError(f"{name!r} is turned; classify turned columns with scikit-learn as they are")
    return isinstance(model, Unchanged) and model.is_identifier


def _feature(copy: Copy, name: str, axis: Axis | None) -> Feature:
    model = copy.model(name)
    if axis is None:
        return number(name, model)
    labels = tuple(label for (label,) in axis.labels)
    group = model.columns if isinstance(model, UniformReplacement) else ()
    return Feature(name, 0.0, labels, axis.retention, together=group)


@dataclass(frozen=True)
class _Ranges:
    """Between which ends values lie, and how they vary (Chan, Golub and LeVeque 1983: merged without loss)."""

    rows: int
    least: Floats
    most: Floats
    mean: Floats
    squares: Floats
    """Of what lies beyond the mean."""

    @classmethod
    def of(cls, values: Floats) -> _Ranges:
        rows, width = values.shape
        if not rows:
            return cls(0, np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width), np.zeros(width))
        mean = values.mean(axis=0)
        return cls(rows, values.min(axis=0), values.max(axis=0), mean, ((values - mean) ** 2).sum(axis=0))

    def merged(self, other: _Ranges) -> _Ranges:
        rows = max(self.rows + other.rows, 1)
        apart = other.mean - self.mean
        squares = self.squares + other.squares + apart**2 * self.rows * other.rows / rows
        least, most = np.minimum(self.least, other.least), np.maximum(self.most, other.most)
        merged = _Ranges(self.rows + other.rows, least, most, self.mean + apart * other.rows / rows, squares)
        return merged if self.rows else other

    def grid(self, place: int, feature: Feature) -> Grid | None:
        if feature.size:
            return None
        ends = float(self.least[place]), float(self.most[place])
        return grid_over(feature, *ends, float(self.squares[place] / self.rows), self.rows)


def _ranged(copy: Copy, tables: Iterable[pa.Table], *, reader: _Reader) -> _Ranges:
    total = _Ranges.of(np.empty((0, len(reader.features))))
    for values, _ in reader.read(copy, tables):
        total = total.merged(_Ranges.of(values))
    return total


def _tallied(copy: Copy, tables: Iterable[pa.Table], *, reader: _Reader, grids: list[Grid | None]) -> list[Floats]:
    """Records by class, and the counts of each feature."""
    count = len(reader.classes)
    parts = list(enumerate(zip(reader.features, grids, strict=True)))
    empty, nobody = np.empty(0), np.empty(0, np.int64)
    total = [np.zeros(count), *(counts_by_group(feature, grid, empty, nobody, count) for _, (feature, grid) in parts)]
    for values, groups in reader.read(copy, tables):
        found = [counts_by_group(feature, grid, values[:, i], groups, count) for i, (feature, grid) in parts]
        total = _added(total, [np.bincount(groups, minlength=count).astype(np.float64), *found])
    return total


def _added(one: list[Floats], other: list[Floats]) -> list[Floats]:
    return [a + b for a, b in zip(one, other, strict=True)]
