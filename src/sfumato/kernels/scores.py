"""Normal scores of records with ties: a draw from the Gaussian copula, given the interval of each score.

A value of a column is an interval of its standard normal score, from `Φ⁻¹(F(x-))` to `Φ⁻¹(F(x))`; ties and categories
have wide ones. Scores within the intervals are drawn given the record's other scores, with the copula's correlations
(the rank likelihood of Hoff 2007, section 3): independent draws would weaken the correlations of columns with ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.kernels import Floats, Rows, Words, score_arrays
from sfumato.kernels.compiled import njit
from sfumato.kernels.normal import clamped, truncated, truncated_far
from sfumato.kernels.score_arrays import NARROW, in_short_interval, uniform

_BLOCK_ROWS = 1024
"""Records that are worked on at once: what is drawn of them stays in the fastest cache of a processor."""


@njit(nogil=True, inline="always")
def _drawn(  # pragma: no cover - compiled
    low: float, high: float, mean: float, deviation: float, inverse: float, share: float, known: Any
) -> Any:
    """A normal number in an interval."""
    inside, short = in_short_interval(low, high, mean, deviation, inverse, share)
    if short:
        return inside
    lower, upper = (low - mean) * inverse, (high - mean) * inverse
    inside, far = truncated(lower, upper, share, known)
    if far:
        inside = truncated_far(lower, upper, share)
    return clamped(mean + deviation * inside, low, high)


@njit(nogil=True)
def _draw_line(  # pragma: no cover - compiled
    ends: Any, means: Floats, deviation: float, shares: Floats, known: Any, room: Any, out: Floats
) -> None:
    """Draw one score of some records: all as if each interval were short, then again those whose interval is long.

    A draw in a long interval costs ten times as much. Loops without branches let a processor work on several records at
    once. `shares` is overwritten, and `out` must not be one of the ends.
    """
    (lower, upper), (late, low, high, share, far), inverse = ends, room, 1.0 / deviation
    for row in range(out.shape[0]):
        inside, short = in_short_interval(lower[row], upper[row], means[row], deviation, inverse, shares[row])
        out[row] = inside
        far[row] = not short
    found = np.uint64(0)
    for row in range(out.shape[0]):
        late[found] = row
        found += np.uint64(far[row])
    count = np.int64(found)
    for k in range(count):
        row = late[k]
        low[k], high[k] = (lower[row] - means[row]) * inverse, (upper[row] - means[row]) * inverse
        share[k] = shares[row]
    for k in range(count):
        shares[k], far[k] = truncated(low[k], high[k], share[k], known)
    for k in range(count):
        row = late[k]
        inside = truncated_far(low[k], high[k], share[k]) if far[k] else shares[k]
        out[row] = clamped(means[row] + deviation * inside, lower[row], upper[row])


@njit(cache=True, nogil=True, arrays=score_arrays.first_scores)
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
    innovations, shares, far = np.empty((scores, _BLOCK_ROWS)), np.empty(_BLOCK_ROWS), np.empty(_BLOCK_ROWS, np.bool_)
    room = (np.empty(_BLOCK_ROWS, np.int64), np.empty(_BLOCK_ROWS), np.empty(_BLOCK_ROWS), np.empty(_BLOCK_ROWS), far)
    for start in range(0, rows, _BLOCK_ROWS):
        end = min(start + _BLOCK_ROWS, rows)
        for j in range(scores):
            means, deviation, drawn = _weighted(root[j, :j], innovations, end - start), root[j, j], out[j, start:end]
            bits = blocks[j >> 2, 2 * start : 2 * end]
            for row in range(end - start):
                shares[row] = uniform(bits[2 * row + ((j >> 1) & 1)], j)
            _draw_line((lower[j, start:end], upper[j, start:end]), means, deviation, shares, known, room, drawn)
            inverse = 1.0 / deviation
            for row in range(end - start):
                innovations[j, row] = (drawn[row] - means[row]) * inverse


@njit(nogil=True)
def _weighted(weights: Floats, lines: Floats, rows: int) -> Floats:  # pragma: no cover - compiled
    """The sum of some lines with weights, in their order, so that it is the same on every machine."""
    total = np.zeros(rows)
    for k in range(weights.shape[0]):
        for row in range(rows):
            total[row] += weights[k] * lines[k, row]
    return total


@njit(cache=True, nogil=True, arrays=score_arrays.redraw_scores)
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
                share = uniform(blocks[draw >> 2, 2 * row + ((draw >> 1) & 1)], draw)
                out[j, row] = _drawn(low, high, means[row], deviations[j], inverse[j], share, known)


def conditional(correlation: Floats) -> tuple[Floats, Floats]:
    """The weights and deviations of each score given all others, from the inverse of the correlation matrix."""
    precision = np.linalg.inv(correlation)
    scale = 1.0 / np.diag(precision)
    weights = -precision * scale[:, None]
    np.fill_diagonal(weights, 0.0)
    return weights, np.sqrt(scale)


@njit(cache=True, nogil=True, arrays=score_arrays.degrade)
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
