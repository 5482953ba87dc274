"""Linear regression for the original, corrected for attenuation by noise in the variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining import Miner
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.features.design_matrix import DesignMatrix
from sfumato.mining.features.features import regression_set
from sfumato.release.manifest import Manifest


class LinearRegression(RegressorMixin, Miner):
    """Least squares for the original: `(S_xx - Λ)⁻¹(S_xy - λ)`, with the error covariances `Λ` and `λ`.

    Noise in the explanatory columns attenuates coefficients towards zero, and noise that the target shares with them
    biases them further; where all noise is proportional to the data's covariance, the two effects cancel. The
    intervals include sampling error.
    """

    reference = "Fuller 1987, section 2.2; li2012, section 3.1"
    example = {"confidence": 0.9}

    def __init__(self, *, manifest: Manifest | str | None = None, confidence: float = 0.95) -> None:
        """Set the parameters.

        Args:
            manifest: the manifest of the copy, needed if records are given as a data frame, which does not carry it;
                `original` for records that were never perturbed.
            confidence: the confidence level of the coefficients' intervals.

        """
        self.manifest = manifest
        self.confidence = confidence

    def fit(self, X: Any, y: Any) -> LinearRegression:
        """Fit the model to a copy and the name of its target column, or to a table and the target's values."""
        critical_value(self.confidence)  # refuses what is none
        data = regression_set(self, X, y)
        design = DesignMatrix(data.features)
        observed = design.unbiased(data.values)
        centre, target_mean = observed.mean(axis=0), data.target.mean()
        centred, target = observed - centre, data.target - target_mean
        errors, target_errors = design.error_covariance(data.values), np.zeros(observed.shape[1])
        target_errors[design.numeric_positions()] = data.noise_with_target[data.features.numeric]
        rows = len(observed)
        moments = centred.T @ centred / rows
        corrected = moments - errors
        inverse = np.linalg.pinv(corrected, hermitian=True)
        units = np.sqrt(np.diag(centred.T @ centred) / rows + 1e-300)
        if errors.any() and np.linalg.eigvalsh(corrected / np.outer(units, units))[0] < 1e-6:
            raise MiningError(
                "the columns must vary more than their noise in every direction, and at this trust level some linear "
                "combination does not; leave out highly correlated columns, or ask the owner for a more faithful copy"
            )
        self.coef_ = inverse @ (centred.T @ target / rows - target_errors)
        self.intercept_ = float(target_mean - centre @ self.coef_)
        scores = centred * (target - centred @ self.coef_)[:, None] + errors @ self.coef_ - target_errors
        self.coef_error_ = np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse)) / rows
        reach = critical_value(self.confidence, data.design_effect) * self.coef_error_
        self.coef_interval_ = np.stack([self.coef_ - reach, self.coef_ + reach], axis=-1)
        self.features_ = data.features
        return self

    def predict(self, X: Any) -> Floats:
        """The expected target of unperturbed records."""
        check_is_fitted(self)
        values = self.features_.read(self, X)
        expected: Floats = DesignMatrix(self.features_).exact(values) @ self.coef_ + self.intercept_
        return expected
