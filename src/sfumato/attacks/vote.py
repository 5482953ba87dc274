"""Majority vote: the category that most copies show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Categories, Estimate, Evidence, FittedAttack, Posterior
from sfumato.models.uniform_replacement import UniformReplacement

_CERTAIN = 1e15
"""The likelihood ratio of the elected category, which makes its posterior probability nearly 1."""


@dataclass(frozen=True, kw_only=True)
class Vote(Attack):
    """A majority vote among copies; a tie is decided by the most faithful copy."""

    reference = "xiao2009, section 1.1, Figure 1: the simplest attack on independent copies"
    supports = frozenset({UniformReplacement.kind})
    min_copies = 2

    def fit(self, evidence: Evidence) -> FittedAttack:  # noqa: ARG002
        """A vote has no parameters to fit."""

        def estimate(some: Evidence) -> Estimate:
            posteriors = tuple(_majority(parts) for parts in some.attributes().values())
            return Estimate(self.name, (), np.empty((some.rows, 0)), posteriors)

        return estimate


def _majority(parts: Sequence[Categories]) -> Posterior:
    codes = np.column_stack([part.codes for part in parts])
    votes = np.zeros(codes.shape, np.int64)
    for column in codes.T:
        votes += codes == column[:, None]
    elected = codes[np.arange(len(codes)), votes.argmax(axis=1)][:, None]
    size = parts[0].size
    ratios = np.where(elected >= 0, _CERTAIN, 1.0)
    return Posterior(parts[0].model, np.broadcast_to(1 / size, size), elected, ratios)
