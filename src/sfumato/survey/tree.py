"""Decision tree from randomised response, grown by information gain on counts corrected for the perturbation.

Every row goes down every branch, with a weight whose sum estimates the number of respondents there: the product of the
unbiased indicators of each item on the path (`frequencies.unbiased_indicators`), which may be negative. A branch whose
count is not significantly above its noise is not grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sfumato.kernels import Floats
from sfumato.survey.frequencies import unbiased_indicators
from sfumato.survey.perturbation import Integers

_SIGNIFICANCE = 3.0
"""Standard deviations by which the count of a branch, and the dependence on an item, must exceed their noise."""


@dataclass
class _Node:
    label: int
    item: int = -1
    branches: list[_Node] = field(default_factory=list)


class RandomisedResponseTree(ClassifierMixin, BaseEstimator):
    """A decision tree trained on perturbed rows; it predicts the class of unperturbed rows."""

    def __init__(self, sizes: Sequence[int], max_depth: int = 3, min_share: float = 0.01) -> None:
        self.sizes, self.max_depth, self.min_share = sizes, max_depth, min_share

    def fit(self, rows: Integers, classes: Floats, retention: Floats) -> RandomisedResponseTree:
        """Grow the tree.

        Args:
            rows: perturbed answer codes.
            classes: for each row, the weight of each class.
            retention: for each row and item, the retention probability.

        """
        self.classes_ = np.arange(classes.shape[1])
        self._indicators = [
            unbiased_indicators(rows[:, index], retention[:, index], size) for index, size in enumerate(self.sizes)
        ]
        self.root_ = self._grow(classes, frozenset(), len(rows))
        del self._indicators
        return self

    def _grow(self, classes: Floats, used: frozenset[int], people: int) -> _Node:
        counts = classes.sum(0)
        node = _Node(int(counts.argmax()))
        if len(used) >= self.max_depth:
            return node
        gains = [-1.0 if item in used else self._gain(classes, counts, item, people) for item in range(len(self.sizes))]
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            return node
        node.item = best
        node.branches = [
            self._branch(classes * self._indicators[best][:, value, None], used | {best}, people, node.label)
            for value in range(self.sizes[best])
        ]
        return node

    def _branch(self, classes: Floats, used: frozenset[int], people: int, label: int) -> _Node:
        weights = classes.sum(1)
        noise = _SIGNIFICANCE * np.sqrt((weights**2).sum())
        if weights.sum() < max(noise, self.min_share * people):
            return _Node(label)
        return self._grow(classes, used, people)

    def _gain(self, classes: Floats, counts: Floats, item: int, people: int) -> float:
        """The information gain of an item about the class, times the number of respondents; 0 if not significant."""
        indicators = self._indicators[item]
        table = np.maximum(classes.T @ indicators, 0)
        residual = classes - classes.sum(1, keepdims=True) * counts / max(counts.sum(), 1)  # sums to 0 if independent
        dependence = np.abs(residual.T @ indicators)
        noise = np.sqrt((residual**2).T @ (indicators - indicators.mean(0)) ** 2)
        if (dependence <= _SIGNIFICANCE * noise).all() or table.sum() < self.min_share * people:
            return 0.0
        remaining = sum(_entropy(part) * float(part.sum()) for part in table.T)
        return _entropy(counts) * float(counts.clip(0).sum()) - remaining

    def predict(self, rows: Any) -> Integers:
        """The predicted class of each row of answer codes."""
        return np.array([self._predict_row(row) for row in np.asarray(rows)], np.int64)

    def _predict_row(self, row: Integers) -> int:
        node = self.root_
        while node.branches:
            node = node.branches[row[node.item]]
        return node.label


def _entropy(counts: Floats) -> float:
    positive = counts[counts > 0]
    share = positive / positive.sum() if positive.size else positive
    return float(-(share * np.log2(share)).sum())
