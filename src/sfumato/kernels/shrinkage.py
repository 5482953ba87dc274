"""Nonlinear shrinkage of the eigenvalues of a sample covariance matrix."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from sfumato.kernels import Floats


def shrunk_eigenvalues(eigenvalues: Floats, rows: int) -> Floats:
    """Shrunk eigenvalues, whose inverses estimate `uᵢᵀ·Σ⁻¹·uᵢ` for sample eigenvectors `uᵢ` (Ledoit and Péché 2011).

    The largest eigenvalues of a sample are too large and the smallest too small, since their eigenvectors are fitted to
    the sample; a filter that inverts them, as huang2005's eq. 11 does, passes too much noise. The Hilbert transform of
    their density is estimated as by Ledoit and Wolf 2020, section 4.7; isotonic regression then removes sampling error
    that would change their order.

    Args:
        eigenvalues: the eigenvalues of the sample covariance in ascending order; all positive.
        rows: the size of the sample; with fewer rows than columns nothing is corrected.

    """
    size = len(eigenvalues)
    if size >= rows or size < 2:
        return eigenvalues
    concentration, edge = size / rows, np.sqrt(5.0)
    width = rows ** (-1 / 3) * eigenvalues[None, :]
    x = (eigenvalues[:, None] - eigenvalues[None, :]) / width
    with np.errstate(divide="ignore", invalid="ignore"):
        log_term = (1 - x**2 / 5) * np.log(np.abs((edge - x) / (edge + x)))
    log_term = np.where(np.isclose(np.abs(x), edge), 0.0, log_term)
    transform = ((-3 / (10 * np.pi) * x + 3 / (4 * edge * np.pi) * log_term) / width).mean(axis=1)
    precision = (1 - concentration - 2 * np.pi * concentration * eigenvalues * transform) / eigenvalues
    ordered: Floats = isotonic_regression(np.maximum(precision, 1e-12 / eigenvalues), increasing=False).x
    return 1 / ordered
