"""Draws of categories, compiled: one for each record, from probabilities of its own."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.compiled import njit


@njit(cache=True, nogil=True)
def draw_codes(weights: Floats, uniform: Floats) -> Rows:  # pragma: no cover - compiled
    """One index for each row of weights, with probabilities proportional to them, by a number between 0 and 1."""
    drawn = np.empty(len(weights), np.int64)
    for i in range(len(weights)):
        left = uniform[i] * weights[i].sum()
        k = 0
        while k < weights.shape[1] - 1 and left > weights[i, k]:
            left -= weights[i, k]
            k += 1
        drawn[i] = k
    return drawn


@njit(cache=True, nogil=True)
def draw_categories(  # pragma: no cover - compiled
    table: Floats, classes: Rows, shown: Rows, retention: float, replaced: float, uniform: Floats
) -> Rows:
    """The category of each record, given its class and what is shown; one that is missing stays so.

    The one shown was retained, or it was drawn at random from all, each with the same probability.
    """
    drawn = np.empty(len(shown), np.int64)
    for i in range(len(shown)):
        likely, own = table[classes[i]], shown[i]
        if own < 0:
            drawn[i] = -1
            continue
        left = uniform[i] * (replaced + retention * likely[own]) - retention * likely[own]
        k = own if left <= 0 else 0
        while k < len(likely) - 1 and left > replaced * likely[k]:
            left -= replaced * likely[k]
            k += 1
        drawn[i] = k
    return drawn
