"""Maximum-likelihood rotation: the rotation under which a sample is most likely under the distribution of the copy.

Principal axes use the covariance alone, and are undetermined where eigenvalues are close. A Gaussian mixture fitted to
the copy has the whole distribution; the likelihood of the rotated sample is maximised over the orthogonal group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from sfumato.kernels import Floats
from sfumato.kernels.convergence_warnings import ignore_convergence_warnings
from sfumato.kernels.mixture import Mixture

_FITTED = 20_000
"""Records of the copy that the mixture is fitted to."""

_ROUNDS, _RESTARTS = 4, 12
"""How often reflections of the best rotation are tried, and from how many of them the search restarts."""

_ANNEALING = (0.3, 0.1, 0.0)
"""How much every component is widened, one step after the other: first the coarse shape, then the details."""


def fit_mixture(copy: Floats, components: int, seed: int = 0) -> Mixture:
    """A Gaussian mixture fitted to a copy, by scikit-learn: the copy is fitted as it is, its noise included."""
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - takes long to import

    rows = copy[:: max(len(copy) // _FITTED, 1)]
    floor = 1e-4 * float(rows.var(axis=0).mean())
    model = GaussianMixture(components, reg_covar=floor, random_state=seed, max_iter=60, tol=1e-3)
    with ignore_convergence_warnings():
        model.fit(rows)
    return Mixture(model.weights_, model.means_, model.covariances_)


def most_likely_rotation(sample: Floats, mixture: Mixture, starts: Sequence[Floats], axes: Floats) -> Floats:
    """The orthogonal `M` that maximises the likelihood of `M·s`, found by local search and reflections.

    Args:
        sample: one row per record.
        mixture: the distribution of the copy.
        starts: initial rotations.
        axes: principal axes of the sample, one per column, along which rotations are reflected.

    """
    broad = mixture.widened(_ANNEALING[0])
    ascended = [_ascend(sample, broad, start, steps=20) for start in starts]
    best, value = _annealed(sample, mixture, max(ascended, key=lambda result: result[1])[0])
    for _ in range(_ROUNDS):
        reflected = [best @ reflection for reflection in _reflections(axes)]
        likelihoods = [broad.log_density(sample @ rotation.T)[0] for rotation in reflected]
        promising = np.argsort(likelihoods)[::-1][:_RESTARTS]
        ascended = [_ascend(sample, broad, reflected[i], steps=20) for i in promising]
        rotation, likelihood = _annealed(sample, mixture, max(ascended, key=lambda result: result[1])[0])
        if likelihood <= value + 1e-6:
            break
        best, value = rotation, likelihood
    return best


def _annealed(sample: Floats, mixture: Mixture, start: Floats) -> tuple[Floats, float]:
    """The local maximum that is reached through ever narrower components, and its mean log-likelihood."""
    matrix, value = start, -np.inf
    for share in _ANNEALING:
        matrix, value = _ascend(sample, mixture.widened(share), matrix)
    return matrix, value


def _reflections(axes: Floats) -> list[Floats]:
    """The orthogonal matrices that reflect one axis, reflect two, or exchange two neighbours."""
    size = axes.shape[1]
    eye = np.eye(len(axes))
    projections = [2 * np.outer(axes[:, i], axes[:, i]) for i in range(size)]
    single = [eye - one for one in projections]
    double = [eye - projections[i] - projections[j] for i in range(size) for j in range(i)]
    normals = [axes[:, i] - sign * axes[:, i + 1] for i in range(size - 1) for sign in (1, -1)]
    return [*single, *double, *(eye - np.outer(normal, normal) for normal in normals)]


def _ascend(sample: Floats, mixture: Mixture, start: Floats, steps: int = 60) -> tuple[Floats, float]:
    """Quasi-Newton steps in Cayley coordinates about `start`: `M = (I - A/2)⁻¹(I + A/2)·start`, `A` skew."""
    size = len(start)
    upper = np.triu_indices(size, 1)
    eye = np.eye(size)

    def cayley(flat: Floats) -> tuple[Any, Any]:
        skew = np.zeros((size, size))
        skew[upper] = flat
        skew -= skew.T
        inverse = np.linalg.inv(eye - skew / 2)
        return inverse, inverse @ (eye + skew / 2)

    def objective(flat: Floats) -> tuple[float, Any]:
        inverse, rotation = cayley(flat)
        value, gradient = mixture.log_density(sample @ (rotation @ start).T)
        slope = inverse.T @ (gradient.T @ sample) @ start.T @ (eye + rotation).T / 2
        return -value, -(slope - slope.T)[upper]

    result = minimize(objective, np.zeros(len(upper[0])), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return cayley(result.x)[1] @ start, -float(result.fun)
