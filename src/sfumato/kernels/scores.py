"""Normal scores of records with ties: a draw from the Gaussian copula, given the interval of each score.

A value of a column is an interval of its standard normal score, from `Φ⁻¹(F(x-))` to `Φ⁻¹(F(x))`; ties and categories
have wide ones. Scores within the intervals are drawn given the record's other scores, with the copula's correlations
(the rank likelihood of Hoff 2007, section 3): independent draws would weaken the correlations of columns with ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.kernels import Floats, Rows, Words
from sfumato.kernels.compiled import njit
from sfumato.kernels.normal import truncated

NARROW = 0.1
"""Scores in intervals up to this width are drawn once: the others have next to no influence on them."""

_STEEPEST = 0.8
"""The largest change of the logarithm of a density over an interval for which it is taken as linear."""

DRAWS_PER_BLOCK = 4
"""A block of 128 random bits serves four draws."""

_TO_UNIT = 1.0 / (1 << 32)


@njit(cache=True, nogil=True, inline="always")
def _share(blocks: Words, draw: int, row: int) -> Any:  # pragma: no cover - compiled
    """Draw number `draw` of a record, uniform between 0 and 1, from its blocks of random bits."""
    word = blocks[draw >> 2, 2 * row + ((draw >> 1) & 1)]
    half = word >> np.uint64(32) if draw & 1 else word & np.uint64(0xFFFFFFFF)
    return (np.float64(np.int64(half)) + 0.5) * _TO_UNIT


@njit(cache=True, nogil=True, inline="always")
def _drawn(  # pragma: no cover - compiled
    low: float, high: float, mean: float, deviation: float, inverse: float, share: float, known: Any
) -> Any:
    """A normal number in an interval; in a short one its density is linear, up to a few thousandths."""
    width = high - low
    steep = ((low + high) * 0.5 - mean) * inverse * inverse * width
    if width < deviation and abs(steep) < _STEEPEST:
        return low + width * share * (1.0 - 0.5 * steep * (1.0 - share))
    inside = truncated((low - mean) * inverse, (high - mean) * inverse, share, known)
    return min(max(mean + deviation * inside, low), high)


@njit(cache=True, nogil=True)
def first_scores(  # pragma: no cover - compiled
    lower: Floats, upper: Floats, blocks: Words, root: Floats, known: Any, out: Floats
) -> None:
    """Draw scores one after the other, each given those before it (Geweke 1991; Hajivassiliou and Keane).

    Records are independent of each other, so a processor works on several at once if they are in the inner loop.

    Args:
        lower: the lower ends of the scores, one row per score.
        upper: the upper ends.
        blocks: random bits, `DRAWS_PER_BLOCK` draws in each block of a record.
        root: lower triangular; its product with its transpose is the correlation matrix.
        known: the tables of the normal distribution.
        out: the scores.

    """
    scores, rows = lower.shape
    innovations = np.empty((scores, rows))
    for j in range(scores):
        means, deviation = _weighted(root[j, :j], innovations, rows), root[j, j]
        inverse = 1.0 / deviation
        for row in range(rows):
            share = _share(blocks, j, row)
            out[j, row] = _drawn(lower[j, row], upper[j, row], means[row], deviation, inverse, share, known)
            innovations[j, row] = (out[j, row] - means[row]) * inverse


@njit(cache=True, nogil=True)
def _weighted(weights: Floats, lines: Floats, rows: int) -> Floats:  # pragma: no cover - compiled
    """The sum of some lines with weights, in their order, so that it is the same on every machine."""
    total = np.zeros(rows)
    for k in range(weights.shape[0]):
        for row in range(rows):
            total[row] += weights[k] * lines[k, row]
    return total


@njit(cache=True, nogil=True)
def redraw_scores(  # pragma: no cover - compiled
    lower: Floats, upper: Floats, blocks: Words, wide: Rows, conditionals: Any, known: Any, out: Floats
) -> None:
    """Draw some scores anew given all others: one sweep of Gibbs sampling.

    Args:
        lower: the lower ends of the scores, one row per score.
        upper: the upper ends.
        blocks: random bits, `DRAWS_PER_BLOCK` draws in each block of a record.
        wide: the scores that are drawn.
        conditionals: the mean of score `j` given the others is the product of row `j` of the first, whose diagonal is
            zero, with the scores; the second are the standard deviations.
        known: the tables of the normal distribution.
        out: the scores, which are replaced.

    """
    rows = lower.shape[1]
    weights, deviations = conditionals
    inverse = 1.0 / deviations
    for draw in range(wide.shape[0]):
        j = wide[draw]
        means = _weighted(weights[j], out, rows)
        for row in range(rows):
            low, high = lower[j, row], upper[j, row]
            if high - low > NARROW:
                share = _share(blocks, draw, row)
                out[j, row] = _drawn(low, high, means[row], deviations[j], inverse[j], share, known)


def conditional(correlation: Floats) -> tuple[Floats, Floats]:
    """The weights and deviations of each score given all others, from the inverse of the correlation matrix."""
    precision = np.linalg.inv(correlation)
    scale = 1.0 / np.diag(precision)
    weights = -precision * scale[:, None]
    np.fill_diagonal(weights, 0.0)
    return weights, np.sqrt(scale)


@njit(cache=True, nogil=True)
def degrade(root: Floats, path: Floats, scores: Floats, shrinkage: float) -> Floats:  # pragma: no cover - compiled
    """`√f·(z + L·W(t))`: scores of a copy, with the distribution of those of the original; one row per score.

    Each sum runs in the order of the scores, so that it is the same on every machine.
    """
    out = scores.copy()
    for j in range(out.shape[0]):
        for k in range(j + 1):
            weight = root[j, k]
            for row in range(out.shape[1]):
                out[j, row] += weight * path[k, row]
        for row in range(out.shape[1]):
            out[j, row] *= shrinkage
    return out
