"""A decision tree from reconstructed distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining import Miner
from sfumato.mining.features.class_densities import STEPS
from sfumato.mining.features.features import TrainingSet, lesson
from sfumato.mining.features.reconstruction import encoded, restored
from sfumato.mining.trees.feature_selection import choose
from sfumato.mining.trees.hyperplanes import Sight
from sfumato.mining.trees.local import LocalTree
from sfumato.release.manifest import Manifest

RECONSTRUCTIONS = ("byclass", "global", "local")
TOGETHER = 3


class DecisionTree(ClassifierMixin, Miner):
    """A decision tree for the original, learnt from a copy.

    Columns are reconstructed in each class (`byclass`), over all records (`global`), or in each class and node
    (`local`). The paper takes a column at a time, and loses how columns work together; so `byclass` takes the few
    that tell most together, unless it is told not to.
    """

    reference = "Agrawal and Srikant 2000, section 4"

    def __init__(
        self,
        *,
        manifest: Manifest | None = None,
        reconstruction: str = "byclass",
        together: int = TOGETHER,
        steps: int = STEPS,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_leaf: float = 0.002,
        random_state: int = 0,
    ) -> None:
        """Say how to learn.

        Args:
            manifest: of the copy, where records come as a data frame, which has no room for it.
            reconstruction: as above.
            together: how many columns `byclass` reconstructs together, at most 3; with 1 it is the paper's.
            steps: the most rounds where columns are taken one at a time; few, as the paper stopped, smooth them.
            criterion: `gini`, or `entropy` as in ID3.
            max_depth: of the tree.
            min_samples_leaf: records a leaf must have, or their share.
            random_state: for what categories are drawn to be, for how records are halved to scorer by, and for ties.

        """
        self.manifest = manifest
        self.reconstruction = reconstruction
        self.together = together
        self.steps = steps
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DecisionTree:
        """Learn from a copy: a table with its manifest and the name of its class column, or a table and the classes."""
        if self.reconstruction not in RECONSTRUCTIONS:
            raise MiningError(f"a reconstruction is one of {', '.join(RECONSTRUCTIONS)}, got {self.reconstruction!r}")
        if type(self.together) is not int or self.together not in range(1, TOGETHER + 1):
            raise MiningError(f"1 to {TOGETHER} columns can be reconstructed together, got {self.together!r}")
        taught = lesson(self, X, y)
        if taught.retention < 1:
            raise MiningError("a tree needs classes that are not perturbed, and these are; use NaiveBayes")
        self.classes_, self.features_ = taught.classes, taught.features
        blurred = any(column.deviation or column.retention < 1 for column in taught.features.columns)
        if not blurred:
            self.tree_ = self._plain().fit(encoded(taught.features, taught.values), taught.labels)
        elif self.reconstruction == "byclass" and self.together > 1:
            self._fit_jointly(taught)
        elif self.reconstruction == "local":
            self.tree_ = LocalTree(self._plain(), taught, np.random.default_rng(self.random_state))
        else:
            alone = self.reconstruction == "byclass"
            groups = taught.labels if alone else np.zeros_like(taught.labels)
            rng = np.random.default_rng(self.random_state)
            count = len(taught.classes) if alone else 1
            values = restored(taught.features, taught.values, groups, count, rng, self.steps)
            self.tree_ = self._plain().fit(encoded(taught.features, values), taught.labels)
        return self

    def _plain(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(
            criterion=self.criterion,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            random_state=self.random_state,
        )

    def _fit_jointly(self, taught: TrainingSet) -> None:
        """A tree for the cells of the grid, each as heavy as it is likely; columns that are not on it stay unused."""
        with threadpool_limits(1):  # its products are small: threads would mostly wait, for each other and for others'
            choice = choose(taught, self.together, self.random_state)
            cut, sight = choice.plan, Sight.of(taught, choice.plan)
            everyone, chances = sight.density, sight.chances(choice.price)
        middles = np.meshgrid(*((edges[1:] + edges[:-1]) / 2 for edges in cut.edges), indexing="ij")
        cells = np.zeros((everyone.size, len(taught.features.columns)))
        for place, column in enumerate(cut.columns):
            half = 0.5 if taught.features.columns[column].size else 0.0
            cells[:, column] = middles[place].ravel() - half
        count = len(taught.classes)
        weights = (chances * everyone).reshape(count, -1)
        tree = self._plain().set_params(min_samples_leaf=1, min_weight_fraction_leaf=self._share(len(taught.labels)))
        rows = np.tile(encoded(taught.features, cells), (count, 1))
        self.tree_ = tree.fit(rows, np.repeat(np.arange(count), everyone.size), sample_weight=weights.ravel())

    def _share(self, rows: int) -> float:
        """Of all records that a leaf must have: at least one, at most half of them."""
        asked = self.min_samples_leaf
        share = asked if isinstance(asked, float) and asked < 1 else asked / rows
        return float(min(max(share, 1 / rows), 0.5))

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, a row a record, for records as they are."""
        check_is_fitted(self, "classes_")
        values = encoded(self.features_, self.features_.read(self, X))
        out = np.zeros((len(values), len(self.classes_)))
        out[:, self.tree_.classes_] = self.tree_.predict_proba(values)
        return out

    def predict(self, X: Any) -> Any:
        """The likeliest class of each record."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]
