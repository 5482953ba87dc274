"""Component-density attack: independent components behind the noise, such as the payments that make up balances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._parameters import require_at_least
from sfumato.attacks._single_copy import Filter, NoisyCopy, SingleCopyAttack
from sfumato.attacks.evidence.statistics import subsample
from sfumato.kernels import Floats
from sfumato.kernels.convergence_warnings import ignore_convergence_warnings
from sfumato.kernels.deconvolution import deconvolved_density, posterior_mean

_CONTRASTS = ("logcosh", "cube")
"""Contrast functions of FastICA: the second is for components whose tails are heavy."""

_LEAST_VARIANCE = 1e-6
"""Directions in which what is shown varies less, where noise varies by 1, are constant."""


@dataclass(frozen=True, kw_only=True)
class ComponentDensity(SingleCopyAttack):
    """The posterior mean of independent components, each under its own density, and of the columns that they make up.

    In units of the noise every rotation leaves the noise independent, so that a rotation in which the originals are
    independent, too, makes one problem of many columns into as many problems of one.
    """

    reference = "FastICA (Hyvärinen 1999) behind whitened noise, and huang2005, section 4.2, along its components"
    cost = 2.0
    unit_tolerance = 0.05  # clusters of components nearly normal turn freely
    iterations: int = 200
    """The most iterations for the rotation."""

    def __post_init__(self) -> None:
        require_at_least("iterations", self.iterations, 1)

    def fit_filter(self, copy: NoisyCopy) -> Filter:
        """Find the components under each contrast, and keep those that are best told from their noise."""
        mean = copy.training.mean(axis=0)
        colour = np.linalg.cholesky(copy.noise)
        white = np.linalg.inv(colour).T
        whitened = (subsample(copy.training, copy.knowledge) - mean) @ white
        fitted = [_Components.of(whitened, contrast, self.iterations) for contrast in _CONTRASTS]
        best = max(fitted, key=lambda one: one.moved(whitened))

        def denoise(values: Floats) -> Floats:
            estimates: Floats = best.denoised((values - mean) @ white) @ colour.T + mean
            return estimates

        return denoise


@dataclass(frozen=True)
class _Components:
    """A rotation, and for each component a table of noisy values and posterior means."""

    rotation: Floats
    tables: list[tuple[Floats, Floats]]

    @classmethod
    def of(cls, whitened: Floats, contrast: str, iterations: int) -> _Components:
        rotation = _rotation(whitened, contrast, iterations)
        return cls(rotation, [_posterior_table(values) for values in (whitened @ rotation.T).T])

    def denoised(self, whitened: Floats) -> Floats:
        """The posterior means, in the directions of the argument."""
        components = whitened @ self.rotation.T
        means = [np.interp(values, *table) for values, table in zip(components.T, self.tables, strict=True)]
        found: Floats = np.column_stack(means) @ self.rotation
        return found

    def moved(self, whitened: Floats) -> float:
        """How far the posterior mean is from what is shown: as far as the error becomes smaller (Tweedie's formula)."""
        return float(((self.denoised(whitened) - whitened) ** 2).mean())


def _rotation(whitened: Floats, contrast: str, iterations: int) -> Floats:
    """The rotation whose components are the least normal, nearest to what FastICA finds where records vary."""
    from sklearn.decomposition import FastICA  # noqa: PLC0415 - takes long to import

    variances, axes = np.linalg.eigh(np.atleast_2d(np.cov(whitened.T)))
    varies = variances > _LEAST_VARIANCE
    if not varies.any():
        return np.eye(len(axes))
    model = FastICA(fun=contrast, random_state=0, whiten="unit-variance", max_iter=iterations)
    with ignore_convergence_warnings():  # where components are nearly normal there is no optimum
        found = model.fit(whitened @ axes[:, varies]).components_
    left, _, right = np.linalg.svd(found / np.linalg.norm(found, axis=1, keepdims=True))
    rotation: Floats = np.vstack([left @ right @ axes[:, varies].T, axes[:, ~varies].T])
    return rotation


def _posterior_table(values: Floats) -> tuple[Floats, Floats]:
    """Noisy values of one component, whose noise has variance 1, and the posterior mean at each."""
    if values.var() <= _LEAST_VARIANCE:
        return np.zeros(2), np.full(2, values.mean())
    points, weights = deconvolved_density(values, 1.0)
    return posterior_mean(points, weights, 1.0, float(values.min()), float(values.max()))
