"""Naive Bayes classifier for the original, from reconstructed class-conditional densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.kernels import Floats
from sfumato.mining import Miner
from sfumato.mining.features.class_counts import counts_in_memory, counts_of_files, partitioned_copy
from sfumato.mining.features.class_densities import densities_from_counts, inverse_class_matrix
from sfumato.mining.features.features import check_prediction_target, training_set
from sfumato.release.manifest import Manifest


class NaiveBayes(ClassifierMixin, Miner):
    """Naive Bayes with the density of each column in each class, reconstructed from the copy.

    The class column may be perturbed as well: then the counts of the classes are inverted first.
    """

    reference = "zhang2005, section 2; distributions as in Agrawal and Srikant 2000"
    example = {"on": "copy"}

    def __init__(self, *, manifest: Manifest | str | None = None, on: str = "original") -> None:
        """Set the parameters.

        Args:
            manifest: the manifest of the copy, needed if records are given as a data frame, which does not carry it;
                `original` for records that were never perturbed.
            on: whether to predict for unperturbed records (`original`) or for records of the copy (`copy`).

        """
        self.manifest = manifest
        self.on = on

    def fit(self, X: Any, y: Any) -> NaiveBayes:
        """Fit the classifier to a copy and the name of its class column, or to a table and the classes.

        A copy of many files is counted file by file, in memory that does not grow with the copy.
        """
        check_prediction_target(self.on)
        files = partitioned_copy(X)
        counts = counts_of_files(self, files, y) if files else counts_in_memory(training_set(self, X, y))
        inverse = inverse_class_matrix(len(counts.classes), counts.retention) if counts.retention < 1 else None
        prior = np.maximum(counts.class_totals if inverse is None else counts.class_totals @ inverse, 0.5)
        self.classes_ = counts.classes
        self.features_ = counts.features
        self.prior_ = prior / prior.sum()
        parts = zip(counts.features.columns, counts.feature_counts, counts.grids, strict=True)
        self.class_densities_ = [densities_from_counts(feature, table, grid, inverse) for feature, table, grid in parts]
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class, one row per record."""
        check_is_fitted(self)
        values = self.features_.read(self, X)
        perturbed = self.on == "copy"
        joint = np.log(self.prior_) + sum(
            np.log(densities.of_records(values[:, i], perturbed=perturbed))
            for i, densities in enumerate(self.class_densities_)
        )
        largest = joint.max(axis=1, keepdims=True)
        logs: Floats = joint - largest - np.log(np.exp(joint - largest).sum(axis=1, keepdims=True))
        return logs

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, one row per record."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Any:
        """The most probable class of each record."""
        most_probable = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[most_probable]
