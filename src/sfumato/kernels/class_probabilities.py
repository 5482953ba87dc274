"""The steps of EM for latent classes, compiled: the probability of each class for a record, and weighted moments."""

from __future__ import annotations

import numpy as np
from numba import njit

from sfumato.kernels import Floats, Rows

_NEGLIGIBLE = 1e-10
"""Records less probable than this add nothing to a class."""


@njit(cache=True, nogil=True)
def class_probabilities(  # pragma: no cover - compiled
    values: Floats,
    codes: Rows,
    logs: Floats,
    tables: Floats,
    means: Floats,
    whitening: Floats,
    rows: Rows,
    out: Floats,
) -> float:
    """Write the probability of each class for some rows, and return the sum of their log-likelihoods.

    Args:
        values: the numbers of these rows, none of them missing.
        codes: the row of `tables` of each category of these rows, -1 where it is missing.
        logs: of each class, the logarithm of its weight and of the density at its mean.
        tables: the logarithm of the probability of each category in each class.
        means: the mean of each class.
        whitening: of each class, the inverse of the lower Cholesky factor of its covariance with noise.
        rows: where to write in `out`.
        out: one row per record, one column per class.

    """
    classes, size = means.shape
    total = 0.0
    for i in range(len(rows)):
        line = out[rows[i]]
        top = -np.inf
        for k in range(classes):
            log = logs[k]
            for a in range(codes.shape[1]):
                if codes[i, a] >= 0:
                    log += tables[codes[i, a], k]
            for r in range(size):
                white = 0.0
                for c in range(r + 1):
                    white += whitening[k, r, c] * (values[i, c] - means[k, c])
                log -= 0.5 * white * white
            line[k] = log
            top = max(top, log)
        mass = 0.0
        for k in range(classes):
            line[k] = np.exp(line[k] - top)
            mass += line[k]
        for k in range(classes):
            line[k] /= mass
        total += top + np.log(mass)
    return total


@njit(cache=True, nogil=True)
def weighted_moments(  # pragma: no cover - compiled
    values: Floats, codes: Rows, means: Floats, weights: Floats, first: Floats, second: Floats, counts: Floats
) -> None:
    """Add the weighted sums of each class: deviations from its mean, their products, and how often it shows what."""
    classes, size = means.shape
    deviation = np.empty(size)
    for i in range(len(weights)):
        for k in range(classes):
            weight = weights[i, k]
            if weight < _NEGLIGIBLE:
                continue
            for a in range(codes.shape[1]):
                if codes[i, a] >= 0:
                    counts[codes[i, a], k] += weight
            for r in range(size):
                deviation[r] = values[i, r] - means[k, r]
                first[k, r] += weight * deviation[r]
                for c in range(r + 1):
                    second[k, r, c] += weight * deviation[r] * deviation[c]
