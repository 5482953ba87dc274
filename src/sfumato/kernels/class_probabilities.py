"""The steps of EM for latent classes, compiled: the probability of each class for a record, and weighted moments."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.compiled import njit

_FAST = {"contract", "reassoc", "nsz"}
"""Sums may be taken in any order, so that several classes are computed at once."""
_LEAST = -32.0
"""The logarithm of the least probability of a class, relative to the likeliest."""


@njit(cache=True, nogil=True, fastmath=_FAST)
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
    centres, roots = means.T.copy(), whitening.transpose(1, 2, 0).copy()
    line, white, deviation = np.empty(classes), np.empty(classes), np.empty((size, classes))
    total = 0.0
    for i in range(len(rows)):
        _of_categories(line, logs, codes[i], tables)
        for r in range(size):
            for k in range(classes):
                white[k] = 0.0
                deviation[r, k] = values[i, r] - centres[r, k]
            for c in range(r + 1):
                for k in range(classes):
                    white[k] += roots[r, c, k] * deviation[c, k]
            for k in range(classes):
                line[k] -= 0.5 * white[k] * white[k]
        top = -np.inf
        for k in range(classes):
            top = max(top, line[k])
        share = 1.0 / _exponentials(line, top)
        shares = out[rows[i]]
        for k in range(classes):
            shares[k] = line[k] * share
        total += top - np.log(share)
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _of_categories(line: Floats, logs: Floats, codes: Rows, tables: Floats) -> None:  # pragma: no cover - compiled
    """Write the logarithm of each class by the categories that a record shows."""
    for k in range(len(line)):
        line[k] = logs[k]
    for a in range(len(codes)):
        if codes[a] >= 0:
            shown = tables[codes[a]]
            for k in range(len(line)):
                line[k] += shown[k]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _exponentials(line: Floats, top: float) -> float:  # pragma: no cover - compiled
    """Replace logarithms by their exponentials, relative to the largest, to seven digits; and add them up.

    A power series for the 256th part, squared eight times: several at once, where a library has one after the other.
    """
    for k in range(len(line)):
        x = max(line[k] - top, _LEAST) / 256.0
        power = 1 + x * (1 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x / 720)))))
        for _ in range(8):
            power *= power
        line[k] = power
    total = 0.0
    for k in range(len(line)):
        total += line[k]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def weighted_moments(  # pragma: no cover - compiled
    values: Floats, codes: Rows, means: Floats, weights: Floats, first: Floats, second: Floats, counts: Floats
) -> None:
    """Add the weighted sums of each class: deviations from its mean, their products, and how often it shows what."""
    classes, size = means.shape
    centres, deviation = means.T.copy(), np.empty((size, classes))
    sums, products = np.zeros((size, classes)), np.zeros((size, size, classes))
    for i in range(len(weights)):
        weight = weights[i]
        for a in range(codes.shape[1]):
            if codes[i, a] >= 0:
                shown = counts[codes[i, a]]
                for k in range(classes):
                    shown[k] += weight[k]
        for r in range(size):
            for k in range(classes):
                deviation[r, k] = values[i, r] - centres[r, k]
                sums[r, k] += weight[k] * deviation[r, k]
            for c in range(r + 1):
                for k in range(classes):
                    products[r, c, k] += weight[k] * deviation[r, k] * deviation[c, k]
    first += sums.T
    second += products.transpose(2, 0, 1)
