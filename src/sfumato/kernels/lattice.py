"""The rounding lattice: values and noise as integer multiples of one step, a power of two.

A sum of two lattice points is exact, so a copy carries no floating-point residue that reveals the original (Mironov
2012), and as the step is the same at all levels, no copy refines another. `kernels.gaussian_copy` does the same in
compiled code, to the last bit.
"""

from __future__ import annotations

import math

import numpy as np

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


def to_lattice(values: Floats, null: Mask, low: float, high: float, step: float, lattice: Floats, words: Words) -> int:
    """Clip the values and round them to the lattice, also as address words; return how many cannot be represented.

    `null` has one entry per row, or none at all where nothing is null.
    """
    clipped = np.where(values < low, low, np.where(values > high, high, values))
    np.rint(clipped * (1.0 / step), out=lattice)
    fits = np.isfinite(values)
    if null.size:
        lattice[null] = 0.0
        fits |= null
    fits &= np.abs(lattice) <= LARGEST  # false for NaN
    words[:] = np.where(fits, lattice, 0.0).astype(np.int64).view(np.uint64)
    if null.size:
        words[null] = NULL
    return int(np.count_nonzero(~fits))


def add_noise(factor: Floats, path: Floats, lattice: Floats, steps: Floats, out: Floats) -> None:
    """Add correlated noise on the lattice: `Y = X + L·W(t)` with `L·Lᵀ = K_X` (li2012, section 3.1).

    Each row of `lattice` and `out` is one column of the table. `factor` is in lattice steps and has a row per column
    and a column per row of `path`. Each sum runs in the order of the path's rows; where a weight is zero, as in the
    upper half of a triangle, there is nothing to add.
    """
    for j, weights in enumerate(factor):
        noise = np.zeros(path.shape[1])
        for weight, line in zip(weights, path, strict=True):
            if weight != 0.0:
                noise += weight * line
        out[j] = (lattice[j] + np.rint(noise)) * steps[j]
