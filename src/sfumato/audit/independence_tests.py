"""Whether two sets of numbers have to do with each other: p-values that hold where at least one is normal noise."""

from __future__ import annotations

import numpy as np
from scipy import stats

from sfumato.kernels import Floats


def basis(values: Floats) -> Floats:
    """Orthonormal columns that span what a matrix varies in."""
    sizes = np.linalg.norm(values, axis=0)
    scaled = values / np.where(sizes > 0, sizes, 1.0)
    found, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = (found > 1e-9 * found[-1]) & (found > 0)
    spanned: Floats = scaled @ (vectors[:, kept] / np.sqrt(found[kept]))
    return spanned


def unrelated(first: Floats, second: Floats, slack: float) -> float:
    """Whether two subspaces are as unrelated as random ones: `n` times the squared cosines between them is χ².

    Args:
        first: orthonormal columns, as from `basis`.
        second: the same.
        slack: the largest correlation that is allowed.

    """
    rows, freedom = len(first), first.shape[1] * second.shape[1]
    if not freedom:
        return 1.0
    total = rows * float(np.square(first.T @ second).sum())
    allowed = rows * slack**2 * min(first.shape[1], second.shape[1])
    law = stats.ncx2(freedom, allowed) if allowed > 1e-6 else stats.chi2(freedom)
    return float(law.sf(total))


def uncorrelated(first: Floats, second: Floats, slack: float) -> float:
    """The same for a share of the first in the second that is the same in all columns: one correlation over all cells.

    It has Student's law.
    """
    product = float(np.vdot(first, second) / np.sqrt(np.vdot(first, first) * np.vdot(second, second)))
    rest = min(max(abs(product) - slack, 0.0), 1 - 1e-12)
    return 2 * float(stats.t.sf(rest * np.sqrt((first.size - 2) / (1 - rest**2)), first.size - 2))


def unmoved(first: Floats, second: Floats) -> float:
    """Whether one column rises or falls with another, where the first is uniform: a mean of bounded terms is normal."""
    if not second.std():
        return 1.0
    found = float(np.corrcoef(first, second)[0, 1])
    return 2 * float(stats.norm.sf(abs(found) * np.sqrt(len(first) - 1)))
