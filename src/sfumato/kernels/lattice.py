"""The rounding lattice: values and noise as integer multiples of one step, a power of two.

A sum of two lattice points is exact, so a copy carries no floating-point residue that reveals the original (Mironov
2012), and as the step is the same at all levels, no copy refines another.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from sfumato.kernels import NULL, Floats, Mask, Words

FINENESS = 16
"""A fine lattice has between `2^16` and `2^17` steps per standard deviation."""

LARGEST = float(1 << 52)
"""The largest lattice integer; twice as much is still exact in a double."""


def fine_step(spread: float, largest: float) -> float:
    """The lattice step for the standard deviation `spread`; coarser where values as large as `largest` require it."""
    exponent = max(math.frexp(spread)[1] - 1 - FINENESS, math.frexp(largest)[1] - 51, -1022)
    return math.ldexp(1.0, exponent)


def rounding_correlation(step: float, noise: float, increment: float) -> float:
    """The correlation `-step²/(12σσ_D)` that rounding causes between noise of sd `noise` and the next increment."""
    return -(step / noise) * (step / increment) / 12


@njit(cache=True, nogil=True)
def to_lattice(  # pragma: no cover - compiled
    values: Floats, null: Mask, low: float, high: float, step: float, lattice: Floats, words: Words
) -> int:
    """Clip the values and round them to the lattice, also as address words; return how many cannot be represented.

    `null` has one entry per row, or none at all where nothing is null.
    """
    inverse = 1.0 / step
    for row in range(values.shape[0]):
        point = np.rint(min(max(values[row], low), high) * inverse)
        lattice[row] = point
        words[row] = np.uint64(np.int64(point))
    for row in range(null.shape[0]):
        if null[row]:
            lattice[row] = 0.0
            words[row] = NULL
    invalid = 0
    for row in range(values.shape[0]):
        fits = (abs(values[row]) < np.inf) & (abs(lattice[row]) <= LARGEST)  # false for NaN
        invalid += not fits
    if invalid:  # rare; a null does not count
        for row in range(null.shape[0]):
            invalid -= null[row] and not abs(values[row]) < np.inf
    return invalid


@njit(cache=True, nogil=True)
def add_shared_noise(  # pragma: no cover - compiled
    factor: Floats, path: Floats, lattice: Floats, steps: Floats, out: Floats
) -> None:
    """Add noise of several parts on the lattice: `factor` has a row per column and a column per row of `path`."""
    rows = path.shape[1]
    noise = np.empty(rows)
    for j in range(factor.shape[0]):
        noise[:] = 0.0
        for k in range(factor.shape[1]):
            weight = factor[j, k]
            if weight != 0.0:
                for row in range(rows):
                    noise[row] += weight * path[k, row]
        for row in range(rows):
            out[j, row] = (lattice[j, row] + np.rint(noise[row])) * steps[j]


@njit(cache=True, nogil=True)
def add_noise(factor: Floats, path: Floats, lattice: Floats, steps: Floats, out: Floats) -> None:  # pragma: no cover
    """Add correlated noise on the lattice: `Y = X + L·W(t)` with `L·Lᵀ = K_X` (li2012, section 3.1).

    Each row of `path`, `lattice` and `out` is one column of the table. `factor` is lower
    triangular and in lattice steps. Each sum runs in the order of the columns.
    """
    columns, rows = path.shape
    noise = np.empty(rows)
    for j in range(columns):
        noise[:] = 0.0
        k = 0
        while k + 3 <= j:
            a, b, c, d = factor[j, k], factor[j, k + 1], factor[j, k + 2], factor[j, k + 3]
            for row in range(rows):
                part = noise[row] + a * path[k, row]
                part = part + b * path[k + 1, row]
                part = part + c * path[k + 2, row]
                noise[row] = part + d * path[k + 3, row]
            k += 4
        while k <= j:
            a = factor[j, k]
            for row in range(rows):
                noise[row] += a * path[k, row]
            k += 1
        for row in range(rows):
            out[j, row] = (lattice[j, row] + np.rint(noise[row])) * steps[j]
