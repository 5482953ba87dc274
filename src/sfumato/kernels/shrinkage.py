"""Eigenvalues of a sample covariance, corrected for the sample's size."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from sfumato.kernels import Floats


def shrunk(eigenvalues: Floats, rows: int) -> Floats:
    """Eigenvalues to invert in the place of a sample's: `uᵢᵀ·Σ⁻¹·uᵢ` is one over them (Ledoit and Péché 2011).

    The largest eigenvalues of a sample are too large and the smallest too small, since their eigenvectors were chosen
    for it; a filter that inverts them, as huang2005's eq. 11 does, passes too much noise. The Hilbert transform of
    their density is estimated as by Ledoit and Wolf 2020, section 4.7; what is left of sampling error is evened out by
    keeping the order.

    Args:
        eigenvalues: of the sample covariance, rising; all positive.
        rows: of the sample; with fewer rows than columns nothing is corrected.

    """
    size = len(eigenvalues)
    if size >= rows or size < 2:
        return eigenvalues
    share, edge = size / rows, np.sqrt(5.0)
    width = rows ** (-1 / 3) * eigenvalues[None, :]
    x = (eigenvalues[:, None] - eigenvalues[None, :]) / width
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = (1 - x**2 / 5) * np.log(np.abs((edge - x) / (edge + x)))
    bend = np.where(np.isclose(np.abs(x), edge), 0.0, bend)
    transform = ((-3 / (10 * np.pi) * x + 3 / (4 * edge * np.pi) * bend) / width).mean(axis=1)
    precision = (1 - share - 2 * np.pi * share * eigenvalues * transform) / eigenvalues
    ordered: Floats = isotonic_regression(np.maximum(precision, 1e-12 / eigenvalues), increasing=False).x
    return 1 / ordered
