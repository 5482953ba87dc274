"""Collusion attack on categories: their joint posterior distribution, given any number of copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Categories, Estimate, Evidence, FittedAttack, Posterior
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.kernels import Floats, Rows
from sfumato.models.uniform_replacement import UniformReplacement

MAX_LOG = 600.0
"""The largest logarithm of a likelihood ratio, so that its exponential is finite."""


@dataclass(frozen=True, kw_only=True)
class Collusion(Attack):
    """The joint posterior distribution of a category, given all copies.

    On one path only the most faithful copy counts (xiao2009, Theorem 1); paths are independent.
    """

    reference = "xiao2009, section 5.2 and Appendix 2, eq. 25"
    supports = frozenset({UniformReplacement.kind})

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Estimate the prior distribution of each attribute."""
        priors = {name: attribute_prior(parts[0], evidence.knowledge) for name, parts in evidence.attributes().items()}

        def estimate(some: Evidence) -> Estimate:
            attributes = some.attributes().items()
            posteriors = [stated_posterior(parts, priors[name]) for name, parts in attributes]
            return Estimate(self.name, (), np.empty((some.rows, 0)), tuple(posteriors))

        return estimate


def best_of_each_path(parts: Sequence[Categories]) -> list[Categories]:
    """The first copy of each path, of copies in decreasing order of retention."""
    best: dict[str, Categories] = {}
    for part in parts:
        best.setdefault(part.path, part)
    return list(best.values())


def stated_posterior(copies: Sequence[Categories], prior: Floats) -> Posterior:
    """Bayes' rule: the likelihood ratio of a category is `Π(1 + p·s/(1-p))` over the copies that show it (eq. 1)."""
    parts = best_of_each_path(copies)
    retentions = np.array([part.model.retention for part in parts])
    return joint_posterior(parts, prior, np.log1p(retentions * parts[0].size / (1 - retentions)))


def joint_posterior(parts: Sequence[Categories], prior: Floats, log_ratios: Floats) -> Posterior:
    """The posterior where a copy that shows a category adds its logarithm to that of the likelihood ratio."""
    values: Rows = np.column_stack([part.codes for part in parts])
    logs = np.zeros(values.shape)
    for i in range(len(parts)):
        for j, log_ratio in enumerate(log_ratios):
            logs[:, i] += log_ratio * (values[:, i] == values[:, j])
    for i in range(len(parts) - 1, 0, -1):  # a category that two copies show is counted once
        values[(values[:, :i] == values[:, i : i + 1]).any(axis=1), i] = -1
    ratios = np.where(values >= 0, np.exp(np.minimum(logs, MAX_LOG)), 1.0)
    return Posterior(parts[0].model, prior, values, ratios)
