"""A triangular root of a correlation matrix that may be singular."""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.kernels import Floats

_TINY = 1e-10
"""A column whose variance, given the columns before it, is a smaller share than this is a combination of them."""


@njit(cache=True)
def _cholesky(matrix: Floats, out: Floats) -> float:  # pragma: no cover - compiled
    """Fill `out` with the root, a zero column for each dependent one; return the most negative pivot met."""
    worst = 0.0
    for k in range(matrix.shape[0]):
        pivot = matrix[k, k]
        for m in range(k):
            pivot -= out[k, m] * out[k, m]
        worst = min(worst, pivot)
        if pivot > _TINY:
            out[k, k] = np.sqrt(pivot)
            for i in range(k + 1, matrix.shape[0]):
                rest = matrix[i, k]
                for m in range(k):
                    rest -= out[i, m] * out[k, m]
                out[i, k] = rest / out[k, k]
    return worst


def root(correlation: Floats, least: float = 0.0) -> Floats:
    """Lower triangular `L` with `L·Lᵀ` equal to the correlation matrix, drawn by `least` towards the identity.

    A matrix with a negative direction, which covariances over different rows can give, is drawn further, by the least
    power of two that is enough; its diagonal stays 1. What is drawn is independent noise in place of shaped noise.
    """
    unit = np.eye(len(correlation))
    for share in (least, *(2.0**-power for power in range(12, -1, -1) if 2.0**-power > least)):
        factor = np.zeros_like(correlation)
        if _cholesky(unit + (correlation - unit) * (1 - share), factor) > -_TINY:
            break
    # a dependent column keeps its full variance although its last pivot was dropped
    return factor / np.sqrt(np.diag(gram(factor)))[:, None]


def gram(factor: Floats) -> Floats:
    """`L·Lᵀ`, summed in the order of the columns, so that it has the same digits on every machine."""
    total = np.zeros_like(factor)
    for column in factor.T:
        total += np.outer(column, column)
    return total


def stretch(old: Floats, new: Floats) -> float:
    """The largest `λ` with `N·v = λ·O·v`: how much more `N = new·newᵀ` varies than `O = old·oldᵀ`, at its worst.

    Infinite where `N` varies and `O` does not.
    """
    sizes = np.sqrt(np.diag(gram(old)))
    before, after = gram(old / sizes[:, None]), gram(new / sizes[:, None])
    values, vectors = np.linalg.eigh(before)
    flat = values <= 1e-9 * values[-1]
    if flat.any() and np.linalg.norm(vectors[:, flat].T @ after @ vectors[:, flat], 2) > 1e-6:
        return float(np.inf)
    white = vectors[:, ~flat] / np.sqrt(values[~flat])
    return float(np.linalg.eigvalsh(white.T @ after @ white)[-1])
