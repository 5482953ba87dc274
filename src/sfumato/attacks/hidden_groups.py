"""Hidden-group attack: an attribute with many categories, such as a branch, whose records resemble each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.attacks import Attack, AttackError, Categories, Estimate, Evidence, FittedAttack, Posterior
from sfumato.attacks._common_units import CommonUnits
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.kernels import Floats
from sfumato.kernels.centres import Attribute, Centres
from sfumato.kernels.covariances import nearest_covariance
from sfumato.models.uniform_replacement import UniformReplacement

_FEWEST, _MOST = 5, 1000
"""Attributes with so many categories are taken for groups; those with fewer are latent classes."""

_RECORDS = 4
"""A group has at least so many records on average."""


@dataclass(frozen=True, kw_only=True)
class HiddenGroups(Attack):
    """The posterior where the numbers of a record are those of its group, which the copies show perturbed.

    The mean of each group is deconvolved from the records that show it, and refined by EM: numbers, too, tell which
    group a record is of. Tried with each attribute of many categories; the likeliest is taken.
    """

    reference = "a random-effects model behind the noise of li2012, with groups behind that of xiao2009, eq. 1"
    cost = 1.0
    supports = frozenset({UniformReplacement.kind})
    combines_copies = False
    unit_tolerance = 1e-3
    iterations: int = 5
    """Iterations of EM."""

    def __post_init__(self) -> None:
        require_at_least("iterations", self.iterations, 1)

    def check(self, evidence: Evidence) -> None:
        """Raise `AttackError` for evidence without an attribute of many categories."""
        super().check(evidence)
        if not _groupings(evidence):
            raise AttackError(
                f"the attack {self.name!r} needs an attribute with {_FEWEST} categories or more that many records "
                "share; choose another attack"
            )

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Estimate the groups of each attribute, and keep the likeliest."""
        scale = CommonUnits.of(evidence)
        observed = scale.scaled(scale.values(evidence))
        tried = [
            _fitted(part, observed, scale.noise, attribute_prior(part, evidence.knowledge), self.iterations)
            for part in _groupings(evidence)
        ]
        part, centres, prior, _ = max(tried, key=lambda one: one[-1])

        def estimate(some: Evidence) -> Estimate:
            shown = some.attributes()[part.model.columns][0].codes
            own = Attribute(np.arange(part.size), shown, prior, part.model.retention)
            numbers, [found] = centres.estimate(scale.scaled(scale.values(some)), [own])
            return Estimate(
                self.name, scale.columns, scale.original(numbers, some), (Posterior.dense(part.model, prior, found),)
            )

        return estimate


def _groupings(evidence: Evidence) -> list[Categories]:
    """The best copies of the attributes that may be groups."""
    best = [parts[0] for parts in evidence.attributes().values()]
    return [part for part in best if _FEWEST <= part.size <= min(_MOST, evidence.rows // _RECORDS)]


def _fitted(
    part: Categories, observed: Floats, noise: Floats, prior: Floats, iterations: int
) -> tuple[Categories, Centres, Floats, float]:
    """The groups of one attribute, and the mean log-likelihood of the records."""
    own = Attribute(np.arange(part.size), part.codes, prior, part.model.retention)
    retention = part.model.retention
    shown = np.where(part.codes[:, None] == np.arange(part.size), 1.0, 0.0)
    other = (1 - retention) / part.size
    own_share = (
        prior * (retention + other) / (prior * retention + other)
    )  # of those who show a category, xiao2009, eq. 1
    means = _group_means(shown, observed, own_share)
    centres = Centres(means, _within(means, prior, observed, noise), noise, 1.0, 1e-6, prior)
    for _ in range(iterations):
        weights, _ = centres.responsibilities(observed, [own])
        means = _group_means(weights, observed, np.ones(part.size))
        centres = replace(centres, numbers=means, shape=_within(means, prior, observed, noise))
    return part, centres, prior, float(centres.responsibilities(observed, [own])[1].mean())


def _group_means(weights: Floats, observed: Floats, own_share: Floats) -> Floats:
    """The mean of each group, drawn to 0, the overall one, as far as its few records say little."""
    counts = weights.sum(axis=0)
    means = (weights.T @ observed) / np.maximum(counts, 1e-9)[:, None] / own_share[:, None]
    sampling = observed.var(axis=0) / np.maximum(counts, 1e-9)[:, None] / own_share[:, None] ** 2
    between = np.maximum((counts[:, None] * (means**2 - sampling)).sum(axis=0) / max(counts.sum(), 1e-9), 1e-9)
    shrunk: Floats = means * between / (between + sampling)
    return shrunk


def _within(means: Floats, prior: Floats, observed: Floats, noise: Floats) -> Floats:
    """The covariance of records within their group: all of it without that between groups and the noise."""
    if not len(noise) or len(observed) < 2:
        return noise
    between = (means * prior[:, None]).T @ means
    total = np.cov(observed.T).reshape(noise.shape)
    return nearest_covariance(total - between - noise, np.ones(len(noise)))
