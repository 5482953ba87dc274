"""The rotation under which a sample is likeliest to have come from the same law as the copy.

Eigenvectors use the covariance alone, and are lost where eigenvalues are near each other. A mixture of normals fitted
to the copy says where records are likely to be; the sample is turned until its records are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize
from scipy.special import logsumexp

from sfumato.kernels import Floats
from sfumato.kernels.convergence_warnings import unconcerned

_FIT = 20_000
"""Records of the copy that the mixture is fitted to."""

_TURNS, _TRIED = 4, 12
"""How often, and how many of, the mirror images of the best are tried."""

_ANNEAL = (0.3, 0.1, 0.0)
"""How much every component is widened, in turn: first the broad shape, then the details."""


@dataclass(frozen=True)
class GaussianMixture:
    """A mixture of normals."""

    weights: Floats
    means: Floats
    covariances: Floats

    @classmethod
    def of(cls, copy: Floats, components: int, seed: int = 0) -> GaussianMixture:
        """Fitted to a copy."""
        from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - takes long to import

        some = copy[:: max(len(copy) // _FIT, 1)]
        floor = 1e-4 * float(some.var(axis=0).mean())
        model = GaussianMixture(components, reg_covar=floor, random_state=seed, max_iter=60, tol=1e-3)
        with unconcerned():
            model.fit(some)
        return cls(model.weights_, model.means_, model.covariances_)

    def widened(self, share: float) -> GaussianMixture:
        """Every component wider by a share of the whole law's covariance."""
        centre = self.weights @ self.means
        apart = self.means - centre
        whole = np.einsum("k,kij->ij", self.weights, self.covariances) + (apart.T * self.weights) @ apart
        return GaussianMixture(self.weights, self.means, self.covariances + share * whole)

    def log_density(self, points: Floats) -> tuple[float, Floats]:
        """The mean log density of some points, and its gradient at each."""
        parts, pulls = [], []
        for weight, mean, covariance in zip(self.weights, self.means, self.covariances, strict=True):
            factor = cholesky(covariance, lower=True)
            apart = points - mean
            solved = cho_solve((factor, True), apart.T).T
            parts.append(np.log(weight) - np.log(np.diag(factor)).sum() - np.einsum("ij,ij->i", apart, solved) / 2)
            pulls.append(-solved)
        logs = np.stack(parts)
        total = logsumexp(logs, axis=0)
        shares = np.exp(logs - total)
        pull: Floats = np.einsum("kr,kri->ri", shares, np.stack(pulls)) / len(points)
        return float(total.mean()), pull


def turned(sample: Floats, law: GaussianMixture, starts: Sequence[Floats], axes: Floats) -> Floats:
    """The orthogonal `M` under which `M·s` is likeliest, from starts whose axes may be mirrored or exchanged.

    Args:
        sample: a record a row.
        law: of the copy.
        starts: to ascend from.
        axes: principal axes of the sample, one a column.

    """
    broad = law.widened(_ANNEAL[0])
    nearer = [_ascend(sample, broad, start, steps=20) for start in starts]
    best, value = _annealed(sample, law, max(nearer, key=lambda one: one[1])[0])
    for _ in range(_TURNS):
        others = [best @ mirror for mirror in _mirrors(axes)]
        heights = [broad.log_density(sample @ other.T)[0] for other in others]
        near = [_ascend(sample, broad, others[i], steps=20) for i in np.argsort(heights)[::-1][:_TRIED]]
        found, height = _annealed(sample, law, max(near, key=lambda one: one[1])[0])
        if height <= value + 1e-6:
            break
        best, value = found, height
    return best


def _annealed(sample: Floats, law: GaussianMixture, start: Floats) -> tuple[Floats, float]:
    matrix, value = start, -np.inf
    for share in _ANNEAL:
        matrix, value = _ascend(sample, law.widened(share), matrix)
    return matrix, value


def _mirrors(axes: Floats) -> list[Floats]:
    """The orthogonal matrices that mirror one axis, mirror two, or exchange two neighbours."""
    size = axes.shape[1]
    eye = np.eye(len(axes))
    alone = [2 * np.outer(axes[:, i], axes[:, i]) for i in range(size)]
    single = [eye - one for one in alone]
    double = [eye - alone[i] - alone[j] for i in range(size) for j in range(i)]
    lean = [axes[:, i] - sign * axes[:, i + 1] for i in range(size - 1) for sign in (1, -1)]
    return [*single, *double, *(eye - np.outer(one, one) for one in lean)]


def _ascend(sample: Floats, law: GaussianMixture, start: Floats, steps: int = 60) -> tuple[Floats, float]:
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
        inverse, turn = cayley(flat)
        value, pull = law.log_density(sample @ (turn @ start).T)
        slope = inverse.T @ (pull.T @ sample) @ start.T @ (eye + turn).T / 2
        return -value, -(slope - slope.T)[upper]

    found = minimize(objective, np.zeros(len(upper[0])), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return cayley(found.x)[1] @ start, -float(found.fun)
