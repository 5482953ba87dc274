"""The Cholesky factor of a correlation matrix that may be singular or slightly indefinite."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats

_TINY = 1e-10
"""The conditional variance, given the columns before it, below which a column counts as linearly dependent on them."""


def _cholesky(matrix: Floats, out: Floats) -> float:
    """Fill `out` with the factor, with a zero column per linearly dependent one; return the most negative pivot."""
    worst = 0.0
    for k in range(len(matrix)):
        rest = matrix[k:, k].copy()
        for m in range(k):  # in this order, so that it has the same digits on every machine
            rest -= out[k:, m] * out[k, m]
        worst = min(worst, float(rest[0]))
        if rest[0] > _TINY:
            out[k, k] = np.sqrt(rest[0])
            out[k + 1 :, k] = rest[1:] / out[k, k]
    return worst


def correlation_factor(correlation: Floats, least_shrinkage: float = 0.0) -> Floats:
    """Lower triangular `L` with `L·Lᵀ` equal to the correlation matrix, shrunk towards the identity.

    A matrix with a negative eigenvalue, as pairwise covariances over different rows can have, is shrunk further, by the
    least power of two that makes it positive semidefinite; its diagonal stays 1. Shrinkage replaces correlated noise by
    independent noise.
    """
    unit = np.eye(len(correlation))
    powers = (2.0**-power for power in range(12, -1, -1) if 2.0**-power > least_shrinkage)
    for share in (least_shrinkage, *powers):
        factor = np.zeros_like(correlation)
        if _cholesky(unit + (correlation - unit) * (1 - share), factor) > -_TINY:
            break
    # a dependent column keeps its full variance although its last pivot was dropped
    return factor / np.sqrt(np.diag(gram(factor)))[:, None]


def lower_factor(covariance: Floats) -> Floats:
    """Lower triangular `L` with `L·Lᵀ` equal to a covariance, of which some variances may be 0."""
    sizes = np.sqrt(np.diag(covariance))
    units = np.where(sizes > 0, sizes, 1.0)
    correlation = covariance / np.outer(units, units)
    np.fill_diagonal(correlation, 1.0)
    factor: Floats = correlation_factor(correlation) * sizes[:, None]
    return factor


def gram(factor: Floats) -> Floats:
    """The Gram matrix `L·Lᵀ`, summed in the order of the columns, so that it has the same digits on every machine."""
    total = np.zeros_like(factor)
    for column in factor.T:
        total += np.outer(column, column)
    return total


def largest_variance_ratio(old: Floats, new: Floats) -> float:
    """The largest generalised eigenvalue `λ` of `N·v = λ·O·v`, for `N = new·newᵀ` and `O = old·oldᵀ`.

    It is the largest ratio of variances over all linear combinations, and infinite where `N` varies and `O` does not.
    """
    sizes = np.sqrt(np.diag(gram(old)))
    before, after = gram(old / sizes[:, None]), gram(new / sizes[:, None])
    values, vectors = np.linalg.eigh(before)
    null = values <= 1e-9 * values[-1]
    if null.any() and np.linalg.norm(vectors[:, null].T @ after @ vectors[:, null], 2) > 1e-6:
        return float(np.inf)
    whitening = vectors[:, ~null] / np.sqrt(values[~null])
    return float(np.linalg.eigvalsh(whitening.T @ after @ whitening)[-1])
