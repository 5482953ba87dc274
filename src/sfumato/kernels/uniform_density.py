"""A uniform density between two ends, fitted to noisy counts on a grid: the initial density of a deconvolution.

A Gaussian mixture is a poor initial density for values with sharp ends, such as the days of a year: the reconstruction
keeps two modes and long tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sfumato.kernels import Floats
from sfumato.kernels.mixture_density import UNIFORM_SHARE, log_likelihood

_CANDIDATES = 32
"""The number of intervals between the candidate positions of either end in the first, coarse search."""


@dataclass(frozen=True)
class UniformDensity:
    """The uniform density between two ends, which are positions on the grid in units of bins."""

    bins: int
    ends: tuple[float, float]

    def probabilities(self) -> Floats:
        """The probability of every bin, with the same small share over all bins as a Gaussian mixture has."""
        return (1 - UNIFORM_SHARE) * self.interval_probabilities() + UNIFORM_SHARE / self.bins

    def log_likelihood(self, channel: Floats, counts: Floats) -> float:
        """The log-likelihood of noisy counts up to a constant."""
        return log_likelihood(channel, counts, self.interval_probabilities())

    def refitted(self, channel: Floats, counts: Floats) -> UniformDensity:
        """The uniform density of greatest likelihood for other counts, searched from the present ends."""
        rows = counts.sum()

        def within_grid(ends: Floats) -> UniformDensity:
            low = float(np.clip(ends[0], 0, self.bins - 0.5))
            return UniformDensity(self.bins, (low, float(np.clip(ends[1], low + 0.5, self.bins))))

        optimum = minimize(
            lambda ends: -within_grid(ends).log_likelihood(channel, counts) / rows,
            np.array(self.ends),
            method="Nelder-Mead",
            options={"xatol": 0.02, "fatol": 0.01 / rows, "maxiter": 200},
        )
        return _widened(channel, counts, within_grid(optimum.x))

    def interval_probabilities(self) -> Floats:
        """The probability of every bin, zero outside the ends."""
        first = np.arange(self.bins)
        covered = np.minimum(first + 1, self.ends[1]) - np.maximum(first, self.ends[0])
        probabilities: Floats = np.maximum(covered, 0) / (self.ends[1] - self.ends[0])
        return probabilities


def fit_uniform(channel: Floats, counts: Floats) -> UniformDensity:
    """The uniform density of greatest likelihood, widened by one standard error of its width.

    Args:
        channel: the channel matrix: the probability of each observed bin (row) given each original bin (column).
        counts: the number of noisy values in each observed bin.

    """
    bins = channel.shape[1]
    candidates = np.unique(np.linspace(0, bins, _CANDIDATES + 1).astype(np.int64))
    cumulative = np.concatenate([np.zeros((len(channel), 1)), np.cumsum(channel, axis=1)], axis=1)[:, candidates]
    low, high = np.triu_indices(len(candidates), k=1)
    observed = (cumulative[:, high] - cumulative[:, low]) / (candidates[high] - candidates[low])
    best = int((counts @ np.log(np.maximum(observed, 1e-300))).argmax())
    ends = float(candidates[low[best]]), float(candidates[high[best]])
    return UniformDensity(bins, ends).refitted(channel, counts)


def _widened(channel: Floats, counts: Floats, density: UniformDensity) -> UniformDensity:
    """The density widened by one standard error, since estimated widths are too small as often as too large."""

    def wider(by: float) -> UniformDensity:
        low, high = density.ends
        return UniformDensity(density.bins, (max(low - by / 2, 0.0), min(high + by / 2, float(density.bins))))

    step = min(1.0, (density.ends[1] - density.ends[0]) / 4)
    less, same, more = (wider(by).log_likelihood(channel, counts) for by in (-step, 0.0, step))
    curvature = (2 * same - less - more) / step**2
    return wider(1 / np.sqrt(curvature)) if curvature > 0 else density
