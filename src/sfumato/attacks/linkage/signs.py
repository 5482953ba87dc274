"""Which way each eigenvector points: two samples in their own principal axes, to be laid on each other by mirroring.

giannella2010 tries all `2^n` mirrorings with a two-sample test (Algorithm V-B.1). Third moments decide the same with
work that grows like `n³`, and better: the test is blind to axes of little variance.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.spatial.distance import cdist

from sfumato.kernels import Floats

_STARTS = 64
_SOME = 2000
"""Records of each sample that are compared one by one."""


def by_moments(sample: Floats, copy: Floats, seed: int = 0) -> list[Floats]:
    """The signs under which means and third moments agree best, and the next best, by local search from many starts.

    Args:
        sample: a record a row, in principal axes, each divided by its standard deviation.
        copy: likewise.
        seed: of the starts.

    """
    size = sample.shape[1]
    first = sample.mean(axis=0) * copy.mean(axis=0)
    third = _third(sample - sample.mean(axis=0)) * _third(copy - copy.mean(axis=0))
    places = np.arange(size)
    own = third[places, places, places].copy()
    third[places, places, :] = third[places, :, places] = third[:, places, places] = 0  # an even power has no sign

    # a term with two equal indices depends on the third alone
    paired = _paired(sample, copy)
    linear = first + own / 6 + paired / 2
    rng = np.random.default_rng(seed)
    starts = [np.where(linear < 0, -1.0, 1.0), *rng.choice([-1.0, 1.0], (_STARTS, size))]
    found = [_climb(linear, third, start) for start in starts]
    distinct = {signs.tobytes(): signs for signs in found}
    return sorted(distinct.values(), key=lambda signs: -_agreement(linear, third, signs))


def _third(values: Floats) -> Floats:
    """`E[uᵢuⱼuₖ]`."""
    rows, size = values.shape
    pairs = (values[:, :, None] * values[:, None, :]).reshape(rows, -1)
    moments: Floats = (values.T @ pairs / rows).reshape(size, size, size)
    return moments


def _paired(sample: Floats, copy: Floats) -> Floats:
    """The sum over `j ≠ i` of `E[uᵢuⱼ²]` of one sample times that of the other."""
    totals = []
    for values in (sample, copy):
        apart = values - values.mean(axis=0)
        totals.append(apart.T @ apart**2 / len(apart))
    both: Floats = totals[0] * totals[1]
    np.fill_diagonal(both, 0.0)
    total: Floats = both.sum(axis=1)
    return total


def _agreement(linear: Floats, third: Floats, signs: Floats) -> float:
    return float(linear @ signs + np.einsum("ijk,i,j,k", third, signs, signs, signs, optimize=True) / 6)


def _climb(linear: Floats, third: Floats, signs: Floats) -> Floats:
    """Turn the axis, or the two, that gain most, until none does."""
    signs = signs.copy()
    while True:
        once = np.tensordot(third, signs, axes=(2, 0))
        pull = linear + once @ signs / 2
        gains = -2 * signs * pull
        # turning two changes the terms with one of them; those with both stay
        both = gains[:, None] + gains[None, :] + 4 * np.outer(signs, signs) * once
        np.fill_diagonal(both, gains)
        place = int(both.argmax())
        if not both.flat[place] > 1e-12:
            return signs
        i, j = place // len(signs), place % len(signs)
        signs[i] *= -1
        if i != j:
            signs[j] *= -1


def by_energy(sample: Floats, copy: Floats, spread: Floats) -> Floats:
    """The signs with the least energy between the samples, over all `2^n`: the paper's attack.

    Minimising the statistic is what maximising its p-value is meant to do; p-values tie. Only the mean distance between
    the two samples depends on the signs.
    """
    ours, theirs = (some[:: max(len(some) // _SOME, 1)] * spread for some in (sample, copy))
    tried = [np.array(signs) for signs in product((1.0, -1.0), repeat=len(spread))]
    return min(tried, key=lambda signs: float(cdist(ours * signs, theirs).mean()))
