"""Class counts: the number of records of each class by category, or by bin of a numeric column, for naive Bayes.

A copy of many files is counted in three passes, by any engine, in memory that does not grow with the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from sfumato.mining.features.class_densities import counts_by_group, grid_from_range, grid_of
from sfumato.mining.features.contingency import Factor, contingency_tables, factors_of
from sfumato.mining.features.features import (
    Feature,
    Features,
    TrainingSet,
    categorical_feature,
    check_complete,
    check_lattice,
    learnable_columns,
    numeric_feature,
)


@dataclass(frozen=True)
class ClassCounts:
    """The number of records of each class, and of each class by the values of each feature."""

    features: Features
    classes: Any
    retention: float
    """The probability that a record has its own class in the copy."""
    class_totals: Floats
    feature_counts: list[Floats]
    """One table per feature, with one row per class."""
    grids: list[Grid | None]
    """The grid of each numeric feature."""


def partitioned_copy(X: Any) -> Copy | None:
    """The copy, if it consists of many files."""
    if isinstance(X, str | Path):
        X = Copy.of(X)
    return X if isinstance(X, Copy) and X.source.parts else None


def counts_in_memory(training: TrainingSet) -> ClassCounts:
    """The class counts of a training set in memory."""
    columns, count = list(enumerate(training.features.columns)), len(training.classes)
    grids = [None if feature.size else grid_of(feature, training.values[:, i]) for i, feature in columns]
    counts = [counts_by_group(f, grids[i], training.values[:, i], training.labels, count) for i, f in columns]
    totals = np.bincount(training.labels, minlength=count).astype(np.float64)
    return ClassCounts(training.features, training.classes, training.retention, totals, counts, grids)


def counts_of_files(miner: Any, copy: Copy, target: Any) -> ClassCounts:
    """The class counts of a copy of many files, given the name of its class column."""
    if not isinstance(target, str):
        raise MiningError("the classes of a copy of many files must be one of its columns; give its name as y")
    copy.model(target)  # refuses a name that is no column
    reader = _Reader.of(copy, target)
    ranges = copy.fold(copy.column_names, partial(_measured, reader=reader), _Ranges.merged)
    check_complete(ranges.rows)
    grids = [ranges.grid(i, feature) for i, feature in enumerate(reader.features)]
    counts = copy.fold(copy.column_names, partial(_counted, reader=reader, grids=grids), _added)
    names = [feature.name for feature in reader.features]
    miner.n_features_in_, miner.feature_names_in_ = len(names), np.array(names, dtype=object)
    features = Features(tuple(reader.features), copy.noise_covariance(names), True)
    return ClassCounts(features, reader.classes, reader.target.retention, counts[0], counts[1:], grids)


@dataclass(frozen=True)
class _Reader:
    """Reads complete records as numbers, category codes and class indices; it knows all categories beforehand."""

    features: list[Feature]
    factors: list[Factor | None]
    """The factor of each categorical feature."""
    target: Factor
    classes: Any
    class_of_code: Rows
    """The index of each code of the target among the classes; -1 for a missing class."""

    @classmethod
    def of(cls, copy: Copy, target: str) -> _Reader:
        names = learnable_columns(copy, target)
        factors = _complete_factors(copy, [*(name for name in names if not copy.is_numeric(name)), target])
        features = [
            categorical_feature(copy, name, factors[name]) if name in factors else numeric_feature(copy, name)
            for name in names
        ]
        classes, class_of_code = _classes(factors[target])
        return cls(features, [factors.get(name) for name in names], factors[target], classes, class_of_code)

    def read(self, copy: Copy, tables: Iterable[pa.Table]) -> Iterator[tuple[Floats, Rows]]:
        """The values and class indices of the complete records of each table."""
        for table in tables:
            columns = [self._column(copy, table, i) for i in range(len(self.features))]
            codes = self.target.codes(copy, table)
            labels = np.where(codes < 0, -1, self.class_of_code[codes])
            values = np.column_stack(columns)
            complete = (labels >= 0) & ~np.isnan(values).any(axis=1)
            yield values[complete], labels[complete]

    def _column(self, copy: Copy, table: pa.Table, index: int) -> Floats:
        feature, factor = self.features[index], self.factors[index]
        if factor is None:
            values = copy.values(table, [feature.name])[:, 0]
            check_lattice(values, feature)
            return values
        codes = factor.codes(copy, table)
        return np.where(codes < 0, np.nan, codes)


def _complete_factors(copy: Copy, names: Sequence[str]) -> dict[str, Factor]:
    """The factor of each column; the categories of unchanged columns are collected in one pass."""
    factors = {name: factors_of(copy, [name])[0] for name in names}
    public = [name for name, factor in factors.items() if not factor.is_perturbed]
    tables = contingency_tables(copy, [[name] for name in public]) if public else []
    return factors | {name: table.factors[0] for name, table in zip(public, tables, strict=True)}


def _classes(target: Factor) -> tuple[Any, Rows]:
    """The classes of a target, sorted unless it is perturbed, and the index among them of each of its codes."""
    labels = [label for (label,) in target.labels]
    known = [label for label in labels if label is not None]
    classes = np.array(known) if target.is_perturbed else np.unique(np.array(known))
    indices = [-1 if label is None else int(np.flatnonzero(classes == label)[0]) for label in labels]
    return classes, np.array(indices)


@dataclass(frozen=True)
class _Ranges:
    """The range, mean and variance of columns, merged exactly (Chan, Golub and LeVeque 1983)."""

    rows: int
    least: Floats
    most: Floats
    mean: Floats
    squares: Floats
    """The sums of squared differences from the mean."""

    @classmethod
    def of(cls, values: Floats) -> _Ranges:
        rows, width = values.shape
        if not rows:
            return cls(0, np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width), np.zeros(width))
        mean = values.mean(axis=0)
        return cls(rows, values.min(axis=0), values.max(axis=0), mean, ((values - mean) ** 2).sum(axis=0))

    def merged(self, other: _Ranges) -> _Ranges:
        rows = max(self.rows + other.rows, 1)
        shift = other.mean - self.mean
        squares = self.squares + other.squares + shift**2 * self.rows * other.rows / rows
        least, most = np.minimum(self.least, other.least), np.maximum(self.most, other.most)
        merged = _Ranges(self.rows + other.rows, least, most, self.mean + shift * other.rows / rows, squares)
        return merged if self.rows else other

    def grid(self, index: int, feature: Feature) -> Grid | None:
        if feature.size:
            return None
        least, most = float(self.least[index]), float(self.most[index])
        return grid_from_range(feature, least, most, float(self.squares[index] / self.rows), self.rows)


def _measured(copy: Copy, tables: Iterable[pa.Table], *, reader: _Reader) -> _Ranges:
    total = _Ranges.of(np.empty((0, len(reader.features))))
    for values, _ in reader.read(copy, tables):
        total = total.merged(_Ranges.of(values))
    return total


def _counted(copy: Copy, tables: Iterable[pa.Table], *, reader: _Reader, grids: list[Grid | None]) -> list[Floats]:
    """The number of records by class, and then the counts of each feature."""
    count = len(reader.classes)
    parts = list(enumerate(zip(reader.features, grids, strict=True)))
    no_values, no_labels = np.empty(0), np.empty(0, np.int64)
    empty = (counts_by_group(feature, grid, no_values, no_labels, count) for _, (feature, grid) in parts)
    total = [np.zeros(count), *empty]
    for values, labels in reader.read(copy, tables):
        counts = [counts_by_group(feature, grid, values[:, i], labels, count) for i, (feature, grid) in parts]
        total = _added(total, [np.bincount(labels, minlength=count).astype(np.float64), *counts])
    return total


def _added(one: list[Floats], other: list[Floats]) -> list[Floats]:
    return [a + b for a, b in zip(one, other, strict=True)]
