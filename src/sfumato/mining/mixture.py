"""Clusters of the original, as a mixture of normal distributions."""

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
from sfumato.release.evidence import numbers_of

_MOST = 200_000
"""Records that a mixture is fitted to, evenly spread."""


class Mixture(ClusterMixin, Miner):
    """A mixture of normal distributions behind noise of known covariance.

    Noise widens clusters and lets them run together; here each keeps its own shape. On turned columns, whose
    distances are those of the original, scikit-learn's own clustering gives the original's clusters.
    """

    reference = "Bovy, Hogg and Roweis 2011; giannella2010, section I"

    def __init__(self, *, n_components: int = 2, columns: Sequence[str] | None = None) -> None:
        """Say what to look for.

        Args:
            n_components: how many clusters, at most.
            columns: of numbers; all of them, if none are named.

        """
        self.n_components = n_components
        self.columns = columns

    def fit(self, copy: Any, y: Any = None) -> Mixture:  # noqa: ARG002 - scikit-learn's signature
        """Read a copy; of a coalition's, the best."""
        best = Copy.of(copy)
        self.columns_ = best.numbers(self.columns)
        every = max(-(-best.rows // _MOST), 1)
        parts = [best.values(table, self.columns_)[::every] for table in best.tables(self.columns_)]
        values = np.concatenate(parts) if parts else np.empty((0, len(self.columns_)))
        values = values[~np.isnan(values).any(axis=1)]
        most = len(values) // 2
        if not 1 <= self.n_components <= most:
            raise MiningError(f"n_components must lie between 1 and {most:,}, half the rows, got {self.n_components!r}")
        self._units = np.where(values.std(axis=0) > 0, values.std(axis=0), 1.0)
        self._noise = best.noise(self.columns_) / np.outer(self._units, self._units)
        self._found = kernel.fit(values / self._units, self._noise, self.n_components, iterations=300)
        self.weights_ = self._found.weights
        self.means_ = self._found.means * self._units
        self.covariances_ = self._found.covariances * np.outer(self._units, self._units)
        self.labels_ = self.predict(copy if not isinstance(copy, list | tuple) else best.source)
        return self

    def predict(self, records: Any) -> Rows:
        """The likeliest cluster of records as the copy shows them; -1 where a number is missing."""
        return np.where(np.isnan(chance := self.predict_proba(records)).any(axis=1), -1, chance.argmax(axis=1))

    def predict_proba(self, records: Any) -> Floats:
        """How likely each record, as the copy shows it, belongs to each cluster."""
        check_is_fitted(self, "means_")
        values = self._values(records) / self._units
        logs = np.stack([self._log(values, k) for k in range(len(self.weights_))], axis=1)
        chance = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares: Floats = chance / chance.sum(axis=1, keepdims=True)
        return shares

    def _values(self, records: Any) -> Floats:
        if isinstance(records, pa.Table):
            return numbers_of(records, self.columns_)
        copy = Copy.of(records)
        return np.concatenate([copy.values(table, self.columns_) for table in copy.tables(self.columns_)])

    def _log(self, values: Floats, part: int) -> Floats:
        covariance = self._found.covariances[part] + self._noise
        apart = values - self._found.means[part]
        distance = np.einsum("ij,ij->i", apart @ np.linalg.inv(covariance), apart)
        logs: Floats = np.log(self.weights_[part]) - 0.5 * (distance + np.linalg.slogdet(covariance)[1])
        return logs
