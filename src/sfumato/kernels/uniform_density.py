"""A plateau: values that are equally likely between two ends, as noisy counts show them, on a grid of bins.

MixtureDensity are a poor start for what ends sharply, such as the days of a year: they leave two tops and long tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sfumato.kernels import Floats
from sfumato.kernels.mixture_density import FLAT, likelihood

_TRIED = 32
"""Places at which either end is tried, before the best pair is moved to where it is likeliest."""


@dataclass(frozen=True)
class UniformDensity:
    """Between two ends, counted in bins from the first one's beginning."""

    bins: int
    ends: tuple[float, float]

    def chances(self) -> Floats:
        """Of every bin; as with humps, a small share is spread over all."""
        return (1 - FLAT) * self._level() + FLAT / self.bins

    def likelihood(self, channel: Floats, counts: Floats) -> float:
        """The logarithm of that of noisy counts."""
        return likelihood(channel, counts, self._level())

    def _level(self) -> Floats:
        first = np.arange(self.bins)
        within = np.minimum(first + 1, self.ends[1]) - np.maximum(first, self.ends[0])
        level: Floats = np.maximum(within, 0) / (self.ends[1] - self.ends[0])
        return level


def flattest(channel: Floats, counts: Floats) -> UniformDensity:
    """The likeliest plateau.

    Args:
        channel: the chance of each bin of the counts, a row, for a value of each bin of the original, a column.
        counts: of noisy values.

    """
    bins = channel.shape[1]
    tried = np.unique(np.linspace(0, bins, _TRIED + 1).astype(np.int64))
    below = np.concatenate([np.zeros((len(channel), 1)), np.cumsum(channel, axis=1)], axis=1)[:, tried]
    low, high = np.triu_indices(len(tried), k=1)
    seen = (below[:, high] - below[:, low]) / (tried[high] - tried[low])
    best = int((counts @ np.log(np.maximum(seen, 1e-300))).argmax())
    return moved(channel, counts, UniformDensity(bins, (float(tried[low[best]]), float(tried[high[best]]))))


def moved(channel: Floats, counts: Floats, plateau: UniformDensity) -> UniformDensity:
    """The likeliest near one, for other counts perhaps."""
    rows = counts.sum()

    def within(ends: Floats) -> UniformDensity:
        low = float(np.clip(ends[0], 0, plateau.bins - 0.5))
        return UniformDensity(plateau.bins, (low, float(np.clip(ends[1], low + 0.5, plateau.bins))))

    found = minimize(
        lambda ends: -within(ends).likelihood(channel, counts) / rows,
        np.array(plateau.ends),
        method="Nelder-Mead",
        options={"xatol": 0.02, "fatol": 0.01 / rows, "maxiter": 200},
    )
    return _widened(channel, counts, within(found.x))


def _widened(channel: Floats, counts: Floats, plateau: UniformDensity) -> UniformDensity:
    """Wider by a standard error, as humps are: noise makes up what is too narrow as often as too wide."""

    def wider(by: float) -> UniformDensity:
        low, high = plateau.ends
        return UniformDensity(plateau.bins, (max(low - by / 2, 0.0), min(high + by / 2, float(plateau.bins))))

    step = min(1.0, (plateau.ends[1] - plateau.ends[0]) / 4)
    less, same, more = (wider(by).likelihood(channel, counts) for by in (-step, 0.0, step))
    bent = (2 * same - less - more) / step**2
    return wider(1 / np.sqrt(bent)) if bent > 0 else plateau
