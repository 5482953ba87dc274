"""The joint posterior of categories, given any number of copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Belief, Categories, Estimate, Evidence, Guess
from sfumato.attacks.evidence.prior import prior_of
from sfumato.kernels import Floats, Rows
from sfumato.models.uniform_replacement import UniformReplacement

_LARGEST = 600.0
"""Of a logarithm, so that its exponential is a number."""


@dataclass(frozen=True, kw_only=True)
class Collusion(Attack):
    """The joint posterior of a category, given all copies.

    On one path only the most faithful copy counts (xiao2009, Theorem 1); paths are independent.
    """

    reference = "xiao2009, section 5.2 and Appendix 2, eq. 25"
    supports = frozenset({UniformReplacement.kind})

    def prepare(self, evidence: Evidence) -> Guess:
        """The prior of each attribute."""
        priors = {name: prior_of(parts[0], evidence.knowledge) for name, parts in evidence.attributes().items()}

        def guess(some: Evidence) -> Estimate:
            beliefs = [_belief(best_of_each_path(parts), priors[name]) for name, parts in some.attributes().items()]
            return Estimate(self.name, (), np.empty((some.rows, 0)), tuple(beliefs))

        return guess


def best_of_each_path(parts: Sequence[Categories]) -> list[Categories]:
    """Of copies in falling order of retention, the first of each path."""
    found: dict[str, Categories] = {}
    for part in parts:
        found.setdefault(part.path, part)
    return list(found.values())


def _belief(parts: Sequence[Categories], prior: Floats) -> Belief:
    """A value that some copies show is `Π(1 + p·s/(1-p))` times as likely as one that none shows (xiao2009, eq. 1)."""
    size = parts[0].size
    ratios = [np.log1p(part.model.retention * size / (1 - part.model.retention)) for part in parts]
    values: Rows = np.column_stack([part.codes for part in parts])
    logs = np.zeros(values.shape)
    for i in range(len(parts)):
        for j, ratio in enumerate(ratios):
            same = values[:, i] == values[:, j]
            logs[:, i] += ratio * same
    for i in range(len(parts) - 1, 0, -1):  # a value shown twice is counted once
        values[(values[:, :i] == values[:, i : i + 1]).any(axis=1), i] = -1
    weights = np.where(values >= 0, np.exp(np.minimum(logs, _LARGEST)), 1.0)
    return Belief(parts[0].model, prior, values, weights)
