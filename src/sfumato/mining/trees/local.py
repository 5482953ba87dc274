"""Decision tree that reconstructs every column in each node and class (Agrawal and Srikant 2000, section 4, Local)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from sfumato.kernels import Floats, Rows
from sfumato.mining.features.features import Features, TrainingSet
from sfumato.mining.features.reconstruction import one_hot, reconstructed_values

_MAX_DEPTH = 24
_MIN_IMPURITY_DECREASE = 0.005
"""The least gain of a split: reconstructing the classes separately produces smaller gains by itself."""


@dataclass(frozen=True)
class _Node:
    """A split with its two subtrees, or a leaf with the class frequencies."""

    frequencies: Floats
    column: int = -1
    threshold: float = 0.0
    below: _Node | None = None
    above: _Node | None = None


class LocalTree:
    """A tree of one-level splits, each fitted to records that were reconstructed for its node.

    A column is reconstructed in nodes only until it is split on: which records lie on one side of a split depends on
    their noise, so that their noise no longer has the distribution in the manifest.
    """

    def __init__(self, plain: DecisionTreeClassifier, training: TrainingSet, rng: np.random.Generator) -> None:
        self._plain, self._labels, self._rng = plain, training.labels, rng
        rows = len(training.labels)
        leaf = plain.min_samples_leaf
        self._min_leaf = max(int(np.ceil(leaf * rows)) if isinstance(leaf, float) else leaf, 1)
        self.classes_ = np.arange(len(training.classes))
        categories = _without_noise(training.features)
        values = reconstructed_values(categories, training.values, training.labels, len(training.classes), rng)
        numbers = _without_replacement(training.features)
        self._root = self._grow(np.arange(rows), values, numbers, plain.max_depth or _MAX_DEPTH)
        del self._labels

    def _grow(self, rows: Rows, values: Floats, features: Features, depth: int) -> _Node:
        count = len(self.classes_)
        labels = self._labels[rows]
        frequencies = np.bincount(labels, minlength=count) / len(rows)
        if depth == 0 or len(rows) < 2 * self._min_leaf or frequencies.max() == 1:
            return _Node(frequencies)
        reconstructed = reconstructed_values(features, values, labels, count, self._rng)
        encoded = one_hot(features, reconstructed)
        limits: dict[str, Any] = {"min_samples_leaf": self._min_leaf, "min_impurity_decrease": _MIN_IMPURITY_DECREASE}
        stump = clone(self._plain).set_params(max_depth=1, **limits).fit(encoded, labels).tree_
        if stump.node_count == 1:
            return _Node(frequencies)
        column, threshold = int(stump.feature[0]), float(stump.threshold[0])
        below, split = encoded[:, column] <= threshold, _feature_of(features, column)
        values, rest = values.copy(), _without_noise_of(features, split)
        values[:, split] = reconstructed[:, split]
        parts = [self._grow(rows[side], values[side], rest, depth - 1) for side in (below, ~below)]
        return _Node(frequencies, column, threshold, *parts)

    def predict_proba(self, values: Floats) -> Floats:
        """The class frequencies of the leaf of each record."""
        out = np.empty((len(values), len(self.classes_)))
        pending = [(self._root, np.arange(len(values)))]
        while pending:
            node, rows = pending.pop()
            if node.below is None or node.above is None:
                out[rows] = node.frequencies
                continue
            below = values[rows, node.column] <= node.threshold
            pending += [(node.below, rows[below]), (node.above, rows[~below])]
        return out


def _without_noise(features: Features) -> Features:
    """The features with numeric columns taken as free of noise."""
    return replace(features, columns=tuple(replace(column, deviation=0.0) for column in features.columns))


def _without_replacement(features: Features) -> Features:
    """The features with categorical columns taken as unperturbed."""
    return replace(features, columns=tuple(replace(column, retention=1.0) for column in features.columns))


def _without_noise_of(features: Features, index: int) -> Features:
    """The features with one column taken as free of noise."""
    columns = [replace(column, deviation=0.0) if i == index else column for i, column in enumerate(features.columns)]
    return replace(features, columns=tuple(columns))


def _feature_of(features: Features, column: int) -> int:
    """The feature that a column of the one-hot encoding belongs to."""
    ends = np.cumsum([feature.size or 1 for feature in features.columns])
    return int(np.searchsorted(ends, column, side="right"))
