"""The distribution of a category, as well as an attacker can know it."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.evidence.evidence import Categories, Knowledge
from sfumato.kernels import Floats, Rows

_MOST = 1 << 22
"""Values of which a distribution is estimated; of more, all are held equally likely."""


def prior_of(best: Categories, knowledge: Knowledge) -> Floats:
    """From what is known; else from a sample; else from the best copy, by inverting its perturbation."""
    name = best.model.columns
    if name in knowledge.prior:
        return knowledge.prior[name]
    if best.size > _MOST:
        return np.broadcast_to(1 / best.size, best.size)
    if knowledge.sample is not None and name in knowledge.sample.codes:
        return _shares(knowledge.sample.codes[name], best.size, 0.5)
    codes = best.codes[best.codes >= 0]
    return prior_from(np.bincount(codes, minlength=best.size).astype(np.float64), best)


def prior_from(counts: Floats, best: Categories) -> Floats:
    """From how often the best copy shows each value, by inverting its perturbation."""
    kept, rows = best.model.retention, max(float(counts.sum()), 1.0)
    found = np.maximum((counts / rows - (1 - kept) / best.size) / kept, 0)
    rare = 1 / (2 * rows)  # nothing is impossible
    estimated: Floats = (found + rare) / (found + rare).sum()
    return estimated


def _shares(codes: Rows, size: int, extra: float) -> Floats:
    counts = np.bincount(codes[codes >= 0], minlength=size) + extra
    shares: Floats = counts / max(counts.sum(), 1)
    return shares
