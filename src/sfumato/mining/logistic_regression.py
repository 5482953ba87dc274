"""Logistic regression for the original, corrected for measurement error in its columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Mask
from sfumato.kernels.conditional_score import solve
from sfumato.mining import Miner
from sfumato.mining.features.design_matrix import DesignMatrix, corrected_covariance
from sfumato.mining.features.features import check_prediction_target, training_set
from sfumato.release.manifest import Manifest


class LogisticRegression(ClassifierMixin, Miner):
    """Logistic regression for the original by the conditional score, consistent for any distribution of the columns.

    The initial coefficients come from the corrected moments of the classes (linear discriminant analysis). They are
    final where categories are perturbed, whose errors are not normal. Where the score has no root nearby, and for
    predictions of records of the copy, each record is replaced by its expected value in the original (regression
    calibration), which attenuates large coefficients.
    """

    reference = "Stefanski and Carroll 1987; Carroll, Ruppert, Stefanski and Crainiceanu 2006, sections 4.2 and 7.2"
    example = {"C": 2.0}

    def __init__(
        self, *, manifest: Manifest | str | None = None, on: str = "original", C: float = 1.0, max_iter: int = 1000
    ) -> None:
        """Set the parameters.

        Args:
            manifest: the manifest of the copy, needed if records are given as a data frame, which does not carry it;
                `original` for records that were never perturbed.
            on: whether to predict for unperturbed records (`original`) or for records of the copy (`copy`).
            C: the inverse of the regularisation strength, for columns of the copy scaled to unit variance.
            max_iter: the largest number of iterations.

        """
        self.manifest = manifest
        self.on = on
        self.C = C
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> LogisticRegression:
        """Fit the model to a copy and the name of its class column, or to a table and the classes."""
        check_prediction_target(self.on)
        training = training_set(self, X, y)
        if training.retention < 1:
            raise MiningError("logistic regression needs classes that are not perturbed, and these are; use NaiveBayes")
        if len(training.classes) < 2:
            raise MiningError(
                f"at least two classes are needed, got one class: {training.classes[0]!r}; give records of another"
            )
        design = DesignMatrix(training.features)
        observed, errors = design.unbiased(training.values), design.error_covariance(training.values)
        total = np.atleast_2d(np.cov(observed.T))
        corrected = corrected_covariance(total, errors, len(observed))
        reliability = corrected @ np.linalg.pinv(total, hermitian=True) if errors.any() else np.eye(len(total))
        self._centre, self._reliability = observed.mean(axis=0), reliability
        unit = np.where(np.diag(total) > 0, np.sqrt(np.diag(total)), 1.0)
        calibrated = (self._calibrated(observed) - self._centre) / unit
        plain = Plain(C=self.C, max_iter=self.max_iter).fit(calibrated, training.labels)
        self._calibrated_coef = plain.coef_ / unit
        self._calibrated_intercept = plain.intercept_ - self._calibrated_coef @ self._centre
        self.coef_, self.intercept_ = self._calibrated_coef, self._calibrated_intercept
        if errors.any():
            normal = all(feature.retention == 1 for feature in training.features.columns)
            scaled, scaled_errors = (observed - self._centre) / unit, errors / np.outer(unit, unit)
            members = [training.labels == i for i in (range(len(plain.coef_)) if len(plain.coef_) > 1 else (1,))]
            found = _corrected(scaled, members, scaled_errors, 1 / (self.C * len(observed)), normal=normal)
            if found is not None:
                self.coef_ = found[:, 1:] / unit
                self.intercept_ = found[:, 0] - self.coef_ @ self._centre
        self.n_iter_ = plain.n_iter_
        self.classes_, self.features_ = training.classes, training.features
        return self

    def _calibrated(self, observed: Floats) -> Floats:
        """The expected values of the original, given those of the copy (regression calibration)."""
        expected: Floats = self._centre + (observed - self._centre) @ self._reliability.T
        return expected

    def decision_function(self, X: Any) -> Floats:
        """The log-odds of each record: one number for two classes, else one per class."""
        check_is_fitted(self)
        design, values = DesignMatrix(self.features_), self.features_.read(self, X)
        if self.on == "copy":
            scores = self._calibrated(design.unbiased(values)) @ self._calibrated_coef.T + self._calibrated_intercept
        else:
            scores = design.exact(values) @ self.coef_.T + self.intercept_
        odds: Floats = scores[:, 0] if len(self.classes_) == 2 else scores
        return odds

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, one row per record."""
        scores = self.decision_function(X)
        per_class = np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores
        odds = np.exp(per_class - per_class.max(axis=1, keepdims=True))
        probabilities: Floats = odds / odds.sum(axis=1, keepdims=True)
        return probabilities

    def predict(self, X: Any) -> Any:
        """The most probable class of each record."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]


def _corrected(scaled: Floats, members: list[Mask], errors: Floats, penalty: float, *, normal: bool) -> Floats | None:
    """`(α, β)` of each class against the others; none if the conditional score of one has no root nearby."""
    found = []
    for is_member in members:
        initial = _discriminant(scaled, is_member, errors, penalty)
        found.append(solve(scaled, is_member.astype(np.float64), errors, initial, penalty) if normal else initial)
    return None if any(one is None for one in found) else np.array(found)


def _discriminant(observed: Floats, is_member: Mask, errors: Floats, penalty: float) -> Floats:
    """`(α, β)` for normal classes with one covariance: `β = (S - Λ)⁻¹(μ1 - μ0)`, with `S` within the classes.

    Near `β = 0` the loss of logistic regression has the curvature `π(1-π)·(S - Λ)`, to which the penalty is added.
    """
    one, other = observed[is_member], observed[~is_member]
    share = len(one) / len(observed)
    within = (np.cov(one.T, ddof=0) * len(one) + np.cov(other.T, ddof=0) * len(other)) / len(observed)
    corrected = corrected_covariance(np.atleast_2d(within), errors, len(observed))
    penalised = corrected + penalty / (share * (1 - share)) * np.eye(len(corrected))
    slope = np.linalg.solve(penalised, one.mean(axis=0) - other.mean(axis=0))
    intercept = math.log(len(one) / len(other)) - (one.mean(axis=0) + other.mean(axis=0)) @ slope / 2
    return np.append(intercept, slope)
