"""Normal scores with NumPy: what `scores` and `bins` do in compiled loops, with the same bits, for small tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.kernels import Floats, Mask, Rows, Words
from sfumato.kernels.compiled import elementwise
from sfumato.kernels.normal import clamped, truncated, truncated_far

FURTHEST = 9.0
"""The end of the first and of the last interval of scores: as good as infinity."""

NARROW = 0.1
"""Scores in intervals up to this width are drawn once: the others have next to no influence on them."""

_STEEPEST = 0.8
"""The largest change of the logarithm of a density over an interval for which it is taken as linear."""

DRAWS_PER_BLOCK = 4
"""A block of 128 random bits serves four draws."""

_TO_UNIT = 1.0 / (1 << 32)


@elementwise(inline="always")
def uniform(words: Any, draw: int) -> Any:
    """Draw number `draw` of records, between 0 and 1, from one half of their random bits."""
    halves = words >> np.uint64(32) if draw & 1 else words & np.uint64(0xFFFFFFFF)
    return (np.float64(np.int64(halves)) + 0.5) * _TO_UNIT


@elementwise(inline="always")
def in_short_interval(low: Any, high: Any, mean: Any, deviation: Any, inverse: Any, share: Any) -> Any:
    """A normal number in a short interval, with a linear density, and whether the interval is short enough.

    It is good up to a few thousandths.
    """
    width = high - low
    steep = ((low + high) * 0.5 - mean) * inverse * inverse * width
    inside = low + width * share * (1.0 - 0.5 * steep * (1.0 - share))
    return inside, (width < deviation) & (abs(steep) < _STEEPEST)


def first_scores(lower: Floats, upper: Floats, blocks: Words, root: Floats, known: Any, out: Floats) -> None:
    """Draw scores one after the other, each given those before it: see `scores.first_scores`."""
    innovations = np.empty_like(lower)
    for j in range(len(lower)):
        means, inverse = _weighted(root[j, :j], innovations), 1.0 / root[j, j]
        out[j] = _drawn(lower[j], upper[j], means, root[j, j], inverse, _shares(blocks, j), known)
        innovations[j] = (out[j] - means) * inverse


def redraw_scores(
    lower: Floats, upper: Floats, blocks: Words, wide: Rows, conditionals: Any, known: Any, out: Floats
) -> None:
    """Draw some scores anew given all others: see `scores.redraw_scores`."""
    weights, deviations = conditionals
    for draw, j in enumerate(wide):
        there = upper[j] - lower[j] > NARROW
        means, shares = _weighted(weights[j], out[:, there]), _shares(blocks, draw)[there]
        ends = lower[j, there], upper[j, there]
        out[j, there] = _drawn(*ends, means, deviations[j], 1.0 / deviations[j], shares, known)


def degrade(root: Floats, path: Floats, scores: Floats, shrinkage: float) -> Floats:
    """`√f·(z + L·W(t))`: see `scores.degrade`."""
    out = scores.copy()
    for j in range(len(out)):
        for k in range(j + 1):
            out[j] += root[j, k] * path[k]
        out[j] *= shrinkage
    return out


def to_cells(
    values: Floats, null: Mask, inverse: float, bins: Any, _: Any, integers: Rows, lower: Floats, upper: Floats
) -> int:
    """The nearest integer within the bins to each value, and the ends of its score: see `bins.to_cells`."""
    low, high, starts, widths = bins
    missing = null if null.size else np.zeros(len(values), np.bool_)
    known = ~missing & (abs(values) < np.inf)
    points = clamped(np.rint(np.where(known, values, 0.0) * inverse), low[0], high[-1])
    bin_ = np.searchsorted(low, points + 0.5) - 1
    after = low[np.minimum(bin_ + 1, len(low) - 1)]
    between = points > high[bin_]
    bin_ += between & ~(points - high[bin_] <= after - points)
    points = np.where(between, np.where(points > high[bin_], high[bin_], low[bin_]), points)
    start = starts[bin_] + widths[bin_] * (points - low[bin_])
    integers[:] = np.where(known, points, low[0])
    lower[:] = np.where(known & (points > low[0]), start, -FURTHEST)
    upper[:] = np.where(known & (points < high[-1]), start + widths[bin_], FURTHEST)
    return int((~known & ~missing).sum())


def from_scores(scores: Floats, ends: Floats, bins: Any, _: Any, out: Rows) -> None:
    """The integer at each score: see `bins.from_scores`."""
    low, high, starts, widths = bins
    bin_ = np.searchsorted(ends, scores)
    points = np.floor((scores - starts[bin_]) * (1.0 / widths)[bin_])
    out[:] = low[bin_] + clamped(points, 0.0, high[bin_] - low[bin_])


def mapped(scores: Floats, before: Floats, after: Floats, _: Any, out: Floats) -> None:
    """A piecewise linear map of scores: see `bins.mapped`."""
    slopes = np.diff(after) / np.diff(before)
    piece = np.clip(np.searchsorted(before, scores) - 1, 0, len(slopes) - 1)
    out[:] = after[piece] + slopes[piece] * (scores - before[piece])


def _drawn(low: Floats, high: Floats, mean: Floats, deviation: float, inverse: float, share: Floats, known: Any) -> Any:
    """A normal number in each interval."""
    drawn, short = in_short_interval(low, high, mean, deviation, inverse, share)
    rest = np.flatnonzero(~short)
    if rest.size:
        low, high, mean, share = low[rest], high[rest], mean[rest], share[rest]
        lower, upper = (low - mean) * inverse, (high - mean) * inverse
        inside, far = truncated(lower, upper, share, known)
        if far.any():
            inside[far] = truncated_far(lower[far], upper[far], share[far])
        drawn[rest] = clamped(mean + deviation * inside, low, high)
    return drawn


def _shares(blocks: Words, draw: int) -> Any:
    """Draw number `draw` of each record from its blocks of random bits."""
    return uniform(blocks[draw >> 2, (draw >> 1) & 1 :: 2], draw)


def _weighted(weights: Floats, lines: Floats) -> Floats:
    """The sum of some lines with weights, in their order, so that it is the same on every machine."""
    total = np.zeros(lines.shape[1])
    for weight, line in zip(weights, lines, strict=False):
        total += weight * line
    return total
