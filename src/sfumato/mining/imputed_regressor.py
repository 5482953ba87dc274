"""Any regression of scikit-learn, for the original, by multiple imputation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor

from sfumato.kernels import Floats
from sfumato.mining.features.features import open_records, regressed, regression_set
from sfumato.mining.features.imputed import ImputedLearner


class ImputedRegressor(RegressorMixin, ImputedLearner):
    """A regression of scikit-learn fitted to several plausible originals of a copy, whose predictions are averaged."""

    reference = "Rubin 1987, chapter 3"
    example = {"m": 2, "estimator": HistGradientBoostingRegressor(max_iter=5, random_state=0)}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ImputedRegressor:
        """Fit the regression to a copy and the name of its target column, or to a table and the target's values."""
        data = open_records(self, X, y)
        training = regression_set(self, X, y) if data is None else regressed(data)
        default = HistGradientBoostingRegressor(random_state=0)
        self._fit(default, data, training.features, training.values, training.target, sample_weight)
        return self

    def predict(self, X: Any) -> Floats:
        """The expected target of unperturbed records."""
        values = self._encoded(X)
        expected: Floats = np.mean([one.predict(values) for one in self.estimators_], axis=0)
        return expected
