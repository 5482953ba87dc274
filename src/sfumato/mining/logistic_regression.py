"""Logistic regression, corrected for errors in its columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining import Miner
from sfumato.mining._design import Design, uncovered
from sfumato.mining._features import lesson
from sfumato.release.manifest import Manifest

_PROBIT = 16 * math.sqrt(3) / (15 * math.pi)
"""A logistic curve is a probit one of this scale, to within 0.01 (Carroll et al. 2006, section 4.8)."""


class LogisticRegression(ClassifierMixin, Miner):
    """Logistic regression by calibration: every record is moved to where it is expected to be, given what is seen.

    What is left unknown of a record flattens the curve; as its variance `V` is known, coefficients `b` are stretched
    back to `b·√(1+k²q)` with `q = bᵀVb/(1-k²bᵀVb)`.
    """

    reference = "Carroll, Ruppert, Stefanski and Crainiceanu 2006, sections 4.2 and 4.8"

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
        seen = design.unbiased(taught.values)
        total = np.atleast_2d(np.cov(seen.T))
        inner = uncovered(total, design.errors(taught.values))
        blurred = bool(np.any(design.errors(taught.values)))
        gain = inner @ np.linalg.pinv(total, hermitian=True) if blurred else np.eye(len(total))
        self._centre, self._gain = seen.mean(axis=0), gain
        moved = self._moved(seen)
        unit = np.where(moved.std(axis=0) > 0, moved.std(axis=0), 1.0)
        plain = Plain(C=self.C, max_iter=self.max_iter).fit((moved - self._centre) / unit, taught.labels)
        flat = plain.coef_ / unit
        unknown = inner - gain @ inner if blurred else np.zeros_like(inner)
        self.coef_ = flat * _stretch(flat, unknown)[:, None]
        self.intercept_ = plain.intercept_ * _stretch(flat, unknown) - self.coef_ @ self._centre
        self._flat, self._flat_intercept = flat, plain.intercept_ - flat @ self._centre
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


def _stretch(flat: Floats, unknown: Floats) -> Floats:
    """How much too flat each class's coefficients are; at most threefold, where little is known."""
    spread = _PROBIT**2 * np.einsum("ci,ij,cj->c", flat, unknown, flat)
    factor: Floats = 1 / np.sqrt(1 - np.minimum(spread, 8 / 9))
    return factor
