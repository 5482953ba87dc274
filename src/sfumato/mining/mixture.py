"""Gaussian mixture model and clusters of the original, estimated through noise of known covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.kernels import mixture as kernel
from sfumato.mining import Miner
from sfumato.mining.copies.copy import Copy
from sfumato.tables.columns import numbers_of

_MAX_RECORDS = 200_000
"""The number of records, evenly spaced, that a mixture is fitted to."""


class Mixture(ClusterMixin, Miner):
    """A Gaussian mixture model of the original, fitted to data with noise of known covariance.

    Noise widens clusters and makes them overlap; here each component keeps its own covariance. Rotated columns have
    the distances of the original, so scikit-learn's own clustering gives the original's clusters on them.
    """

    reference = "Bovy, Hogg and Roweis 2011; giannella2010, section I"
    example = {"columns": ["age", "score"]}

    def __init__(self, *, n_components: int = 2, columns: Sequence[str] | None = None) -> None:
        """Set the parameters.

        Args:
            n_components: the largest number of mixture components.
            columns: the numeric columns to cluster by; all of them by default.

        """
        self.n_components = n_components
        self.columns = columns

    def fit(self, copy: Any, y: Any = None) -> Mixture:  # noqa: ARG002 - scikit-learn's signature
        """Fit the mixture to a copy, or to the most faithful of several."""
        best = Copy.of(copy)
        self.columns_ = best.numeric_columns(self.columns)
        every = max(-(-best.rows // _MAX_RECORDS), 1)
        parts = [best.values(table, self.columns_)[::every] for table in best.tables(self.columns_)]
        values = np.concatenate(parts) if parts else np.empty((0, len(self.columns_)))
        values = values[~np.isnan(values).any(axis=1)]
        most = len(values) // 2
        if not 1 <= self.n_components <= most:
            raise MiningError(
                f"n_components must lie between 1 and half the number of complete records, {most:,}, got "
                f"{self.n_components!r}; choose fewer components"
            )
        self._units = np.where(values.std(axis=0) > 0, values.std(axis=0), 1.0)
        self._noise = best.noise_covariance(self.columns_) / np.outer(self._units, self._units)
        self._mixture = kernel.fit(values / self._units, self._noise, self.n_components, iterations=300)
        self.weights_ = self._mixture.weights
        self.means_ = self._mixture.means * self._units
        self.covariances_ = self._mixture.covariances * np.outer(self._units, self._units)
        self.labels_ = self.predict(copy if not isinstance(copy, list | tuple) else best.source)
        return self

    def predict(self, records: Any) -> Rows:
        """The most probable component of records of the copy; -1 where a value is missing."""
        probabilities = self.predict_proba(records)
        return np.where(np.isnan(probabilities).any(axis=1), -1, probabilities.argmax(axis=1))

    def predict_proba(self, records: Any) -> Floats:
        """The posterior probability of each component for records of the copy, one row per record."""
        check_is_fitted(self, "means_")
        values = self._values(records) / self._units
        logs = np.stack([self._log_density(values, k) for k in range(len(self.weights_))], axis=1)
        densities = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior: Floats = densities / densities.sum(axis=1, keepdims=True)
        return posterior

    def _values(self, records: Any) -> Floats:
        if isinstance(records, pa.Table):
            return numbers_of(records, self.columns_)
        copy = Copy.of(records)
        return np.concatenate([copy.values(table, self.columns_) for table in copy.tables(self.columns_)])

    def _log_density(self, values: Floats, component: int) -> Floats:
        """The logarithm of a component's weighted density, up to a constant."""
        covariance = self._mixture.covariances[component] + self._noise
        residuals = values - self._mixture.means[component]
        distances = np.einsum("ij,ij->i", residuals @ np.linalg.inv(covariance), residuals)
        logs: Floats = np.log(self.weights_[component]) - 0.5 * (distances + np.linalg.slogdet(covariance)[1])
        return logs
