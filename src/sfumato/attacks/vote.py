"""Take the category that most copies show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Belief, Categories, Estimate, Evidence, Guess
from sfumato.models.uniform_replacement import UniformReplacement

_CERTAIN = 1e15


@dataclass(frozen=True, kw_only=True)
class Vote(Attack):
    """A majority among copies; among equals, what the most faithful one says."""

    reference = "xiao2009, section 1.1, Figure 1: what independent copies give away at a glance"
    supports = frozenset({UniformReplacement.kind})
    fewest = 2

    def prepare(self, evidence: Evidence) -> Guess:  # noqa: ARG002
        """Nothing is learnt."""

        def guess(some: Evidence) -> Estimate:
            beliefs = tuple(_vote(parts) for parts in some.attributes().values())
            return Estimate(self.name, (), np.empty((some.rows, 0)), beliefs)

        return guess


def _vote(parts: Sequence[Categories]) -> Belief:
    seen = np.column_stack([part.codes for part in parts])
    votes = np.zeros(seen.shape, np.int64)
    for column in seen.T:
        votes += seen == column[:, None]
    chosen = seen[np.arange(len(seen)), votes.argmax(axis=1)][:, None]
    size = parts[0].size
    return Belief(parts[0].model, np.broadcast_to(1 / size, size), chosen, np.where(chosen >= 0, _CERTAIN, 1.0))
