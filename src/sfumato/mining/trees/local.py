"""A tree that reconstructs every column anew in each node and class (Agrawal and Srikant 2000, section 4, Local)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from sfumato.kernels import Floats, Rows
from sfumato.mining.features.features import Features, TrainingSet
from sfumato.mining.features.reconstruction import encoded, restored

_DEEP = 24
_TELLING = 0.005
"""What a split must gain: less may come of reconstructing the classes apart."""


@dataclass(frozen=True)
class _Node:
    """A split, or the classes' shares at a leaf."""

    shares: Floats
    column: int = -1
    threshold: float = 0.0
    below: _Node | None = None
    above: _Node | None = None


class LocalTree:
    """Built of stumps, each on records that were put back for its node.

    A column is reconstructed in nodes only until it is split on: which records lie beyond a split was decided by their
    noise as well, so that what noise they have there is no longer what the manifest says.
    """

    def __init__(self, plain: DecisionTreeClassifier, lesson: TrainingSet, rng: np.random.Generator) -> None:
        self._plain, self._labels, self._rng = plain, lesson.labels, rng
        rows = len(lesson.labels)
        leaf = plain.min_samples_leaf
        self._least = max(int(np.ceil(leaf * rows)) if isinstance(leaf, float) else leaf, 1)
        self.classes_ = np.arange(len(lesson.classes))
        categories = _settled(lesson.features, numbers=True)
        values = restored(categories, lesson.values, lesson.labels, len(lesson.classes), rng)
        numbers = _settled(lesson.features, numbers=False)
        self._root = self._grow(np.arange(rows), values, numbers, plain.max_depth or _DEEP)
        del self._labels

    def _grow(self, rows: Rows, values: Floats, features: Features, depth: int) -> _Node:
        count = len(self.classes_)
        labels = self._labels[rows]
        shares = np.bincount(labels, minlength=count) / len(rows)
        if depth == 0 or len(rows) < 2 * self._least or shares.max() == 1:
            return _Node(shares)
        put = restored(features, values, labels, count, self._rng)
        shown = encoded(features, put)
        stump = clone(self._plain).set_params(max_depth=1, min_samples_leaf=self._least, min_impurity_decrease=_TELLING)
        stump = stump.fit(shown, labels).tree_
        if stump.node_count == 1:
            return _Node(shares)
        column, threshold = int(stump.feature[0]), float(stump.threshold[0])
        below, split = shown[:, column] <= threshold, _feature_at(features, column)
        values, left = values.copy(), _settled_at(features, split)
        values[:, split] = put[:, split]
        parts = [self._grow(rows[side], values[side], left, depth - 1) for side in (below, ~below)]
        return _Node(shares, column, threshold, *parts)

    def predict_proba(self, values: Floats) -> Floats:
        """The shares at the leaf that each record falls to."""
        out = np.empty((len(values), len(self.classes_)))
        waiting = [(self._root, np.arange(len(values)))]
        while waiting:
            node, rows = waiting.pop()
            if node.below is None or node.above is None:
                out[rows] = node.shares
                continue
            below = values[rows, node.column] <= node.threshold
            waiting += [(node.below, rows[below]), (node.above, rows[~below])]
        return out


def _settled(features: Features, *, numbers: bool) -> Features:
    """The features with numbers, or else categories, taken as they are."""
    known: dict[str, Any] = {"deviation": 0.0} if numbers else {"retention": 1.0}
    return replace(features, columns=tuple(replace(column, **known) for column in features.columns))


def _settled_at(features: Features, place: int) -> Features:
    columns = [replace(column, deviation=0.0) if i == place else column for i, column in enumerate(features.columns)]
    return replace(features, columns=tuple(columns))


def _feature_at(features: Features, column: int) -> int:
    """Which feature a column of the encoded records belongs to."""
    ends = np.cumsum([feature.size or 1 for feature in features.columns])
    return int(np.searchsorted(ends, column, side="right"))
