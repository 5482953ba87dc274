"""Decision tree classifier for the original, from reconstructed class-conditional densities."""

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
from sfumato.mining.features.class_densities import ITERATIONS
from sfumato.mining.features.features import TrainingSet, training_set
from sfumato.mining.features.reconstruction import one_hot, reconstructed_values
from sfumato.mining.trees.feature_selection import select_features
from sfumato.mining.trees.hyperplanes import GridClassCounts
from sfumato.mining.trees.local import LocalTree
from sfumato.release.manifest import Manifest

RECONSTRUCTIONS = ("byclass", "global", "local")
MAX_JOINT_COLUMNS = 3


class DecisionTree(ClassifierMixin, Miner):
    """A decision tree for the original, learnt from a copy.

    Columns are reconstructed within each class (`byclass`), over all records (`global`), or within each class and tree
    node (`local`). The paper reconstructs one column at a time, which loses interactions between columns within a
    class; `byclass` therefore reconstructs jointly the few columns that discriminate the classes best.
    """

    reference = "Agrawal and Srikant 2000, section 4"
    example = {"reconstruction": "byclass"}

    def __init__(
        self,
        *,
        manifest: Manifest | str | None = None,
        reconstruction: str = "byclass",
        joint_columns: int = MAX_JOINT_COLUMNS,
        reconstruction_iterations: int = ITERATIONS,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_leaf: float = 0.002,
        random_state: int = 0,
    ) -> None:
        """Set the parameters.

        Args:
            manifest: the manifest of the copy, needed if records are given as a data frame, which does not carry it;
                `original` for records that were never perturbed.
            reconstruction: `byclass`, `global` or `local`.
            joint_columns: the largest number of columns, up to 3, that `byclass` reconstructs jointly; 1 is the paper's
                method.
            reconstruction_iterations: the largest number of iterations where columns are reconstructed one at a time;
                few iterations, as in the paper, smooth the densities.
            criterion: the impurity: `gini`, or `entropy` as in ID3.
            max_depth: the largest depth of the tree.
            min_samples_leaf: the least number of records in a leaf, or their share.
            random_state: the seed for imputed categories, for random splits of the records, and for ties.

        """
        self.manifest = manifest
        self.reconstruction = reconstruction
        self.joint_columns = joint_columns
        self.reconstruction_iterations = reconstruction_iterations
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> DecisionTree:
        """Fit the tree to a copy and the name of its class column, or to a table and the classes."""
        self._check_parameters()
        training = training_set(self, X, y)
        if training.retention < 1:
            raise MiningError("a decision tree needs classes that are not perturbed, and these are; use NaiveBayes")
        self.classes_, self.features_ = training.classes, training.features
        if not any(column.is_perturbed for column in training.features.columns):
            self.tree_ = self._plain().fit(one_hot(training.features, training.values), training.labels)
        elif self.reconstruction == "byclass" and self.joint_columns > 1:
            self._fit_jointly(training)
        elif self.reconstruction == "local":
            self.tree_ = LocalTree(self._plain(), training, np.random.default_rng(self.random_state))
        else:
            self._fit_by_column(training)
        return self

    def _check_parameters(self) -> None:
        if self.reconstruction not in RECONSTRUCTIONS:
            raise MiningError(
                f"`reconstruction` must be one of {', '.join(RECONSTRUCTIONS)}, got {self.reconstruction!r}; choose one"
            )
        if type(self.joint_columns) is not int or self.joint_columns not in range(1, MAX_JOINT_COLUMNS + 1):
            raise MiningError(
                f"`joint_columns` must be a whole number from 1 to {MAX_JOINT_COLUMNS}, got {self.joint_columns!r}; "
                "3 is usual"
            )

    def _plain(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(
            criterion=self.criterion,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            random_state=self.random_state,
        )

    def _fit_by_column(self, training: TrainingSet) -> None:
        """Fit a tree to values reconstructed one column at a time, within each class or over all records."""
        by_class = self.reconstruction == "byclass"
        groups = training.labels if by_class else np.zeros_like(training.labels)
        count = len(training.classes) if by_class else 1
        rng = np.random.default_rng(self.random_state)
        iterations = self.reconstruction_iterations
        values = reconstructed_values(training.features, training.values, groups, count, rng, iterations)
        self.tree_ = self._plain().fit(one_hot(training.features, values), training.labels)

    def _fit_jointly(self, training: TrainingSet) -> None:
        """Fit a tree to the cells of a grid over the selected columns, weighted by their probability in each class."""
        with threadpool_limits(1):  # the matrix products are small: more threads would mostly wait for each other
            selection = select_features(training, self.joint_columns, self.random_state)
            grid, counts = selection.grid, GridClassCounts.of(training, selection.grid, selection.known)
            density, probabilities = counts.density, counts.class_probabilities(selection.penalty)
        centres = np.meshgrid(*((edges[1:] + edges[:-1]) / 2 for edges in grid.edges), indexing="ij")
        cells = np.zeros((density.size, len(training.features.columns)))
        for axis, column in enumerate(grid.columns):
            offset = 0.5 if training.features.columns[column].size else 0.0  # the code of a category is its lower edge
            cells[:, column] = centres[axis].ravel() - offset
        count = len(training.classes)
        weights = (probabilities * density).reshape(count, -1)
        share = self._leaf_share(len(training.labels))
        tree = self._plain().set_params(min_samples_leaf=1, min_weight_fraction_leaf=share)
        rows = np.tile(one_hot(training.features, cells), (count, 1))
        self.tree_ = tree.fit(rows, np.repeat(np.arange(count), density.size), sample_weight=weights.ravel())

    def _leaf_share(self, rows: int) -> float:
        """The least share of records in a leaf: at least one record, at most half of them."""
        least = self.min_samples_leaf
        share = least if isinstance(least, float) and least < 1 else least / rows
        return float(min(max(share, 1 / rows), 0.5))

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class for unperturbed records, one row per record."""
        check_is_fitted(self, "classes_")
        values = one_hot(self.features_, self.features_.read(self, X))
        out = np.zeros((len(values), len(self.classes_)))
        out[:, self.tree_.classes_] = self.tree_.predict_proba(values)
        return out

    def predict(self, X: Any) -> Any:
        """The most probable class of each record."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]
