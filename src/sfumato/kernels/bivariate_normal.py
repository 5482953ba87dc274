"""Bivariate normal probabilities, and the correlation of normal scores that explains a table of counts."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from sfumato.kernels import Floats
from sfumato.kernels.score_arrays import FURTHEST

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)

_GRID = np.sin(np.linspace(-1, 1, 41) * np.pi / 2 * 0.97)
"""The correlations at which rank correlations are computed; between them they are interpolated."""

_FINE = np.linspace(_GRID[0], _GRID[-1], 4001)

_PENALTY = 0.02
"""How much of a rank correlation may be given up to avoid a correlation of 1: where two columns with one frequent value
exclude each other, their rank correlation is next to nothing, and no correlation of scores explains it fully."""


def lower_quadrant(first: Floats, second: Floats, correlation: float) -> Floats:
    """`P(X ≤ a, Y ≤ b)` for all `a` and `b`, by quadrature along the correlation (Drezner and Wesolowsky 1990)."""
    a, b = first[:, None], second[None, :]
    half = np.arcsin(correlation) / 2
    sines = np.sin(half * (_NODES + 1))
    total: Floats = ndtr(a) * ndtr(b)
    for sine, weight in zip(sines, _WEIGHTS * half, strict=True):
        total += weight / (2 * np.pi) * np.exp(-(a * a + b * b - 2 * sine * a * b) / (2 * (1 - sine * sine)))
    return total


def score_correlation(counts: Floats) -> float:
    """The correlation of bivariate normal scores whose rank correlation, with ties, is that of a table of counts.

    It is found where the rank correlation of cut scores comes closest to that of the table. A table of fewer than two
    rows or columns that occur has none: 0.
    """
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0
    table = table / table.sum()
    (ends_a, ranks_a), (ends_b, ranks_b) = (_ends_and_ranks(table.sum(axis=axis)) for axis in (1, 0))
    unit = np.sqrt((table.sum(axis=1) @ ranks_a**2) * (table.sum(axis=0) @ ranks_b**2))
    target = ranks_a @ table @ ranks_b / unit
    cells = (np.diff(np.diff(lower_quadrant(ends_a, ends_b, r), axis=0), axis=1) for r in _GRID)
    ranks = np.array([ranks_a @ cell @ ranks_b for cell in cells]) / unit
    loss = np.square(np.interp(_FINE, _GRID, ranks) - target) + np.square(_PENALTY * _FINE)
    return float(_FINE[loss.argmin()])


def _ends_and_ranks(shares: Floats) -> tuple[Floats, Floats]:
    """The ends of intervals of scores with these probabilities, and their centred mean ranks."""
    cumulative = np.concatenate([[0.0], np.cumsum(shares)])
    ends = np.clip(ndtri(np.minimum(cumulative, 1.0)), -FURTHEST, FURTHEST)
    ends[-1] = FURTHEST
    return ends, (cumulative[:-1] + cumulative[1:]) / 2 - 0.5
