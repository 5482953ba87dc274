"""Exact means and covariances, which depend neither on the order nor on the partition of the rows.

Values are rounded to `2^22` steps of their column's range and centred. Products of such integers, summed over at most
`2^11` rows, stay below `2^53`: a matrix product in doubles computes them without rounding, in any order of summation,
and sums over blocks are integers of arbitrary size. As a standard deviation is at least `range/√(2n)`, even a column
whose range is determined by one outlier loses less than `1e-5` of its variance at `n = 10^9` rows.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.kernels import Floats, Mask

BLOCK = 1 << 11
_BITS = 21  # of magnitude, on either side of the centre

Integers = npt.NDArray[np.object_]


def resolution(low: float, high: float) -> float:
    """The rounding step of a column that spans `low` to `high`: a power of two."""
    half = max(high / 2 - low / 2, math.ulp(max(abs(low), abs(high))))
    return math.ldexp(1.0, max(math.frexp(half)[1] - _BITS, -1022))


def to_integers(values: Floats, null: Mask, low: float, high: float) -> Floats:
    """Values between `low` and `high` as integer numbers of rounding steps from the centre; 0 where null."""
    step = resolution(low, high)
    integers = np.rint(values * (1 / step))
    integers -= np.rint((low / 2 + high / 2) / step)
    return np.where(null, 0.0, integers) if null.size else integers


def cross_products(columns: Floats) -> Integers:
    """The exact cross-product matrix `C·Cᵀ` of integers below `2^21` in magnitude; each row of `C` is a column."""
    count = columns.shape[0]
    total: Integers = np.zeros((count, count), dtype=object)
    for start in range(0, columns.shape[1], BLOCK):
        part = columns[:, start : start + BLOCK]
        total += (part @ part.T).astype(np.int64)
    return total


def means(sums: Integers, ranges: list[tuple[float, float]]) -> list[float]:
    """The means of columns with the given ranges, from the sums that `covariance` takes; 0 for a column of nulls."""
    count, out = len(ranges), []
    for i, (low, high) in enumerate(ranges):
        step, present = resolution(low, high), sums[count + i, count + i]
        centre = float(np.rint((low / 2 + high / 2) / step))
        out.append((sums[i, count + i] / present + centre) * step if present else 0.0)
    return out


def covariance(sums: Integers, resolutions: list[float]) -> Floats:
    """The sample covariance matrix of `N` columns, from the cross products of their values and presence indicators.

    `sums` is `2N x 2N`: `N` columns of values (0 where null), then `N` presence indicators (1 or 0). Each pair of
    columns uses the rows in which both are present. A pair with fewer than two such rows has covariance 0.
    """
    count = len(resolutions)
    out = np.zeros((count, count))
    for i in range(count):
        for j in range(i + 1):
            both = sums[count + i, count + j]
            if both < 2:
                continue
            # Σxy - Σx·Σy/n over n-1, as one exact fraction
            numerator = both * sums[i, j] - sums[i, count + j] * sums[j, count + i]
            out[i, j] = out[j, i] = (numerator / (both * (both - 1))) * resolutions[i] * resolutions[j]
    return out
