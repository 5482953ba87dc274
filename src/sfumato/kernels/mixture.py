"""A Gaussian mixture behind Gaussian noise (extreme deconvolution), fitted by EM (Bovy, Hogg and Roweis 2011)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import logsumexp

from sfumato.kernels import Floats, Rows
from sfumato.kernels.convergence_warnings import ignore_convergence_warnings

ITERATIONS = 60
ATTEMPTS = 4
_CHUNK = 8192
_CLUSTERED = 4000
"""The number of records in the initial k-means clustering."""


@dataclass(frozen=True)
class Mixture:
    """The distribution of a record: the weights, means and covariances of the mixture components."""

    weights: Floats
    means: Floats
    covariances: Floats

    def posterior_mean(self, observed: Floats, noise: Floats) -> Floats:
        """The posterior mean `E[x | y]` for `y = x + noise`, given the covariance of the noise.

        It is the mean of the components' linear estimates, weighted by the responsibilities.
        """
        out = np.empty_like(observed)
        total_covariances = self.covariances + noise
        gains = np.linalg.solve(total_covariances, self.covariances).transpose(0, 2, 1)
        for start in range(0, len(observed), _CHUNK):
            chunk = observed[start : start + _CHUNK]
            responsibilities = _responsibilities(chunk, self.weights, self.means, total_covariances)[0]
            total = np.zeros_like(chunk)
            for k, gain in enumerate(gains):
                total += responsibilities[:, k, None] * (self.means[k] + (chunk - self.means[k]) @ gain.T)
            out[start : start + _CHUNK] = total
        return out

    def log_density(self, points: Floats) -> tuple[float, Floats]:
        """The mean log density of some points, up to a constant, and its gradient at each of them."""
        logs, gradients = [], []
        for weight, mean, covariance in zip(self.weights, self.means, self.covariances, strict=True):
            root = cholesky(covariance, lower=True)
            centred = points - mean
            solved = cho_solve((root, True), centred.T).T
            logs.append(np.log(weight) - np.log(np.diag(root)).sum() - np.einsum("ij,ij->i", centred, solved) / 2)
            gradients.append(-solved)
        joint = np.stack(logs)
        total = logsumexp(joint, axis=0)
        responsibilities = np.exp(joint - total)
        gradient: Floats = np.einsum("kr,kri->ri", responsibilities, np.stack(gradients)) / len(points)
        return float(total.mean()), gradient

    def widened(self, share: float) -> Mixture:
        """The mixture with every component widened by a share of the covariance of the whole mixture."""
        centred = self.means - self.weights @ self.means
        between = (centred.T * self.weights) @ centred
        total = np.einsum("k,kij->ij", self.weights, self.covariances) + between
        return Mixture(self.weights, self.means, self.covariances + share * total)


def fit(observed: Floats, noise: Floats, components: int, iterations: int = ITERATIONS) -> Mixture:
    """The maximum-likelihood mixture behind noisy records; the noise covariance may be zero."""
    size = observed.shape[1]
    total = np.atleast_2d(np.cov(observed.T))
    units = np.sqrt(np.where(np.diag(total) > 0, np.diag(total), 1.0))
    floor = 1e-4 * np.diag(units**2)
    centres, labels = _clusters(observed[:: max(len(observed) // _CLUSTERED, 1)] / units, components)
    counts = np.bincount(labels, minlength=components)
    kept = counts > 2 * size
    kept[counts.argmax()] = True
    weights = counts[kept] / counts[kept].sum()
    means = (centres * units)[kept]
    within = _positive(total - noise, floor) / components ** (1 / size)
    covariances = np.repeat(within[None], kept.sum(), axis=0)
    before = -np.inf
    for _ in range(iterations):
        responsibilities, log_likelihood = _responsibilities(observed, weights, means, covariances + noise)
        weights, means, covariances = _step(observed, noise, responsibilities, means, covariances, floor)
        if log_likelihood - before < 1e-7 * abs(log_likelihood):
            break
        before = log_likelihood
    return Mixture(weights, means, covariances)


def _clusters(observed: Floats, components: int) -> tuple[Floats, Rows]:
    """The best of several k-means runs, each of which may end in a local minimum."""
    rng, best = np.random.default_rng(0), np.inf
    chosen: tuple[Floats, Rows] | None = None
    for _ in range(ATTEMPTS):
        with ignore_convergence_warnings():  # `fit` drops an empty cluster
            centres, labels = kmeans2(observed, components, minit="++", rng=rng)
        inertia = float(np.square(observed - centres[labels]).sum())
        if chosen is None or inertia < best:
            best, chosen = inertia, (centres, labels)
    if chosen is None:
        raise ValueError("a clustering needs at least one attempt, got none")
    return chosen


def _step(
    observed: Floats, noise: Floats, responsibilities: Floats, means: Floats, covariances: Floats, floor: Floats
) -> tuple[Floats, Floats, Floats]:
    """The M-step: the conditional mean of a component's records is affine in the observed records."""
    total = responsibilities.sum(axis=0) + 1e-9
    new_means, new_covariances = np.empty_like(means), np.empty_like(covariances)
    for k, old in enumerate(covariances):
        weight = responsibilities[:, k]
        centre = weight @ observed / total[k]
        centred = observed - centre
        scatter = (centred * weight[:, None]).T @ centred / total[k]
        gain = np.linalg.solve(old + noise, old).T
        new_means[k] = means[k] + gain @ (centre - means[k])
        covariance = gain @ scatter @ gain.T + old - gain @ old + floor * 1e-2
        new_covariances[k] = (covariance + covariance.T) / 2
    return total / total.sum(), new_means, new_covariances


def _responsibilities(observed: Floats, weights: Floats, means: Floats, covariances: Floats) -> tuple[Floats, float]:
    """The E-step: the posterior probability of each component for each record, and the mean log-likelihood."""
    logs = np.empty((len(observed), len(weights)))
    for k, covariance in enumerate(covariances):
        root = cholesky(covariance, lower=True)
        white = solve_triangular(root, (observed - means[k]).T, lower=True, overwrite_b=True, check_finite=False)
        logs[:, k] = np.log(weights[k]) - np.log(np.diag(root)).sum() - 0.5 * np.einsum("ij,ij->j", white, white)
    top = logs.max(axis=1, keepdims=True)
    joint = np.exp(logs - top)
    total = joint.sum(axis=1, keepdims=True)
    return joint / total, float((np.log(total) + top).mean())


def _positive(matrix: Floats, floor: Floats) -> Floats:
    """The nearest positive semidefinite matrix, plus a small diagonal."""
    values, vectors = np.linalg.eigh(matrix)
    lifted: Floats = (vectors * np.maximum(values, 0)) @ vectors.T + floor
    return lifted
