"""A mixture of normals behind normal noise, fitted by expectation maximisation (Bovy, Hogg and Roweis 2011)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.linalg import cholesky, solve_triangular

from sfumato.kernels import Floats, Rows
from sfumato.kernels.convergence_warnings import unconcerned

ITERATIONS = 60
ATTEMPTS = 4
_CHUNK = 8192
_CLUSTERED = 4000
"""Records that a first clustering is made of."""


@dataclass(frozen=True)
class Mixture:
    """The law of a record: its parts' weights, means and covariances."""

    weights: Floats
    means: Floats
    covariances: Floats

    def posterior_mean(self, seen: Floats, noise: Floats) -> Floats:
        """`E[x | y]` for `y = x + noise` of this covariance: each part's linear estimate, by its probability."""
        out = np.empty_like(seen)
        seats = self.covariances + noise
        gains = np.linalg.solve(seats, self.covariances).transpose(0, 2, 1)
        for start in range(0, len(seen), _CHUNK):
            part = seen[start : start + _CHUNK]
            share = _shares(part, self.weights, self.means, seats)[0]
            total = np.zeros_like(part)
            for k, gain in enumerate(gains):
                total += share[:, k, None] * (self.means[k] + (part - self.means[k]) @ gain.T)
            out[start : start + _CHUNK] = total
        return out


def fit(seen: Floats, noise: Floats, parts: int, iterations: int = ITERATIONS) -> Mixture:
    """The mixture of `parts` normals of which `seen` is a noisy view; `noise` may be zero."""
    size = seen.shape[1]
    whole = np.atleast_2d(np.cov(seen.T))
    sizes = np.sqrt(np.where(np.diag(whole) > 0, np.diag(whole), 1.0))
    floor = 1e-4 * np.diag(sizes**2)
    centres, labels = _clusters(seen[:: max(len(seen) // _CLUSTERED, 1)] / sizes, parts)
    counts = np.bincount(labels, minlength=parts)
    kept = counts > 2 * size
    kept[counts.argmax()] = True
    weights = counts[kept] / counts[kept].sum()
    means = (centres * sizes)[kept]
    spread = _positive(whole - noise, floor) / parts ** (1 / size)
    covariances = np.repeat(spread[None], kept.sum(), axis=0)
    before = -np.inf
    for _ in range(iterations):
        share, likelihood = _shares(seen, weights, means, covariances + noise)
        weights, means, covariances = _step(seen, noise, share, means, covariances, floor)
        if likelihood - before < 1e-7 * abs(likelihood):
            break
        before = likelihood
    return Mixture(weights, means, covariances)


def _clusters(seen: Floats, parts: int) -> tuple[Floats, Rows]:
    """The best of a few attempts at a clustering, which may each stop short of it."""
    rng, best = np.random.default_rng(0), np.inf
    chosen: tuple[Floats, Rows] | None = None
    for _ in range(ATTEMPTS):
        with unconcerned():  # an empty cluster is left out by `fit`
            centres, labels = kmeans2(seen, parts, minit="++", rng=rng)
        apart = float(np.square(seen - centres[labels]).sum())
        if chosen is None or apart < best:
            best, chosen = apart, (centres, labels)
    if chosen is None:
        raise ValueError("at least one attempt is made")
    return chosen


def _step(
    seen: Floats, noise: Floats, share: Floats, means: Floats, covariances: Floats, floor: Floats
) -> tuple[Floats, Floats, Floats]:
    """One round: what each part's records are, given what was seen of them, is affine in it."""
    total = share.sum(axis=0) + 1e-9
    moved, widths = np.empty_like(means), np.empty_like(covariances)
    for k, old in enumerate(covariances):
        weight = share[:, k]
        centre = weight @ seen / total[k]
        apart = seen - centre
        scatter = (apart * weight[:, None]).T @ apart / total[k]
        gain = np.linalg.solve(old + noise, old).T
        moved[k] = means[k] + gain @ (centre - means[k])
        widths[k] = gain @ scatter @ gain.T + old - gain @ old + floor * 1e-2
        widths[k] = (widths[k] + widths[k].T) / 2
    return total / total.sum(), moved, widths


def _shares(seen: Floats, weights: Floats, means: Floats, covariances: Floats) -> tuple[Floats, float]:
    """The probability that each record belongs to each part, and the mean log-likelihood."""
    logs = np.empty((len(seen), len(weights)))
    for k, covariance in enumerate(covariances):
        root = cholesky(covariance, lower=True)
        white = solve_triangular(root, (seen - means[k]).T, lower=True, overwrite_b=True, check_finite=False)
        logs[:, k] = np.log(weights[k]) - np.log(np.diag(root)).sum() - 0.5 * np.einsum("ij,ij->j", white, white)
    top = logs.max(axis=1, keepdims=True)
    share = np.exp(logs - top)
    total = share.sum(axis=1, keepdims=True)
    return share / total, float((np.log(total) + top).mean())


def _positive(matrix: Floats, floor: Floats) -> Floats:
    """The nearest covariance that is at least a small share of the whole."""
    values, vectors = np.linalg.eigh(matrix)
    lifted: Floats = (vectors * np.maximum(values, 0)) @ vectors.T + floor
    return lifted
