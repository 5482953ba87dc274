"""Independence tests: p-values for two sets of numbers of which at least one is normal noise."""

from __future__ import annotations

import numpy as np
from scipy import stats

from sfumato.kernels import Floats


def orthonormal_basis(values: Floats) -> Floats:
    """Orthonormal columns that span the column space of a matrix."""
    sizes = np.linalg.norm(values, axis=0)
    scaled = values / np.where(sizes > 0, sizes, 1.0)
    eigenvalues, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = (eigenvalues > 1e-9 * eigenvalues[-1]) & (eigenvalues > 0)
    spanned: Floats = scaled @ (vectors[:, kept] / np.sqrt(eigenvalues[kept]))
    return spanned


def canonical_correlation_p(first: Floats, second: Floats, slack: float) -> float:
    """Tests that two subspaces are unrelated: `n` times the sum of squared canonical correlations is χ².

    Args:
        first: orthonormal columns, as from `orthonormal_basis`.
        second: orthonormal columns, as from `orthonormal_basis`.
        slack: the largest correlation that is allowed.

    """
    rows, freedom = len(first), first.shape[1] * second.shape[1]
    if not freedom:
        return 1.0
    total = rows * float(np.square(first.T @ second).sum())
    allowed = rows * slack**2 * min(first.shape[1], second.shape[1])
    distribution = stats.ncx2(freedom, allowed) if allowed > 1e-6 else stats.chi2(freedom)
    return float(distribution.sf(total))


def common_correlation_p(first: Floats, second: Floats, slack: float) -> float:
    """Tests one correlation over all cells, by Student's t: it finds a leak of the same share in all columns.

    Args:
        first: a matrix of centred, uncorrelated columns.
        second: a matrix of the same shape.
        slack: the largest correlation that is allowed.

    """
    product = float(np.vdot(first, second) / np.sqrt(np.vdot(first, first) * np.vdot(second, second)))
    rest = min(max(abs(product) - slack, 0.0), 1 - 1e-12)
    return 2 * float(stats.t.sf(rest * np.sqrt((first.size - 2) / (1 - rest**2)), first.size - 2))


def monotone_trend_p(first: Floats, second: Floats) -> float:
    """Tests that a uniform variable does not rise or fall with another: the mean of bounded terms is near normal."""
    if not second.std():
        return 1.0
    correlation = float(np.corrcoef(first, second)[0, 1])
    return 2 * float(stats.norm.sf(abs(correlation) * np.sqrt(len(first) - 1)))
