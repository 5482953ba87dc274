"""Logistic regression, corrected for errors in its columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Mask, Rows
from sfumato.kernels.conditional_score import solve
from sfumato.mining import Miner
from sfumato.mining.features.design_matrix import Design, uncovered
from sfumato.mining.features.features import lesson
from sfumato.release.manifest import Manifest


class LogisticRegression(ClassifierMixin, Miner):
    """Logistic regression for the original, by the conditional score: right whatever the columns' distribution.

    It starts from the classes' moments, corrected (linear discriminant analysis), and stays there where the score has
    no root near, or where categories are perturbed, whose errors are not normal. Records of the copy are judged by a
    calibration: each is moved to where it is expected to be.
    """

    reference = "Stefanski and Carroll 1987; Carroll, Ruppert, Stefanski and Crainiceanu 2006, sections 4.2 and 7.2"

    def __init__(
        self, *, manifest: Manifest | None = None, on: str = "original", C: float = 1.0, max_iter: int = 1000
    ) -> None:
        """Say how to learn.

        Args:
            manifest: of the copy, where records come as a data frame, which has no room for it.
            on: whether to predict for records as they are (`original`) or as the copy shows them (`copy`).
            C: the inverse of the penalty, on columns of unit size.
            max_iter: at most so many iterations.

        """
        self.manifest = manifest
        self.on = on
        self.C = C
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> LogisticRegression:
        """Learn from a copy: a table with its manifest and the name of its class column, or a table and the classes."""
        if self.on not in {"original", "copy"}:
            raise MiningError(f"`on` must be 'original' or 'copy', got {self.on!r}")
        taught = lesson(self, X, y)
        if taught.retention < 1:
            raise MiningError("logistic regression needs classes that are not perturbed, and these are; use NaiveBayes")
        if len(taught.classes) < 2:
            raise MiningError(f"at least two classes must be there to tell apart, got one class: {taught.classes[0]!r}")
        design = Design(taught.features)
        seen, errors = design.unbiased(taught.values), design.errors(taught.values)
        total = np.atleast_2d(np.cov(seen.T))
        inner = uncovered(total, errors)
        gain = inner @ np.linalg.pinv(total, hermitian=True) if errors.any() else np.eye(len(total))
        self._centre, self._gain = seen.mean(axis=0), gain
        moved = self._moved(seen) - self._centre
        unit = np.where(moved.std(axis=0) > 0, moved.std(axis=0), 1.0)
        plain = Plain(C=self.C, max_iter=self.max_iter).fit(moved / unit, taught.labels)
        self._flat = plain.coef_ / unit
        self._flat_intercept = plain.intercept_ - self._flat @ self._centre
        self.coef_, self.intercept_ = self._flat, self._flat_intercept
        if errors.any():
            normal = all(feature.retention == 1 for feature in taught.features.columns)
            self.coef_, self.intercept_ = _corrected(seen, taught.labels, errors, len(plain.coef_), normal=normal)
        self.n_iter_ = plain.n_iter_
        self.classes_, self.features_ = taught.classes, taught.features
        return self

    def _moved(self, seen: Floats) -> Floats:
        expected: Floats = self._centre + (seen - self._centre) @ self._gain.T
        return expected

    def decision_function(self, X: Any) -> Floats:
        """The log-odds: one a record for two classes, else one a class."""
        check_is_fitted(self)
        design, values = Design(self.features_), self.features_.read(self, X)
        if self.on == "copy":
            scores = self._moved(design.unbiased(values)) @ self._flat.T + self._flat_intercept
        else:
            scores = design.exact(values) @ self.coef_.T + self.intercept_
        odds: Floats = scores[:, 0] if len(self.classes_) == 2 else scores
        return odds

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, a row a record."""
        scores = self.decision_function(X)
        both = np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores
        chance = np.exp(both - both.max(axis=1, keepdims=True))
        shares: Floats = chance / chance.sum(axis=1, keepdims=True)
        return shares

    def predict(self, X: Any) -> Any:
        """The likeliest class of each record."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]


def _corrected(seen: Floats, labels: Rows, errors: Floats, count: int, *, normal: bool) -> tuple[Floats, Floats]:
    """Each class against the others: by the conditional score, from where the moments of the classes put it."""
    centre, unit = seen.mean(axis=0), np.where(seen.std(axis=0) > 0, seen.std(axis=0), 1.0)
    scaled, blur = (seen - centre) / unit, errors / np.outer(unit, unit)
    found = []
    for place in range(count):
        is_it = (labels == (1 if count == 1 else place)).astype(np.float64)
        start = _discriminant(scaled, is_it == 1, blur)
        answer = solve(scaled, is_it, blur, start) if normal else None
        found.append(start if answer is None else answer)
    coefficients = np.array([one[1:] for one in found]) / unit
    return coefficients, np.array([one[0] for one in found]) - coefficients @ centre


def _discriminant(seen: Floats, is_it: Mask, errors: Floats) -> Floats:
    """`(α, β)` for classes that are normal with one covariance: `β = (S - Λ)⁻¹(μ1 - μ0)`, `S` within the classes."""
    one, other = seen[is_it], seen[~is_it]
    within = (np.cov(one.T, ddof=0) * len(one) + np.cov(other.T, ddof=0) * len(other)) / len(seen)
    slope = np.linalg.solve(uncovered(np.atleast_2d(within), errors), one.mean(axis=0) - other.mean(axis=0))
    level = math.log(len(one) / len(other)) - (one.mean(axis=0) + other.mean(axis=0)) @ slope / 2
    return np.append(level, slope)
