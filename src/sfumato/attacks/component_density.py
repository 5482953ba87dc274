"""Component-density attack: independent components behind the noise, such as the payments that make up balances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._parameters import require_at_least
from sfumato.attacks._single_copy import Filter, NoisyCopy, SingleCopyAttack
from sfumato.attacks.evidence.statistics import subsample
from sfumato.kernels import Floats
from sfumato.kernels.deconvolution import deconvolved_density, posterior_mean

_ROWS = 4000
"""The most records by which the rotation is found."""

_CONVERGED = 1e-4
"""The rotation is found when no component rotates by more."""

_LEAST_VARIANCE = 1e-6
"""Directions in which what is shown varies less, where noise varies by 1, are constant."""


@dataclass(frozen=True, kw_only=True)
class ComponentDensity(SingleCopyAttack):
    """The posterior mean of independent components, each under its own density, and of the columns that they make up.

    In units of the noise every rotation leaves the noise independent, so that a rotation in which the originals are
    independent, too, makes one problem of many columns into as many problems of one.
    """

    reference = "FastICA (Hyvärinen 1999) behind whitened noise, and huang2005, section 4.2, along its components"
    cost = 1.2
    unit_tolerance = 0.05  # clusters of components that are nearly normal rotate freely
    iterations: int = 60
    """The most iterations for the rotation."""

    def __post_init__(self) -> None:
        require_at_least("iterations", self.iterations, 1)

    def fit_filter(self, copy: NoisyCopy) -> Filter:
        """Find the components, and tabulate the posterior mean of each."""
        mean = copy.training.mean(axis=0)
        colour = np.linalg.cholesky(copy.noise)
        white = np.linalg.inv(colour).T
        whitened = (subsample(copy.training, copy.knowledge) - mean) @ white
        rotation = _rotation(whitened[:: max(len(whitened) // _ROWS, 1)], self.iterations)
        tables = [_posterior_table(values) for values in (whitened @ rotation.T).T]

        def denoise(values: Floats) -> Floats:
            components = ((values - mean) @ white @ rotation.T).T
            found = [np.interp(line, *table) for line, table in zip(components, tables, strict=True)]
            estimates: Floats = np.column_stack(found) @ rotation @ colour.T + mean
            return estimates

        return denoise


def _rotation(whitened: Floats, iterations: int) -> Floats:
    """The rotation whose components are the least normal, by FastICA where records vary.

    It is written out, since scikit-learn's warns where components are normal and nothing converges, and warnings
    cannot be ignored in one thread alone.
    """
    variances, axes = np.linalg.eigh(np.atleast_2d(np.cov(whitened.T)))
    varies = variances > _LEAST_VARIANCE
    scaled = (whitened @ axes[:, varies]) / np.sqrt(variances[varies])
    unmixing = np.eye(scaled.shape[1])
    for _ in range(iterations if unmixing.size else 0):
        bent = np.tanh(scaled @ unmixing.T)
        before, slope = unmixing, (1 - bent**2).mean(axis=0)
        unmixing = _nearest_rotation(bent.T @ scaled / len(scaled) - slope[:, None] * unmixing)
        if np.abs(np.abs(np.einsum("ij,ij->i", unmixing, before)) - 1).max() < _CONVERGED:
            break
    found = unmixing / np.sqrt(variances[varies])
    nearest = _nearest_rotation(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300))
    rotation: Floats = np.vstack([nearest @ axes[:, varies].T, axes[:, ~varies].T])
    return rotation


def _nearest_rotation(matrix: Floats) -> Floats:
    left, _, right = np.linalg.svd(matrix)
    rotation: Floats = left @ right
    return rotation


def _posterior_table(values: Floats) -> tuple[Floats, Floats]:
    """Noisy values of one component, whose noise has variance 1, and the posterior mean at each."""
    if values.var() <= _LEAST_VARIANCE:
        return np.zeros(2), np.full(2, values.mean())
    points, weights = deconvolved_density(values, 1.0)
    return posterior_mean(points, weights, 1.0, float(values.min()), float(values.max()))
