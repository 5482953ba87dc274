"""Rotations and random projections of records, summed in a fixed order so that every machine gives the same bytes."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.compiled import njit


@njit(cache=True, nogil=True)
def random_orthogonal(normals: Floats) -> Floats:  # pragma: no cover - compiled
    """A Haar-distributed orthogonal matrix: the orthogonalisation of `n x n` standard normals (Stewart 1980)."""
    size = normals.shape[0]
    out = normals.copy()
    for row in range(size):
        for _ in range(2):  # a second time, so that it is orthogonal to the last digit
            for before in range(row):
                product = 0.0
                for k in range(size):
                    product += out[row, k] * out[before, k]
                for k in range(size):
                    out[row, k] -= product * out[before, k]
        square = 0.0
        for k in range(size):
            square += out[row, k] * out[row, k]
        length = np.sqrt(square)
        for k in range(size):
            out[row, k] /= length
    return out


@njit(cache=True, nogil=True)
def apply_linear_map(  # pragma: no cover - compiled
    matrix: Floats, shift: Floats, step: float, values: Floats, out: Floats
) -> None:
    """Apply `Y = M·X + v` to columns (rows of `values`), rounded to multiples of `step` (giannella2010, III-B)."""
    rows = values.shape[1]
    total = np.empty(rows)
    for i in range(matrix.shape[0]):
        total[:] = shift[i]
        for j in range(matrix.shape[1]):
            weight = matrix[i, j]
            for row in range(rows):
                total[row] += weight * values[j, row]
        for row in range(rows):
            out[i, row] = np.rint(total[row] / step) * step
