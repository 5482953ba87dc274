"""Principal components of the original."""

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
from sfumato.release.evidence import numbers_of


class PCA(TransformerMixin, Miner):
    """Principal components of the original's covariance, which noise would turn and flatten."""

    reference = "li2012, section 3.1; huang2005, eq. 14"

    def __init__(self, *, n_components: int | None = None, columns: Sequence[str] | None = None) -> None:
        """Say what to look at.

        Args:
            n_components: how many; all, if it is not said.
            columns: of numbers; all of them, if none are named.

        """
        self.n_components = n_components
        self.columns = columns

    def fit(self, copy: Any, y: Any = None) -> PCA:  # noqa: ARG002 - scikit-learn's signature
        """Read a copy, or those of a coalition."""
        found = Moments(columns=self.columns).fit(copy)
        most = len(found.columns_)
        count = most if self.n_components is None else self.n_components
        if not 1 <= count <= most:
            raise MiningError(f"n_components must lie between 1 and {most}, the number of columns, got {count!r}")
        values, vectors = np.linalg.eigh(found.covariance_)
        order = np.argsort(values)[::-1][:count]
        self.columns_, self.mean_ = found.columns_, found.mean_
        self.components_ = vectors[:, order].T
        signs = np.sign(self.components_[np.arange(count), np.abs(self.components_).argmax(axis=1)])
        self.components_ *= signs[:, None]
        self.explained_variance_ = np.maximum(values[order], 0)
        self.explained_variance_ratio_ = self.explained_variance_ / max(float(np.maximum(values, 0).sum()), 1e-300)
        return self

    def transform(self, records: Any) -> Floats:
        """Records, of the copy or others, along the components."""
        check_is_fitted(self)
        if isinstance(records, str | Path):
            copy = Copy.of(records)
            values = np.concatenate([copy.values(table, self.columns_) for table in copy.tables(self.columns_)])
        else:
            values = numbers_of(records if isinstance(records, pa.Table) else pa.table(records), self.columns_)
        moved: Floats = (values - self.mean_) @ self.components_.T
        return moved
