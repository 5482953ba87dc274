"""Any classifier of scikit-learn, for the original, by multiple imputation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier

from sfumato.kernels import Floats
from sfumato.mining.features.features import classified, open_records, training_set
from sfumato.mining.features.imputed import ImputedLearner


class ImputedClassifier(ClassifierMixin, ImputedLearner):
    """A classifier of scikit-learn fitted to several plausible originals of a copy, whose probabilities are averaged.

    Perturbed classes are learned as the copy shows them, `P(shown) = p·P(class) + (1 - p)/s`, and the probabilities are
    corrected for that afterwards.
    """

    reference = "Rubin 1987, chapter 3; xiao2009, eq. 1, for perturbed classes"
    example = {"m": 2, "estimator": HistGradientBoostingClassifier(max_iter=5, random_state=0)}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ImputedClassifier:
        """Fit the classifier to a copy and the name of its class column, or to a table and the classes."""
        data = open_records(self, X, y)
        training = training_set(self, X, y) if data is None else classified(data)
        default = HistGradientBoostingClassifier(random_state=0)
        self._fit(default, data, training.features, training.values, training.labels, sample_weight)
        self.classes_, self.retention_ = training.classes, training.retention
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class for unperturbed records, one row per record."""
        values = self._encoded(X)
        shown = np.mean([_probabilities(one, values, len(self.classes_)) for one in self.estimators_], axis=0)
        replaced = (1 - self.retention_) / len(self.classes_)
        corrected = np.maximum((shown - replaced) / self.retention_, 0.0)
        probabilities: Floats = corrected / corrected.sum(axis=1, keepdims=True)
        return probabilities

    def predict(self, X: Any) -> Any:
        """The most probable class of each record."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]


def _probabilities(estimator: Any, values: Floats, count: int) -> Floats:
    """The probability of each class, or 1 for the class that a classifier without probabilities predicts."""
    out = np.zeros((len(values), count))
    if hasattr(estimator, "predict_proba") and len(estimator.classes_) > 1:
        out[:, estimator.classes_] = estimator.predict_proba(values)
    else:
        out[np.arange(len(values)), estimator.predict(values)] = 1.0
    return out
