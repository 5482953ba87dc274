"""Signs of principal axes: the reflections under which a sample and a copy have the same distribution.

giannella2010 tries all `2^n` reflections with a two-sample test (Algorithm V-B.1). Third moments decide the same with
work that grows like `n³`, and better: the test is insensitive to axes with little variance.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.spatial.distance import cdist

from sfumato.kernels import Floats

_STARTS = 64
"""Random initial signs of the local search."""

_COMPARED = 2000
"""Records of each sample whose pairwise distances are computed."""


def signs_by_moments(sample: Floats, copy: Floats, seed: int = 0) -> list[Floats]:
    """The signs under which means and third moments agree best, then the next best, by local search from many starts.

    Args:
        sample: principal component scores of the sample, one row per record, each divided by its standard deviation.
        copy: principal component scores of the copy, in the same form.
        seed: of the random initial signs.

    """
    size = sample.shape[1]
    first = sample.mean(axis=0) * copy.mean(axis=0)
    third = _third_moments(sample - sample.mean(axis=0)) * _third_moments(copy - copy.mean(axis=0))
    axes = np.arange(size)
    cubes = third[axes, axes, axes].copy()
    third[axes, axes, :] = third[axes, :, axes] = third[:, axes, axes] = 0  # an even power has no sign

    # a term with two equal indices depends on the sign of the third alone
    linear = first + cubes / 6 + _paired_moments(sample, copy) / 2
    rng = np.random.default_rng(seed)
    starts = [np.where(linear < 0, -1.0, 1.0), *rng.choice([-1.0, 1.0], (_STARTS, size))]
    optima = [_local_search(linear, third, start) for start in starts]
    distinct = {signs.tobytes(): signs for signs in optima}
    return sorted(distinct.values(), key=lambda signs: -_agreement(linear, third, signs))


def _third_moments(values: Floats) -> Floats:
    """The tensor `E[uᵢuⱼuₖ]`."""
    rows, size = values.shape
    pairs = (values[:, :, None] * values[:, None, :]).reshape(rows, -1)
    moments: Floats = (values.T @ pairs / rows).reshape(size, size, size)
    return moments


def _paired_moments(sample: Floats, copy: Floats) -> Floats:
    """The sum over `j ≠ i` of `E[uᵢuⱼ²]` of one sample times that of the other."""
    moments = []
    for values in (sample, copy):
        centred = values - values.mean(axis=0)
        moments.append(centred.T @ centred**2 / len(centred))
    both: Floats = moments[0] * moments[1]
    np.fill_diagonal(both, 0.0)
    total: Floats = both.sum(axis=1)
    return total


def _agreement(linear: Floats, third: Floats, signs: Floats) -> float:
    """The objective: the inner product of the moments of the copy and of the reflected sample."""
    return float(linear @ signs + np.einsum("ijk,i,j,k", third, signs, signs, signs, optimize=True) / 6)


def _local_search(linear: Floats, third: Floats, signs: Floats) -> Floats:
    """Flip the one or two signs that improve the agreement most, until none does."""
    signs = signs.copy()
    while True:
        contracted = np.tensordot(third, signs, axes=(2, 0))
        gradient = linear + contracted @ signs / 2
        gains = -2 * signs * gradient
        # flipping two signs changes the terms with one of them; those with both stay
        both = gains[:, None] + gains[None, :] + 4 * np.outer(signs, signs) * contracted
        np.fill_diagonal(both, gains)
        best = int(both.argmax())
        if not both.flat[best] > 1e-12:
            return signs
        i, j = best // len(signs), best % len(signs)
        signs[i] *= -1
        if i != j:
            signs[j] *= -1


def signs_by_energy(sample: Floats, copy: Floats, deviations: Floats) -> Floats:
    """The signs with the smallest energy distance between the samples, over all `2^n`: the attack of the paper.

    Minimising the statistic replaces maximising its p-value, because p-values tie. Only the mean distance between the
    two samples depends on the signs.
    """
    ours, theirs = (some[:: max(len(some) // _COMPARED, 1)] * deviations for some in (sample, copy))
    candidates = [np.array(signs) for signs in product((1.0, -1.0), repeat=len(deviations))]
    return min(candidates, key=lambda signs: float(cdist(ours * signs, theirs).mean()))
