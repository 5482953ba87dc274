"""A tree that reconstructs every column anew in each node and class (Agrawal and Srikant 2000, section 4, Local)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from sfumato.kernels import Floats, Rows
from sfumato.mining._features import Lesson
from sfumato.mining._restoring import encoded, restored

_DEEP = 24


@dataclass(frozen=True)
class _Node:
    """A split, or the classes' shares at a leaf."""

    shares: Floats
    column: int = -1
    threshold: float = 0.0
    below: _Node | None = None
    above: _Node | None = None


class LocalTree:
    """Built of stumps, each on records that were put back for its node."""

    def __init__(self, plain: DecisionTreeClassifier, lesson: Lesson, rng: np.random.Generator) -> None:
        self._plain, self._lesson, self._rng = plain, lesson, rng
        rows = len(lesson.labels)
        leaf = plain.min_samples_leaf
        self._least = max(int(np.ceil(leaf * rows)) if isinstance(leaf, float) else leaf, 1)
        self.classes_ = np.arange(len(lesson.classes))
        self._root = self._grow(np.arange(rows), plain.max_depth or _DEEP)
        del self._lesson

    def _grow(self, rows: Rows, depth: int) -> _Node:
        count = len(self.classes_)
        labels = self._lesson.labels[rows]
        shares = np.bincount(labels, minlength=count) / len(rows)
        if depth == 0 or len(rows) < 2 * self._least or shares.max() == 1:
            return _Node(shares)
        put = restored(self._lesson.features, self._lesson.values[rows], labels, count, self._rng)
        values = encoded(self._lesson.features, put)
        stump = clone(self._plain).set_params(max_depth=1, min_samples_leaf=self._least).fit(values, labels).tree_
        if stump.node_count == 1:
            return _Node(shares)
        column, threshold = int(stump.feature[0]), float(stump.threshold[0])
        below = values[:, column] <= threshold
        return _Node(
            shares,
            column,
            threshold,
            self._grow(rows[below], depth - 1),
            self._grow(rows[~below], depth - 1),
        )

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
