"""Naive Bayes from reconstructed distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining import Miner
from sfumato.mining.features.class_counts import in_files, tally_in_memory, tally_of
from sfumato.mining.features.class_densities import chances_from, class_shares
from sfumato.mining.features.features import lesson
from sfumato.release.manifest import Manifest


class NaiveBayes(ClassifierMixin, Miner):
    """Naive Bayes with the distribution of each column in each class, reconstructed from the copy.

    The class column may be perturbed as well: then the counts of the classes are inverted first.
    """

    reference = "zhang2005, section 2; distributions as in Agrawal and Srikant 2000"

    def __init__(self, *, manifest: Manifest | None = None, on: str = "original") -> None:
        """Say what to learn from.

        Args:
            manifest: of the copy, where records come as a data frame, which has no room for it.
            on: whether to predict for records as they are (`original`) or as the copy shows them (`copy`).

        """
        self.manifest = manifest
        self.on = on

    def fit(self, X: Any, y: Any) -> NaiveBayes:
        """Learn from a copy: a table with its manifest and the name of its class column, or a table and the classes.

        A copy in many files is counted as it lies, in memory that does not grow with it.
        """
        if self.on not in {"original", "copy"}:
            raise MiningError(f"`on` must be 'original' or 'copy', got {self.on!r}")
        folder = in_files(X)
        tally = tally_of(self, folder, y) if folder else tally_in_memory(lesson(self, X, y))
        shares = class_shares(len(tally.classes), tally.retention) if tally.retention < 1 else None
        prior = np.maximum(tally.seen if shares is None else tally.seen @ shares, 0.5)
        self.classes_ = tally.classes
        self.features_ = tally.features
        self.prior_ = prior / prior.sum()
        parts = zip(tally.features.columns, tally.counts, tally.grids, strict=True)
        self.chances_ = [chances_from(feature, counts, grid, shares) for feature, counts, grid in parts]
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of each class's probability, a row a record."""
        check_is_fitted(self)
        values = self.features_.read(self, X)
        total = np.log(self.prior_) + sum(
            np.log(part.of_records(values[:, i], blurred=self.on == "copy")) for i, part in enumerate(self.chances_)
        )
        top = total.max(axis=1, keepdims=True)
        logs: Floats = total - top - np.log(np.exp(total - top).sum(axis=1, keepdims=True))
        return logs

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, a row a record."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Any:
        """The likeliest class of each record."""
        likeliest = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[likeliest]
