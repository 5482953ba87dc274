"""Principal component analysis of the original, from the covariance corrected for noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining import Miner
from sfumato.mining.copies.copy import Copy
from sfumato.mining.moments import Moments
from sfumato.tables.columns import numbers_of


class PCA(TransformerMixin, Miner):
    """Principal components of the original's covariance, whose directions and variances noise would distort."""

    reference = "li2012, section 3.1; huang2005, eq. 14"
    example = {"n_components": 2}

    def __init__(self, *, n_components: int | None = None, columns: Sequence[str] | None = None) -> None:
        """Set the parameters.

        Args:
            n_components: the number of components; all by default.
            columns: the numeric columns to analyse; all of them by default.

        """
        self.n_components = n_components
        self.columns = columns

    def fit(self, copy: Any, y: Any = None) -> PCA:  # noqa: ARG002 - scikit-learn's signature
        """Estimate the components from a copy, or from the copies of a coalition."""
        moments = Moments(columns=self.columns).fit(copy)
        most = len(moments.columns_)
        count = most if self.n_components is None else self.n_components
        if not 1 <= count <= most:
            raise MiningError(
                f"n_components must lie between 1 and the number of columns, {most}, got {count!r}; choose fewer"
            )
        values, vectors = np.linalg.eigh(moments.covariance_)
        order = np.argsort(values)[::-1][:count]
        self.columns_, self.mean_ = moments.columns_, moments.mean_
        self.components_ = vectors[:, order].T
        signs = np.sign(self.components_[np.arange(count), np.abs(self.components_).argmax(axis=1)])
        self.components_ *= signs[:, None]
        self.explained_variance_ = np.maximum(values[order], 0)
        self.explained_variance_ratio_ = self.explained_variance_ / max(float(np.maximum(values, 0).sum()), 1e-300)
        return self

    def transform(self, records: Any) -> Floats:
        """Project records, of the copy or others, onto the components."""
        check_is_fitted(self)
        if isinstance(records, str | Path):
            copy = Copy.of(records)
            values = np.concatenate([copy.values(table, self.columns_) for table in copy.tables(self.columns_)])
        else:
            values = numbers_of(records if isinstance(records, pa.Table) else pa.table(records), self.columns_)
        projected: Floats = (values - self.mean_) @ self.components_.T
        return projected
