"""The likelihood ratio that a file was made from one copy rather than from others, with an exact false-alarm rate.

Let `Z_j` be the noise of recipient `j`, and `Z_l`, `Z_r` that of the nearest other copies below and above it on the
path (the original, `Z_0 = 0`, is one of them). Given those, `Z_j` is a Brownian bridge: `Z_j = mean + η`, with
`η ~ N(0, v·K)` independent of the original and of every other copy. A file that was not made from `j`'s copy,
whatever was done to it, depends on the others only, so any weights `a` computed from the file and the others are
independent of `η`, and

    z = Σ a·η / sqrt(v·Σ a'K a)

is exactly standard normal. In a file that was made from `j`'s copy the weights follow `η`, and `z` is large; it is
negative where the copy was subtracted, as in `2·i - j`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats

_DEGREES = 3
"""Degrees of freedom of the Student distribution by which altered cells are weighted down."""

_EXPECTED_Z = 10.0
"""The order of magnitude of `z` in a file that was made from a copy."""


@dataclass(frozen=True)
class Score:
    """The evidence that a file was made from one copy."""

    z: float
    """Standard normal if the file was not made from the copy."""

    @property
    def p_value(self) -> float:
        """The probability of so large a `z`, of either sign, for a copy that the file was not made from."""
        return math.erfc(abs(self.z) / math.sqrt(2))

    @property
    def log_ratio(self) -> float:
        """The decimal logarithm of the likelihood ratio that the file was made from this copy.

        It compares `z ~ N(m, 1)` with `m` normal of scale `_EXPECTED_Z` to `z ~ N(0, 1)`.
        """
        share = _EXPECTED_Z**2 / (1 + _EXPECTED_Z**2)
        return (share * self.z**2 / 2 - math.log1p(_EXPECTED_Z**2) / 2) / math.log(10)


def bridge(times: list[float], j: int) -> tuple[Floats, float]:
    """The weights of the other noises in the conditional mean of the `j`-th, and its conditional variance `v`.

    `times` rise from 0, where the noise is 0; the last has no neighbour above it.
    """
    weights = np.zeros(len(times))
    low, here = times[j - 1], times[j]
    if j + 1 == len(times):
        weights[j - 1] = 1.0
        return weights, here - low
    high = times[j + 1]
    weights[j - 1], weights[j + 1] = (high - here) / (high - low), (here - low) / (high - low)
    return weights, (here - low) * (high - here) / (high - low)


def score(cells: Floats, original: Floats, noise: Floats, times: list[float], j: int, shape: Floats) -> Score:
    """The evidence that the file was made from the copy at `times[j]`.

    Args:
        cells: the file's numbers, `(column, row)`, NaN where there is none.
        original: the same cells of the original.
        noise: the noise of all copies, `(time, column, row)`.
        shape: the covariance `K` of the columns.

    """
    weights, v = bridge(times, j)
    near = [i for i in range(len(times)) if weights[i]]
    increment = noise[j] - sum(weights[i] * noise[i] for i in near)
    residual = cells - original - sum(weights[i] * noise[i] for i in near)
    finite = np.isfinite(residual)
    residual, increment = np.where(finite, residual, 0.0), np.where(finite, increment, 0.0)
    scale = _scales(residual, finite)
    weight = residual / scale**2 / (1 + (residual / scale) ** 2 / _DEGREES)  # outlying cells get little weight
    variance = v * float(np.einsum("ar,ab,br->", weight, shape, weight))
    z = float((weight * increment).sum()) / math.sqrt(variance) if variance > 0 else 0.0
    return Score(z)


def _scales(residual: Floats, finite: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    """A robust scale of each column's residuals: the median absolute deviation, scaled to a standard deviation."""
    typical = [
        np.median(np.abs(line[kept])) * 1.4826 if kept.any() else 1.0
        for line, kept in zip(residual, finite, strict=True)
    ]
    scales: Floats = np.maximum(np.array(typical), 1e-12)[:, None]
    return scales
