"""Design matrix of a linear model under measurement error: unbiased columns, and the covariance of their errors.

A numeric column is its own unbiased estimate. For a category `c` it is `(1[y=c] - (1-p)/s)/p`, whose error variance
depends on the record; linear models need its mean over the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from sfumato.kernels import Floats
from sfumato.mining.features.features import Features


@dataclass(frozen=True)
class DesignMatrix:
    """The columns of a linear model: numbers, and indicators of all categories but the first."""

    features: Features

    def __post_init__(self) -> None:
        self.features.check_separate()

    def exact(self, values: Floats) -> Floats:
        """The design matrix of unperturbed records."""
        parts = [
            (values[:, i, None] == np.arange(1, f.size)).astype(np.float64) if f.size else values[:, i, None]
            for i, f in enumerate(self.features.columns)
        ]
        return np.concatenate(parts, axis=1)

    def unbiased(self, values: Floats) -> Floats:
        """Unbiased estimates of the exact design matrix from records of the copy."""
        parts = []
        for i, feature in enumerate(self.features.columns):
            if feature.size:
                indicators = (values[:, i, None] == np.arange(1, feature.size)).astype(np.float64)
                parts.append((indicators - (1 - feature.retention) / feature.size) / feature.retention)
            else:
                parts.append(values[:, i, None])
        return np.concatenate(parts, axis=1)

    def error_covariance(self, values: Floats) -> Floats:
        """The mean covariance matrix of the errors `unbiased - exact`."""
        numeric = self.features.numeric
        blocks = []
        for i, feature in enumerate(self.features.columns):
            if feature.size:
                blocks.append(_category_errors(values[:, i], feature.size, feature.retention))
            else:
                blocks.append(np.zeros((1, 1)))
        out: Floats = block_diag(*blocks)
        positions = np.cumsum([0, *(len(block) for block in blocks)])[numeric]
        out[np.ix_(positions, positions)] = self.features.noise[np.ix_(numeric, numeric)]
        return out

    def numeric_positions(self) -> list[int]:
        """The positions of the numeric columns in the design matrix."""
        sizes = [max(feature.size - 1, 0) if feature.size else 1 for feature in self.features.columns]
        starts = np.cumsum([0, *sizes])
        return [int(starts[i]) for i in self.features.numeric]


def _category_errors(codes: Floats, size: int, retention: float) -> Floats:
    """`(E[diag(m) - m·mᵀ])/p²` with `m(x) = p·e_x + (1-p)/s`, for all categories but the first."""
    observed = np.bincount(codes.astype(np.int64), minlength=size) / len(codes)
    frequency = np.maximum((observed - (1 - retention) / size) / retention, 0)
    other = (1 - retention) / size
    square = retention**2 * np.diag(frequency) + retention * other * (frequency[:, None] + frequency) + other**2
    covariance: Floats = (np.diag(retention * frequency + other) - square) / retention**2
    return covariance[1:, 1:]


def corrected_covariance(observed: Floats, errors: Floats, rows: int) -> Floats:
    """The covariance of the exact design matrix: the observed one less that of the errors.

    In a direction whose variance is nearly all error, what is left after the subtraction is mostly sampling error, and
    may be negative. The reliability, the share of the observed variance that is not error, is therefore at least
    `2√(p/n) + p/n`, the relative error of the eigenvalues of a covariance of `p` columns and `n` records.
    """
    if not errors.any():
        return observed
    units = np.sqrt(np.maximum(np.diag(observed), 1e-300))
    values, vectors = np.linalg.eigh(observed / np.outer(units, units))
    kept = values > 1e-9 * values[-1]
    root, white = (vectors[:, kept] * values[kept] ** power for power in (0.5, -0.5))
    reliability, axes = np.linalg.eigh(np.eye(kept.sum()) - white.T @ (errors / np.outer(units, units)) @ white)
    share = len(units) / rows
    floored = np.clip(reliability, min(2 * share**0.5 + share, 1.0), 1.0)
    factor = root @ (axes * np.sqrt(floored)) * units[:, None]
    corrected: Floats = factor @ factor.T
    return corrected
