"""The density of numbers that were seen through normal noise."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats

GRID = 240
"""Points at which a density is known."""
BINS = 960
ITERATIONS = 200


def density(seen: Floats, deviation: float) -> tuple[Floats, Floats]:
    """The density of `x` from `y = x + noise`, by expectation maximisation (Agrawal and Aggarwal 2001).

    Returns:
        Points, and the probability of each.

    """
    counts, middles = _counted(seen)
    low, high = _reach(middles, counts, deviation)
    points = np.linspace(low, high, GRID)
    likely = _kernel(middles, points, deviation)
    weights = np.full(GRID, 1 / GRID)
    total = counts.sum()
    for _ in range(ITERATIONS):
        mixed = likely @ weights
        weights *= likely.T @ (counts / np.maximum(mixed, 1e-300)) / total
        weights /= weights.sum()
    return points, weights


def posterior_mean(points: Floats, weights: Floats, deviation: float, low: float, high: float) -> tuple[Floats, Floats]:
    """`E[x | y]` on a fine grid of `y` from `low` to `high` (huang2005, eq. 4)."""
    grid = np.linspace(low, high, 4 * BINS)
    # Relative to the nearest likely point, so that a `y` far outside still has one.
    exponent = -0.5 * ((grid[:, None] - points[None, :]) / deviation) ** 2 + np.log(np.maximum(weights, 1e-300))
    chance = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return grid, chance @ points / chance.sum(axis=1)


def _counted(seen: Floats) -> tuple[Floats, Floats]:
    counts, edges = np.histogram(seen, BINS)
    return counts.astype(np.float64), (edges[1:] + edges[:-1]) / 2


def _reach(middles: Floats, counts: Floats, deviation: float) -> tuple[float, float]:
    """Where `x` may lie: the range of `y` less what noise adds at both ends, but never less than one deviation."""
    low, high = float(middles[0]), float(middles[-1])
    extreme = deviation * np.sqrt(2 * np.log(max(counts.sum(), 2.0)))
    slack = min(extreme, max((high - low - deviation) / 2, 0.0))
    return low + slack - deviation, high - slack + deviation


def _kernel(seen: Floats, points: Floats, deviation: float) -> Floats:
    likely: Floats = np.exp(-0.5 * ((seen[:, None] - points[None, :]) / deviation) ** 2)
    return likely
