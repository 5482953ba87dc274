"""A decision tree from randomised answers.

Every row goes down every branch, with a weight whose sum is the number of people there: the inverted channel of each
question on the way (as in `frequencies.weights`), which may be negative. A branch whose number cannot be told from
its noise is not grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sfumato.kernels import Floats
from sfumato.survey.frequencies import weights
from sfumato.survey.perturbation import Integers

_SURE = 3.0
"""Standard deviations by which the people of a branch, and what a question tells, must exceed chance."""


@dataclass
class _Node:
    label: int
    item: int = -1
    branches: list[_Node] = field(default_factory=list)


class RandomisedTree(ClassifierMixin, BaseEstimator):
    """Grown by information gain on corrected counts; predicts the class of rows that are not blurred."""

    def __init__(self, sizes: Sequence[int], depth: int = 3, least: float = 0.01) -> None:
        self.sizes, self.depth, self.least = sizes, depth, least

    def fit(self, rows: Integers, classes: Floats, retention: Floats) -> RandomisedTree:
        """Grow it.

        Args:
            rows: blurred answers.
            classes: for each row, the weight of each class.
            retention: for each row and item, the probability with which it was kept.

        """
        self.classes_ = np.arange(classes.shape[1])
        self._shares = [weights(rows[:, at], retention[:, at], size) for at, size in enumerate(self.sizes)]
        self.root_ = self._grow(classes, frozenset(), len(rows))
        del self._shares
        return self

    def _grow(self, classes: Floats, used: frozenset[int], people: int) -> _Node:
        counts = classes.sum(0)
        node = _Node(int(counts.argmax()))
        if len(used) >= self.depth:
            return node
        gains = [-1.0 if item in used else self._gain(classes, counts, item, people) for item in range(len(self.sizes))]
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            return node
        node.item = best
        node.branches = [
            self._branch(classes * self._shares[best][:, value, None], used | {best}, people, node.label)
            for value in range(self.sizes[best])
        ]
        return node

    def _branch(self, classes: Floats, used: frozenset[int], people: int, label: int) -> _Node:
        here = classes.sum(1)
        noise = _SURE * np.sqrt((here**2).sum())
        if here.sum() < max(noise, self.least * people):
            return _Node(label)
        return self._grow(classes, used, people)

    def _gain(self, classes: Floats, counts: Floats, item: int, people: int) -> float:
        """How much a question tells about the class, in people times bits; chance alone gains nothing."""
        shares = self._shares[item]
        table = np.maximum(classes.T @ shares, 0)
        apart = classes - classes.sum(1, keepdims=True) * counts / max(counts.sum(), 1)  # 0 in sum if nothing is told
        shift = np.abs(apart.T @ shares)
        noise = np.sqrt((apart**2).T @ (shares - shares.mean(0)) ** 2)
        if (shift <= _SURE * noise).all() or table.sum() < self.least * people:
            return 0.0
        left = sum(_entropy(part) * float(part.sum()) for part in table.T)
        return _entropy(counts) * float(counts.clip(0).sum()) - left

    def predict(self, rows: Any) -> Integers:
        """The class of each row of answers."""
        return np.array([self._expected(row) for row in np.asarray(rows)], np.int64)

    def _expected(self, row: Integers) -> int:
        node = self.root_
        while node.branches:
            node = node.branches[row[node.item]]
        return node.label


def _entropy(counts: Floats) -> float:
    some = counts[counts > 0]
    share = some / some.sum() if some.size else some
    return float(-(share * np.log2(share)).sum())
