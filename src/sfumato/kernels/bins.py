"""Bins of a margin: integers to intervals of scores, and scores to integers, by a guide to the bin of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.kernels import Floats, Mask, Rows, score_arrays
from sfumato.kernels.compiled import njit
from sfumato.kernels.score_arrays import FURTHEST

_CELLS = 4096
"""The number of cells of a guide: in each, the first bin that it may belong to is known."""

_ROUNDING = 1e-6
"""More than the rounding of a position in a guide, in cells, so that the cell found never lies beyond a value."""


def guide(ends: Floats) -> tuple[Rows, float, float]:
    """For equal cells from the first to the last of some ends in order: how many ends lie below each cell.

    Returns:
        The counts, the start of the first cell, and the number of cells per unit.

    """
    if len(ends) == 0:
        return np.zeros(1, np.int64), 0.0, 0.0
    first, last = float(ends[0]), float(ends[-1])
    scale = _CELLS / (last - first) if last > first else 0.0
    starts = first + np.arange(_CELLS) / scale if scale else np.array([first])
    return np.searchsorted(ends, starts, side="left").astype(np.int64), first, scale


@njit(nogil=True, inline="always")
def _below(ends: Floats, counts: Rows, origin: float, scale: float, value: float) -> Any:  # pragma: no cover - compiled
    """How many ends are less than a value."""
    cell = (value - origin) * scale - _ROUNDING
    found = counts[int(min(max(cell, 0.0), counts.shape[0] - 1.0))]
    while found < ends.shape[0] and ends[found] < value:
        found += 1
    return found


@njit(cache=True, nogil=True, arrays=score_arrays.to_cells)
def to_cells(  # pragma: no cover - compiled
    values: Floats, null: Mask, inverse: float, bins: Any, table: Any, integers: Rows, lower: Floats, upper: Floats
) -> int:
    """The nearest integer within the bins to each value divided by the step, and the ends of its score.

    Args:
        values: numbers, arbitrary where null.
        null: one entry per row, or none at all where nothing is null; all scores are possible for a null.
        inverse: the number of steps in a unit.
        bins: the first and last integer of each bin, the score at which it starts, and the width of an integer.
        table: the guide to the first integers.
        integers: the result.
        lower: the lower end of each score.
        upper: the upper end.

    Returns:
        How many values are not finite.

    """
    low, high, starts, widths = bins
    counts, origin, scale = table
    unusable = 0
    for row in range(values.shape[0]):
        value = values[row]
        missing = null.shape[0] > 0 and null[row]
        if missing or not abs(value) < np.inf:
            unusable += not missing
            integers[row], lower[row], upper[row] = np.int64(low[0]), -FURTHEST, FURTHEST
            continue
        point = min(max(np.rint(value * inverse), low[0]), high[-1])
        bin_ = _below(low, counts, origin, scale, point + 0.5) - 1
        if point > high[bin_]:  # between two bins
            bin_ += not point - high[bin_] <= low[bin_ + 1] - point
            point = high[bin_] if point > high[bin_] else low[bin_]
        integers[row] = np.int64(point)
        start = starts[bin_] + widths[bin_] * (point - low[bin_])
        lower[row] = start if point > low[0] else -FURTHEST
        upper[row] = start + widths[bin_] if point < high[-1] else FURTHEST
    return unusable


@njit(cache=True, nogil=True, arrays=score_arrays.from_scores)
def from_scores(  # pragma: no cover - compiled
    scores: Floats, ends: Floats, bins: Any, table: Any, out: Rows
) -> None:
    """The integer at each score; `table` is the guide to the ends of bins but the last."""
    low, high, starts, widths = bins
    counts, origin, scale = table
    inverse = 1.0 / widths
    for row in range(scores.shape[0]):
        score = scores[row]
        bin_ = _below(ends, counts, origin, scale, score)
        point = np.floor((score - starts[bin_]) * inverse[bin_])
        out[row] = np.int64(low[bin_] + min(max(point, 0.0), high[bin_] - low[bin_]))


@njit(cache=True, nogil=True, arrays=score_arrays.mapped)
def mapped(  # pragma: no cover - compiled
    scores: Floats, before: Floats, after: Floats, table: Any, out: Floats
) -> None:
    """A piecewise linear map of scores; `table` is the guide to where it bends."""
    counts, origin, scale = table
    last, slopes = before.shape[0] - 2, np.empty(before.shape[0] - 1)
    for piece in range(last + 1):  # a loop: numba takes five seconds to compile `np.diff`
        slopes[piece] = (after[piece + 1] - after[piece]) / (before[piece + 1] - before[piece])
    for row in range(scores.shape[0]):
        piece = min(max(_below(before, counts, origin, scale, scores[row]) - 1, 0), last)
        out[row] = after[piece] + slopes[piece] * (scores[row] - before[piece])
