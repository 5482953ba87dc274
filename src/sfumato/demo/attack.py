"""Two attackers who know the truth about every second record, and use it to learn how best to combine copies.

They are given more than a real attacker has, and are free to find any gain from pooling that there is: the first
learns a linear estimate from all numeric columns of all copies, the second what each combination of categories means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.kernels import Floats, Rows


def estimate(copies: Sequence[Floats], truth: Floats) -> Floats:
    """Least squares of the known records on all copies, applied to all records (li2012, eq. 6, with learnt moments)."""
    seen = np.column_stack([*copies, np.ones(len(truth))])
    weights = np.linalg.lstsq(seen[::2], truth[::2], rcond=None)[0]
    guess: Floats = seen @ weights
    return guess


def guess(copies: Sequence[Rows], size: int, truth: Rows) -> Rows:
    """The likeliest category for every combination of copies, as counted among the known records.

    A combination that was seen too rarely to tell says what the next copy less would say, down to the first alone.
    """
    belief = np.full((len(truth), size), 1 / size)
    combination = np.zeros(len(truth), np.int64)
    for copy in copies:
        combination = combination * size + copy
        _, place = np.unique(combination, return_inverse=True)
        counts = np.zeros((place.max() + 1, size))
        np.add.at(counts, (place[::2], truth[::2]), 1.0)
        weighed = counts[place] + _CAUTION * belief
        belief = weighed / weighed.sum(axis=1, keepdims=True)
    likeliest: Rows = belief.argmax(axis=1)
    return likeliest


_CAUTION = 10.0
"""How many records the simpler belief is worth."""
