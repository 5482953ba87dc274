"""Atoms in the margin of a noisy column: whole numbers, spikes and bounds, which a normal mixture does not show.

The margin is deconvolved on a grid by maximum likelihood, without smoothing: its limit has atoms where the data have
them. Its ratio to the margin of a mixture then corrects the posterior under that mixture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from sfumato.kernels import Floats
from sfumato.kernels.category_draws import draw_codes
from sfumato.kernels.latent_class import NumberPosterior

_FINEST = 6
"""Points of the grid per noise standard deviation, unless the column has a coarser lattice of its own."""
_MOST_POINTS = 400
_ITERATIONS = 200
_LEAST_GAIN = 0.002
"""How much more likely held-out values must be under the deconvolved margin than under that of the mixture."""
_LARGEST_RATIO = 1e3
_REACH = 4.0
_CHUNK = 1 << 12
_NEGLIGIBLE = 0.01
"""Classes less probable than this are left out of a record's posterior."""


@dataclass(frozen=True)
class Atoms:
    """The points of a grid, and how much more probable each is than a normal mixture has it."""

    points: Floats
    ratios: Floats
    width: float
    """The variance of an original value around its point: none on a lattice."""

    def posterior_mean(self, posterior: NumberPosterior, column: int) -> Floats:
        """The posterior mean of one column."""
        responsibilities = posterior.responsibilities
        total, first = np.zeros(len(responsibilities)), np.zeros(len(responsibilities))
        spacing = self.points[1] - self.points[0]
        for k in range(responsibilities.shape[1]):
            rows = np.flatnonzero(responsibilities[:, k] > _NEGLIGIBLE)
            if not len(rows):
                continue
            deviation = np.sqrt(posterior.variances[k, column] + self.width)
            means = posterior.means[k, rows, column]
            reach = int(np.ceil(_REACH * deviation / spacing)) + 1
            nearest = np.rint((means - self.points[0]) / spacing).astype(np.int64)
            offsets = np.arange(-reach, reach + 1)
            indices = nearest[:, None] + offsets
            inside = (indices >= 0) & (indices < len(self.points))
            at = self.points[0] + spacing * indices
            exponent = -0.5 * ((at - means[:, None]) / deviation) ** 2
            weights = np.where(inside, self.ratios[indices.clip(0, len(self.points) - 1)], 0.0) * np.exp(exponent)
            weights *= (responsibilities[rows, k] / deviation)[:, None]
            total[rows] += weights.sum(axis=1)
            first[rows] += (weights * at).sum(axis=1)
        plain = np.einsum("rc,cr->r", responsibilities, posterior.means[:, :, column])
        found: Floats = np.where(total > 1e-12, first / np.maximum(total, 1e-300), plain)
        return found

    def draw(self, means: Floats, variance: float, rng: np.random.Generator) -> Floats:
        """One draw for each record of a class, whose posterior without atoms is normal."""
        drawn = np.empty(len(means))
        weights = np.log(np.maximum(self.ratios, 1e-12))
        spacing = self.points[1] - self.points[0]
        for start in range(0, len(means), _CHUNK):
            some = slice(start, start + _CHUNK)
            logs = weights - 0.5 * (self.points - means[some, None]) ** 2 / (variance + self.width)
            drawn[some] = self.points[draw_codes(np.exp(logs - logs.max(axis=1, keepdims=True)), rng.random(len(logs)))]
        within = spacing * (rng.random(len(means)) - 0.5)
        return drawn + within if self.width else drawn


def find_atoms(
    shown: Floats, deviation: float, step: float, weights: Floats, means: Floats, variances: Floats
) -> Atoms | None:
    """The atoms of a column, if its noisy values are more likely with them than under the margin of a mixture.

    Args:
        shown: noisy values, none of them missing.
        deviation: the standard deviation of their noise.
        step: the lattice that the original lies on, if it is coarse.
        weights: the weight of each component of the mixture, followed by the mean and variance of each.
        means: the means of the components.
        variances: the variances of the components.

    """
    if deviation <= 0 or len(shown) < 50:
        return None
    training, test = shown[np.arange(len(shown)) % 5 > 0], shown[::5]
    low, high = training.min(), training.max()
    on_lattice = step > deviation / _FINEST
    spacing = step if on_lattice else deviation / _FINEST
    first, last = np.floor(low / spacing), np.ceil(high / spacing)
    if not 1 <= last - first <= _MOST_POINTS * (1 if on_lattice else 2):
        return None
    points = spacing * np.arange(first, last + 1)
    width = 0.0 if on_lattice else spacing**2 / 12
    margin = _deconvolved(training, points, np.sqrt(deviation**2 + width))
    if (
        _log_likelihood(test, points, margin, deviation)
        < _mixture_likelihood(test, weights, means, variances, deviation) + _LEAST_GAIN
    ):
        return None
    edges = np.append(points - spacing / 2, points[-1] + spacing / 2)
    cumulative = ndtr((edges[:, None] - means) / np.sqrt(variances)) @ weights
    smooth = np.maximum(np.diff(cumulative), 1e-12)
    return Atoms(points, np.minimum(margin / smooth, _LARGEST_RATIO), width)


def _deconvolved(shown: Floats, points: Floats, deviation: float) -> Floats:
    """The maximum-likelihood probabilities of the points, by EM on a histogram of the noisy values."""
    edges = np.arange(shown.min(), shown.max() + deviation / 4, deviation / 4)
    counts = np.histogram(shown, np.append(edges, edges[-1] + deviation / 4))[0].astype(np.float64)
    channel = np.exp(-0.5 * ((edges[:, None] + deviation / 8 - points) / deviation) ** 2)
    probabilities = np.full(len(points), 1 / len(points))
    for _ in range(_ITERATIONS):
        fitted = np.maximum(channel @ probabilities, 1e-300)
        probabilities = probabilities * (channel.T @ (counts / fitted))
        probabilities /= probabilities.sum()
    return probabilities


def _log_likelihood(shown: Floats, points: Floats, probabilities: Floats, deviation: float) -> float:
    kept = probabilities > 1e-7
    density = np.exp(-0.5 * ((shown[:, None] - points[kept]) / deviation) ** 2) @ probabilities[kept] / deviation
    return float(np.log(np.maximum(density, 1e-30)).mean())


def _mixture_likelihood(shown: Floats, weights: Floats, means: Floats, variances: Floats, deviation: float) -> float:
    spread = np.sqrt(variances + deviation**2)
    density = (np.exp(-0.5 * ((shown[:, None] - means) / spread) ** 2) / spread) @ weights
    return float(np.log(np.maximum(density, 1e-30)).mean())
