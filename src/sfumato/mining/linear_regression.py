"""Linear regression, corrected for attenuation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining import Miner
from sfumato.mining.copies.interval import half_width
from sfumato.mining.features.design_matrix import Design, uncovered
from sfumato.mining.features.features import task
from sfumato.release.manifest import Manifest


class LinearRegression(RegressorMixin, Miner):
    """Least squares for the original: `(S_xx - Λ)⁻¹(S_xy - λ)`, with the errors' covariances `Λ` and `λ`.

    Noise in the columns pulls coefficients to zero, and noise that the target shares with them pulls them elsewhere;
    where all of it has the shape of the data, the two cancel. Intervals include that the table is a sample.
    """

    reference = "Fuller 1987, section 2.2; li2012, section 3.1"

    def __init__(self, *, manifest: Manifest | None = None, confidence: float = 0.95) -> None:
        """Say what to learn from.

        Args:
            manifest: of the copy, where records come as a data frame, which has no room for it.
            confidence: of the coefficients' intervals.

        """
        self.manifest = manifest
        self.confidence = confidence

    def fit(self, X: Any, y: Any) -> LinearRegression:
        """Learn from a copy and the name of the target, or from a table and the target's values."""
        width = half_width(self.confidence)
        told = task(self, X, y)
        design = Design(told.features)
        seen = design.unbiased(told.values)
        centre, middle = seen.mean(axis=0), told.target.mean()
        apart, target = seen - centre, told.target - middle
        errors, crossed = design.errors(told.values), np.zeros(seen.shape[1])
        crossed[design.numbers()] = told.crossed[told.features.numbers]
        rows = len(seen)
        inner = uncovered(apart.T @ apart / rows, errors)
        inverse = np.linalg.pinv(inner, hermitian=True)
        units = np.sqrt(np.diag(apart.T @ apart) / rows + 1e-300)
        if errors.any() and np.linalg.eigvalsh(inner / np.outer(units, units))[0] < 1e-6:
            raise MiningError(
                "the columns must vary more than noise alone makes them, and some direction does not at this level of "
                "trust; leave out columns that tell the same, or ask for a more faithful copy"
            )
        self.coef_ = inverse @ (apart.T @ target / rows - crossed)
        self.intercept_ = float(middle - centre @ self.coef_)
        moments = apart * (target - apart @ self.coef_)[:, None] + errors @ self.coef_ - crossed
        self.coef_error_ = np.sqrt(np.diag(inverse @ (moments.T @ moments) @ inverse)) / rows
        reach = width * self.coef_error_
        self.coef_interval_ = np.stack([self.coef_ - reach, self.coef_ + reach], axis=-1)
        self.features_ = told.features
        return self

    def predict(self, X: Any) -> Floats:
        """The expected target of records as they are."""
        check_is_fitted(self)
        values = self.features_.read(self, X)
        expected: Floats = Design(self.features_).exact(values) @ self.coef_ + self.intercept_
        return expected
