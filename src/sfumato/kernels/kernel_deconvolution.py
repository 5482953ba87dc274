"""The deconvoluting kernel: estimates of the distribution function and the density from values with Gaussian noise.

`1[x ≤ q]` has no unbiased estimate from `y = x + noise`, since the noise suppresses its high frequencies. Below a
cut-off frequency `T` it does not, and for the part below `T`

    w(y) = ½ + (1/π)·∫₀ᵀ sin(t·(q-y))/t · window(t/T) · exp(deviation²t²/2) dt

is unbiased (the deconvoluting kernel of Stefanski and Carroll 1990, integrated). Given the table, `E[w]` is the share
of values below `q`, smoothed by a window of width about `1/T`. The cut-off is chosen so that the standard error due to
noise is `ROUGHNESS` times the smoothing bias for a uniform distribution.

Data may be rougher than that: a spike, whole numbers, or the bulk of a heavy-tailed column can lie within one window,
and no estimate tells on which side of `q`. But the share of values below `q` is at least the smoothed share at a
distance `resolution` below it, and at most that above it; between the smallest and the largest estimate within that
distance, a confidence interval has its coverage for any distribution.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from sfumato.kernels import Floats

ROUGHNESS = 6.0
_HALF_WINDOW = 1.25 * math.pi
"""Half the width of the smoothing window, ringing included, times the cut-off frequency."""
_FLAT_SHARE = 0.8
"""The share of frequencies at which the window is 1; beyond it tapers, as an abrupt end would cause ringing."""
_NODES = 256


def cdf_weights(gaps: Floats, deviation: float, cutoff: float) -> Floats:
    """The weight `w(y)` of a value in the estimate of the distribution function at `q`, by the gap `q - y`."""
    t, weights = _spectrum(cutoff, deviation)
    result: Floats = 0.5 + np.sin(np.multiply.outer(gaps, t)) @ (weights / t) / np.pi
    return result


def density_weights(gaps: Floats, deviation: float, cutoff: float) -> Floats:
    """The derivative of `w`: the weight of a value in the estimate of the density at `q`, by the gap `q - y`."""
    t, weights = _spectrum(cutoff, deviation)
    result: Floats = np.cos(np.multiply.outer(gaps, t)) @ weights / np.pi
    return result


@cache
def smoothing_constant() -> float:
    """The constant `T·∫E[w](1-E[w])dq`, by which smoothing by the window enters the variance of the estimate."""
    gaps = np.linspace(-400, 400, 80_001)
    smoothed = cdf_weights(gaps, 0.0, 1.0)
    return float(np.sum(smoothed * (1 - smoothed)) * (gaps[1] - gaps[0]))


@cache
def cutoff_frequency(deviation: float, spread: float, rows: int, roughness: float = ROUGHNESS) -> float:
    """The cut-off frequency `T` for a noise deviation and the standard deviation `spread` of the values.

    A smaller `roughness` gives a lower cut-off, which smooths more.
    """
    low, high = 0.2 / spread, 200 / spread
    for _ in range(12):
        middle = math.sqrt(low * high)
        bias = roughness / (math.pi * math.sqrt(3) * (middle * spread) ** 2)
        if reference_standard_error(deviation, spread, rows, middle) > bias:
            high = middle
        else:
            low = middle
    return high


def resolution(cutoff: float) -> float:
    """The distance beyond which an estimate with this cut-off frequency distinguishes values."""
    return _HALF_WINDOW / cutoff


def reference_standard_error(deviation: float, spread: float, rows: int, cutoff: float) -> float:
    """The standard error of the estimated distribution function at the median of a normal distribution."""
    if deviation * cutoff > 20:
        return math.inf
    normal = np.linspace(-5, 5, 201)
    probabilities = np.exp(-(normal**2) / 2)
    probabilities /= probabilities.sum()
    weights = cdf_weights(normal * math.hypot(spread, deviation), deviation, cutoff)
    smoothing = smoothing_constant() * 0.4 / (cutoff * spread)
    variance = probabilities @ weights**2 - probabilities @ weights + smoothing
    return math.sqrt(max(float(variance), 0.0) / max(rows, 1))


def _spectrum(cutoff: float, deviation: float) -> tuple[Floats, Floats]:
    """The frequencies of the quadrature, and the weight of each: window, inverse noise spectrum and step."""
    step = cutoff / _NODES
    t = (np.arange(_NODES, dtype=np.float64) + 0.5) * step
    taper = np.clip((t / cutoff - _FLAT_SHARE) / (1 - _FLAT_SHARE), 0, 1)
    weights: Floats = np.cos(np.pi / 2 * taper) ** 2 * np.exp((deviation * t) ** 2 / 2) * step
    return t, weights
