"""Evidence: whether a file was made from one copy rather than from the others, with an exact error rate.

Let `Z_j` be the noise of recipient `j`, and `Z_l`, `Z_r` that of the nearest other copies below and above it on the
path (the original, `Z_0 = 0`, is one of them). Given those, `Z_j` is a Brownian bridge: `Z_j = mean + η`, with
`η ~ N(0, v·K)` independent of the original and of every other copy. A file that was not made from `j`'s copy,
whatever was done to it, depends on the others only, so any weights `a` computed from the file and the others are
independent of `η`, and

    z = Σ a·η / sqrt(v·Σ a'K a)

is exactly standard normal. In a file that was made from `j`'s copy the weights follow `η`, and `z` is large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats

_DEGREES = 3
"""Of the Student distribution by which altered cells are told from rounded ones."""


_STRENGTH = 10.0
"""How large `z` is expected to be in a file that was made from a copy, by order of magnitude."""


@dataclass(frozen=True)
class Score:
    """How much speaks for one copy."""

    z: float
    """Standard normal if the file was not made from it."""

    @property
    def chance(self) -> float:
        """The probability of so high a `z` for somebody innocent."""
        return 0.5 * math.erfc(self.z / math.sqrt(2))

    @property
    def log_ratio(self) -> float:
        """The decimal logarithm of the likelihood ratio: made from this copy, against not.

        Of `z ~ N(m, 1)` with `m > 0` half normal of size `_STRENGTH`, against `z ~ N(0, 1)`.
        """
        share = _STRENGTH**2 / (1 + _STRENGTH**2)
        upward = max(math.erfc(-self.z * math.sqrt(share / 2)), 1e-300)
        return (share * self.z**2 / 2 - math.log1p(_STRENGTH**2) / 2 + math.log(upward)) / math.log(10)


def bridge(times: list[float], j: int) -> tuple[Floats, float]:
    """The weights of the other noises in the mean of the `j`-th, and the variance `v` that they leave.

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
    """How much speaks for the file having been made from the copy at `times[j]`.

    Args:
        cells: the file's numbers, `(column, row)`, NaN where there is none.
        original: the same cells of the original.
        noise: of all copies, `(time, column, row)`.
        shape: the columns' covariance `K`.

    """
    weights, v = bridge(times, j)
    near = [i for i in range(len(times)) if weights[i]]
    fresh = noise[j] - sum(weights[i] * noise[i] for i in near)
    rest = cells - original - sum(weights[i] * noise[i] for i in near)
    there = np.isfinite(rest)
    rest, fresh = np.where(there, rest, 0.0), np.where(there, fresh, 0.0)
    size = _sizes(rest, there)
    pull = rest / size**2 / (1 + (rest / size) ** 2 / _DEGREES)  # a cell that is far off counts for little
    spread = v * float(np.einsum("ar,ab,br->", pull, shape, pull))
    z = float((pull * fresh).sum()) / math.sqrt(spread) if spread > 0 else 0.0
    return Score(z)


def _sizes(rest: Floats, there: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    """The typical size of each column's residuals, unmoved by a minority of altered cells."""
    typical = [
        np.median(np.abs(line[kept])) * 1.4826 if kept.any() else 1.0 for line, kept in zip(rest, there, strict=True)
    ]
    sizes: Floats = np.maximum(np.array(typical), 1e-12)[:, None]
    return sizes
