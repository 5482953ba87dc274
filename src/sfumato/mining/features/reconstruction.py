"""Reconstruction of values, so that ordinary learning algorithms can be applied (Agrawal and Srikant 2000, section 4).

The distribution of a numeric column is reconstructed, and the values of the copy are assigned to its quantiles by
rank. Categories have no order; each is drawn from its posterior distribution.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.mining.features.class_densities import ITERATIONS, ClassDensities, class_densities
from sfumato.mining.features.features import Features


def reconstructed_values(
    features: Features, values: Floats, groups: Rows, count: int, rng: np.random.Generator, max_iter: int = ITERATIONS
) -> Floats:
    """The records with each perturbed column reconstructed within each group by itself."""
    out = values.copy()
    for i, feature in enumerate(features.columns):
        if feature.is_perturbed:
            densities = class_densities(feature, values[:, i], groups, count, max_iter)
            for group in range(count):
                rows = np.flatnonzero(groups == group)
                if len(rows):
                    out[rows, i] = _reconstructed(densities, group, values[rows, i], rng)
    return out


def _reconstructed(densities: ClassDensities, group: int, observed: Floats, rng: np.random.Generator) -> Floats:
    """Numbers by rank, and categories drawn from their posterior, given the density of their group."""
    prior = densities.original[group]
    if not densities.feature.size:
        ranks = (np.argsort(np.argsort(observed, kind="stable"), kind="stable") + 0.5) / len(observed)
        cdf = np.append(0.0, np.cumsum(prior))
        quantiles: Floats = np.interp(ranks, cdf / cdf[-1], densities.edges)
        return quantiles
    retention, size = densities.feature.retention, densities.feature.size
    posterior = prior * (1 - retention) / size + np.eye(size) * retention * prior
    cumulative = np.cumsum(posterior, axis=1)
    drawn = rng.random(len(observed)) * cumulative[observed.astype(np.int64), -1]
    codes: Floats = (drawn[:, None] > cumulative[observed.astype(np.int64)]).sum(axis=1).astype(np.float64)
    return codes


def one_hot(features: Features, values: Floats) -> Floats:
    """Numbers as they are, and categories in one-hot encoding, as trees take them."""
    parts = [
        values[:, i, None] == np.arange(feature.size) if feature.size else values[:, i, None]
        for i, feature in enumerate(features.columns)
    ]
    return np.concatenate(parts, axis=1).astype(np.float64)
