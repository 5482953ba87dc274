"""Prior distribution of a categorical attribute, as well as an attacker can estimate it from its evidence."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.evidence.evidence import Categories, Knowledge
from sfumato.kernels import Floats, Rows

_LARGEST_DOMAIN = 1 << 22
"""The largest number of categories whose distribution is estimated; over a larger domain the prior is uniform."""


def attribute_prior(best: Categories, knowledge: Knowledge) -> Floats:
    """The known distribution; else that of a sample; else that of the best copy, with its perturbation inverted."""
    name = best.model.columns
    if name in knowledge.prior:
        return knowledge.prior[name]
    if best.size > _LARGEST_DOMAIN:
        return np.broadcast_to(1 / best.size, best.size)
    if knowledge.sample is not None and name in knowledge.sample.codes:
        return _smoothed_shares(knowledge.sample.codes[name], best.size, 0.5)
    codes = best.codes[best.codes >= 0]
    return prior_from_counts(np.bincount(codes, minlength=best.size).astype(np.float64), best)


def prior_from_counts(counts: Floats, best: Categories) -> Floats:
    """The distribution of the original, from counts of the categories in the best copy (xiao2009, eq. 1 inverted)."""
    retention, rows = best.model.retention, max(float(counts.sum()), 1.0)
    inverted = np.maximum((counts / rows - (1 - retention) / best.size) / retention, 0)
    smoothing = 1 / (2 * rows)  # no category has probability zero
    prior: Floats = (inverted + smoothing) / (inverted + smoothing).sum()
    return prior


def _smoothed_shares(codes: Rows, size: int, pseudo_count: float) -> Floats:
    """The share of each category, with a pseudo-count for every one (additive smoothing)."""
    counts = np.bincount(codes[codes >= 0], minlength=size) + pseudo_count
    shares: Floats = counts / max(counts.sum(), 1)
    return shares
