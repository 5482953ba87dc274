"""Values put back where they may have been, so that ordinary algorithms can learn from them.

Agrawal and Srikant (2000, section 4): a distribution is reconstructed, and the values of the copy are dealt out to its
bins in their own order. Categories have no order; each is drawn from what it may have been.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.mining.features.class_densities import STEPS, Chances, chances
from sfumato.mining.features.features import Features


def restored(
    features: Features, values: Floats, groups: Rows, count: int, rng: np.random.Generator, steps: int = STEPS
) -> Floats:
    """The records, each column reconstructed in every group by itself."""
    out = values.copy()
    for i, feature in enumerate(features.columns):
        if feature.deviation or feature.retention < 1:
            found = chances(feature, values[:, i], groups, count, steps=steps)
            for group in range(count):
                rows = np.flatnonzero(groups == group)
                if len(rows):
                    out[rows, i] = _put_back(found, group, values[rows, i], rng)
    return out


def _put_back(found: Chances, group: int, seen: Floats, rng: np.random.Generator) -> Floats:
    if not found.feature.size:
        places = (np.argsort(np.argsort(seen, kind="stable"), kind="stable") + 0.5) / len(seen)
        total = np.append(0.0, np.cumsum(found.original[group]))
        dealt: Floats = np.interp(places, total / total[-1], found.edges)
        return dealt
    kept, size = found.feature.retention, found.feature.size
    likely = found.original[group] * (1 - kept) / size + np.eye(size) * kept * found.original[group]
    total = np.cumsum(likely, axis=1)
    drawn = rng.random(len(seen)) * total[seen.astype(np.int64), -1]
    codes: Floats = (drawn[:, None] > total[seen.astype(np.int64)]).sum(axis=1).astype(np.float64)
    return codes


def encoded(features: Features, values: Floats) -> Floats:
    """Numbers as they are, and one column of zeros and ones for each category: what trees and regressions take."""
    parts = [
        values[:, i, None] == np.arange(feature.size) if feature.size else values[:, i, None]
        for i, feature in enumerate(features.columns)
    ]
    return np.concatenate(parts, axis=1).astype(np.float64)
