"""Counting what lies below a point, from values that carry normal noise.

`1[x ≤ q]` has no unbiased estimate from `y = x + noise`: its high frequencies are drowned. Up to a cut-off `T` they are
not, and for what lies below it

    w(y) = ½ + (1/π)·∫₀ᵀ sin(t·(q-y))/t · window(t/T) · exp(deviation²t²/2) dt

is unbiased (the deconvoluting kernel of Stefanski and Carroll 1990, integrated). Given the table, `E[w]` is the share
of values below `q`, seen through a window of width about `1/T`. The cut-off is put where the error that noise leaves
is `ROUGH` times what such a window does to a uniform distribution, whose corners are as rough as common data get: a
confidence interval from the noise alone then holds.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from sfumato.kernels import Floats

ROUGH = 6.0
_FLAT = 0.8
"""Where the window, flat before, begins to fall off; a sudden end would ring."""
_NODES = 256


def below(gaps: Floats, deviation: float, cutoff: float) -> Floats:
    """`w(y)` as a function of `q - y`."""
    t, weights = _spectrum(cutoff, deviation)
    found: Floats = 0.5 + np.sin(np.multiply.outer(gaps, t)) @ (weights / t) / np.pi
    return found


def peak(gaps: Floats, deviation: float, cutoff: float) -> Floats:
    """Its derivative: the weight of a value in an estimate of the density at `q`."""
    t, weights = _spectrum(cutoff, deviation)
    found: Floats = np.cos(np.multiply.outer(gaps, t)) @ weights / np.pi
    return found


@cache
def blunt() -> float:
    """`T·∫E[w](1-E[w])dq`: how much of a count the window spreads around, for the variance of the estimate."""
    gaps = np.linspace(-400, 400, 80_001)
    seen = below(gaps, 0.0, 1.0)
    return float(np.sum(seen * (1 - seen)) * (gaps[1] - gaps[0]))


@cache
def cutoff(deviation: float, spread: float, rows: int, rough: float = ROUGH) -> float:
    """`T` for noise of that deviation on values of that spread; with less `rough` it is lower, and smooths more."""
    low, high = 0.2 / spread, 200 / spread
    for _ in range(12):
        middle = math.sqrt(low * high)
        if reference_error(deviation, spread, rows, middle) > rough / (math.pi * math.sqrt(3) * (middle * spread) ** 2):
            high = middle
        else:
            low = middle
    return high


def reference_error(deviation: float, spread: float, rows: int, cutoff: float) -> float:
    """The standard error of the share below the median, of a normal distribution."""
    if deviation * cutoff > 20:
        return math.inf
    normal = np.linspace(-5, 5, 201)
    chance = np.exp(-(normal**2) / 2)
    chance /= chance.sum()
    weights = below(normal * math.hypot(spread, deviation), deviation, cutoff)
    noise = chance @ weights**2 - chance @ weights + blunt() * 0.4 / (cutoff * spread)
    return math.sqrt(max(float(noise), 0.0) / max(rows, 1))


def _spectrum(cutoff: float, deviation: float) -> tuple[Floats, Floats]:
    step = cutoff / _NODES
    t = (np.arange(_NODES, dtype=np.float64) + 0.5) * step
    share = np.clip((t / cutoff - _FLAT) / (1 - _FLAT), 0, 1)
    weights: Floats = np.cos(np.pi / 2 * share) ** 2 * np.exp((deviation * t) ** 2 / 2) * step
    return t, weights
