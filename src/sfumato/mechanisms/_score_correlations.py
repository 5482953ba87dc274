"""The correlations of normal scores, and the order of categories, from the Burt matrix of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.bivariate_normal import score_correlation
from sfumato.mechanisms._published_statistics import bits

_LEAST_EIGENVALUE = 0.01
"""Correlations are shrunk until no combination of scores varies less: a column that follows from others has noise."""

_ORDER_DIGITS = 6
"""Binary digits of the coordinates by which categories are put in order; equal ones are ordered by name."""

_FEWEST = 64
"""Pairs of columns with fewer records in common are taken as independent."""


def first_axis(counts: Rows, own: slice) -> Rows:
    """The order of the groups of one column on the first axis of its correspondence analysis against all others.

    The axis is the direction in which the other columns distinguish its groups most (Greenacre 1984, chapter 4). Where
    they do not, the order is that of the names.
    """
    others = np.ones(len(counts), np.bool_)
    others[own] = False
    table = counts[own][:, others].astype(np.float64)
    table = table[:, table.sum(axis=0) > 0]
    sums = table.sum(axis=1)
    if table.size == 0 or (sums > 0).sum() < 3:
        return np.arange(table.shape[0])
    shares = table / table.sum()
    rows, columns = np.maximum(shares.sum(axis=1), 1e-300), shares.sum(axis=0)
    residuals = (shares - np.outer(rows, columns)) / np.sqrt(np.outer(rows, columns))
    left, sizes, _ = np.linalg.svd(residuals, full_matrices=False)
    axis = left[:, 0] * sizes[0] / np.sqrt(rows)
    axis = np.where(sums > 0, axis, 0.0) * (-1.0 if axis[rows.argmax()] > 0 else 1.0)
    scale = np.abs(axis).max() or 1.0
    coordinates = np.round(axis / scale * 2**_ORDER_DIGITS)
    order: Rows = np.lexsort([np.arange(len(axis)), coordinates])
    return order


def correlations(counts: Rows, parts: Sequence[slice], rows: int) -> Floats:
    """The correlations of all scores: each pair by its own table, then the nearest correlation matrix, rounded.

    A pair's correlation is that with which the rank correlation of the scores, with ties, is that of the table.
    """
    size = len(parts)
    matrix = np.eye(size)
    for i in range(size):
        for j in range(i):
            table = counts[parts[i], parts[j]].astype(np.float64)
            matrix[i, j] = matrix[j, i] = score_correlation(table) if table.sum() >= _FEWEST else 0.0
    digits = bits(rows)
    rounded: Floats = np.round(_nearest(matrix) * 2**digits) / 2**digits
    np.fill_diagonal(rounded, 1.0)
    least = float(np.linalg.eigvalsh(rounded)[0])
    if least < _LEAST_EIGENVALUE:  # rounding may have taken something away
        weight = (_LEAST_EIGENVALUE - least) / (1 - least)
        rounded = (1 - weight) * rounded + weight * np.eye(size)
    return rounded


def _nearest(matrix: Floats) -> Floats:
    """A correlation matrix near this one, none of whose eigenvalues is too small."""
    for _ in range(20):
        sizes, vectors = np.linalg.eigh(matrix)
        if sizes[0] >= _LEAST_EIGENVALUE:
            break
        raised = (vectors * np.maximum(sizes, 1.5 * _LEAST_EIGENVALUE)) @ vectors.T
        units = np.sqrt(np.diag(raised))
        matrix = raised / np.outer(units, units)
    return matrix
