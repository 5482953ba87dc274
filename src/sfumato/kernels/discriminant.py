"""Quadratic discriminant analysis: the most probable category under one normal distribution for each of them."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats

_PSEUDO_RECORDS = 180.0
"""The weight of the covariance of all categories in that of each, in records."""


def most_probable(taught: Floats, answers: Floats, some: Floats, times: int) -> Floats:
    """The most probable category of some records, from others of which each was taught so many times."""
    categories, which, counts = np.unique(answers, return_inverse=True, return_counts=True)
    overall = taught.mean(axis=0)
    sums = np.zeros((len(categories), taught.shape[1]))
    np.add.at(sums, which, taught)
    means = (sums / times + 2 * overall) / (counts / times + 2)[:, None]
    centred = taught - means[which]
    pooled = centred.T @ centred / len(taught) + 1e-4 * np.eye(taught.shape[1])
    logs = np.empty((len(some), len(categories)))
    for i, count in enumerate(counts / times):
        own = centred[which == i]
        covariance = (own.T @ own / times + _PSEUDO_RECORDS * pooled) / (count + _PSEUDO_RECORDS)
        root = np.linalg.cholesky(covariance)
        white = np.linalg.solve(root, (some - means[i]).T)
        logs[:, i] = np.log(count + 1) - np.log(np.diag(root)).sum() - 0.5 * (white**2).sum(axis=0)
    found: Floats = categories[logs.argmax(axis=1)]
    return found
