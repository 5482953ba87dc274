"""The posterior mean of one column behind Gaussian noise, under its deconvolved density."""

from __future__ import annotations

import math

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.reconstruction import Grid, NoiseChannel, reconstruct

SUPPORT_POINTS = 240
"""The least number of points that carry a deconvolved density."""
_MOST_SUPPORT_POINTS = 960
_POINTS_PER_DEVIATION = 8
"""The density of support points that noise can resolve, where the range allows it."""
_TABLE_POINTS = 3840
"""The number of observed values at which a posterior mean is tabulated."""
_ITERATIONS = 200


def deconvolved_density(observed: Floats, deviation: float) -> tuple[Floats, Floats]:
    """The density of `x` from `y = x + noise`, by EM from a uniform density (Agrawal and Aggarwal 2001).

    It is not smoothed: an attacker averages over the density, which hides its sampling error.

    Returns:
        The support points, and the probability of each.

    """
    low, high = _support(observed, deviation)
    resolved = math.ceil(min(_POINTS_PER_DEVIATION * (high - low) / deviation, _MOST_SUPPORT_POINTS))
    bins = max(resolved, SUPPORT_POINTS)
    grid = Grid(np.array([low]), np.array([high]), (bins,), np.array([[deviation**2]]), np.array([high - low]))
    counts = grid.histogram(observed[:, None])
    probabilities, _ = reconstruct(NoiseChannel(grid, smoothing=0.0), counts, _ITERATIONS)
    return grid.centres(0), probabilities


def posterior_mean(
    points: Floats, probabilities: Floats, deviation: float, low: float, high: float
) -> tuple[Floats, Floats]:
    """A table of `E[x | y]` at equidistant `y` from `low` to `high` (huang2005, eq. 4)."""
    observed = np.linspace(low, high, _TABLE_POINTS)
    # Relative to the point of greatest posterior, so that a `y` far outside the support does not underflow.
    log_posterior = -0.5 * ((observed[:, None] - points[None, :]) / deviation) ** 2
    log_posterior += np.log(np.maximum(probabilities, 1e-300))
    posterior = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    return observed, posterior @ points / posterior.sum(axis=1)


def _support(observed: Floats, deviation: float) -> tuple[float, float]:
    """The range of `x`: the range of `y` less what noise adds at both ends, but at least about one deviation wide."""
    low, high = float(observed.min()), float(observed.max())
    extreme = deviation * np.sqrt(2 * np.log(max(len(observed), 2)))
    slack = min(extreme, max((high - low - deviation) / 2, 0.0))
    return low + slack - deviation, high - slack + deviation
