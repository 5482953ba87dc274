"""Repeated-records attack: several records of one person, recognised by how alike their copies are, and averaged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, AttackError, Categories, Estimate, Evidence, FittedAttack, Posterior, Records
from sfumato.attacks._common_units import CommonUnits
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.kernels import Floats
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.kernels.repeats import Axes, Repeats, Shown, linked_pairs
from sfumato.models.gaussian_noise import GaussianNoise

_MAX_CATEGORIES = 60
"""Attributes with more categories are left out."""

_FITTED = 500
"""The number of records by which the share of repeated ones is found."""

_KNOWN = 1500
"""The most known records that are compared with each other."""

_PAIRS = 10
"""The fewest pairs of known records by which it is found what varies between records of one person."""


@dataclass(frozen=True, kw_only=True)
class RepeatedRecords(Attack):
    """The posterior where some records are of one person: what they have in common averages out its noise.

    Visits of one patient, say, of whom no identifier is published. How many pairs are of one person is found by EM:
    where there are none, this is the posterior of each record alone. What varies from visit to visit is learned from
    known records; without these it is taken that nothing does.
    """

    reference = "record linkage (Fellegi and Sunter 1969) of noisy records with each other"
    cost = 1.5
    supports = frozenset({GaussianNoise.kind})
    combines_copies = False
    unit_tolerance = 0.02  # pairs are compared in single precision
    iterations: int = 6
    """Iterations of EM."""
    records: int = 8000
    """The most records with which each is compared."""

    def __post_init__(self) -> None:
        require_at_least("iterations", self.iterations, 1)
        require_at_least("records", self.records, 3)

    def check(self, evidence: Evidence) -> None:
        """Raise `AttackError` for a single column, in which everything is alike."""
        super().check(evidence)
        if len(evidence.columns) < 2 or evidence.rows < 3:
            raise AttackError(f"the attack {self.name!r} needs two columns of numbers and three records; use 'bayes'")

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Find what varies between records of one person, and the share of such pairs."""
        scale = CommonUnits.of(evidence)
        noisy = scale.scaled(scale.values(evidence))
        pairs = _KnownPairs.of(evidence, scale)
        axes = Axes.of(noisy, scale.noise, pairs.within(scale))
        best = [one[0] for one in evidence.attributes().values() if one[0].size <= _MAX_CATEGORIES]
        parts = [_Part(one, attribute_prior(one, evidence.knowledge), pairs.agreement(one)) for one in best]
        compared = evenly_spaced(evidence.rows, self.records)
        some = evenly_spaced(len(compared), _FITTED)
        shown = _shown(evidence.take(compared), parts)
        fitted = Repeats(axes, noisy[compared] @ axes.directions.T, shown).fitted(some, self.iterations)

        def estimate(wanted: Evidence) -> Estimate:
            numbers = scale.scaled(scale.values(wanted)) @ axes.directions.T
            shown = _shown(wanted, parts)
            means, counts, tables = fitted.averages(numbers, shown)
            posteriors = [
                Posterior.dense(part.best.model, part.prior, _category(one, table))
                for part, one, table in zip(parts, shown, tables, strict=True)
            ]
            values = scale.original(axes.estimate(numbers, means, counts) @ axes.inverse.T, wanted)
            return Estimate(self.name, scale.columns, values, tuple(posteriors))

        return estimate


@dataclass(frozen=True)
class _KnownPairs:
    """Known records of one person, two by two; none where too few are known to tell."""

    one: Records
    other: Records

    @classmethod
    def of(cls, evidence: Evidence, scale: CommonUnits) -> _KnownPairs:
        known = evidence.knowledge.records
        if known is None:
            nobody = Records((), np.empty((0, 0)), {})
            return cls(nobody, nobody)
        known = known.take(evenly_spaced(len(known), _KNOWN))
        first, second = linked_pairs(known.numbers(scale.columns))
        few = len(first) < _PAIRS
        return cls(known.take(first[:0] if few else first), known.take(second[:0] if few else second))

    def within(self, scale: CommonUnits) -> Floats:
        """The covariance of what varies between records of one person, in common units."""
        if not len(self.one):
            return np.zeros_like(scale.noise)
        one, other = (scale.scaled(records.numbers(scale.columns)) for records in (self.one, self.other))
        covariance: Floats = (one - other).T @ (one - other) / (2 * len(one))
        return covariance

    def agreement(self, part: Categories) -> float:
        """How often two records of one person have the same category, beyond coincidence."""
        if not len(self.one):
            return 1.0
        one, other = (records.codes[part.model.columns] for records in (self.one, self.other))
        coincidence = float(np.sum((np.bincount(np.maximum(one, 0)) / len(one)) ** 2))
        return min(max((float(np.mean(one == other)) - coincidence) / max(1 - coincidence, 1e-9), 0.0), 1.0)


@dataclass(frozen=True)
class _Part:
    """The best copy of an attribute, its distribution, and how often records of one person agree in it."""

    best: Categories
    prior: Floats
    agreement: float


def _shown(evidence: Evidence, parts: list[_Part]) -> tuple[Shown, ...]:
    """What the records show of some attributes."""
    attributes = evidence.attributes()
    return tuple(
        Shown(attributes[part.best.model.columns][0].codes, part.prior, part.best.model.retention, part.agreement)
        for part in parts
    )


def _category(shown: Shown, table: Floats) -> Floats:
    """The probability of each category, from how often it is shown by records of one person."""
    logs = np.log(shown.prior) + table @ np.log(shown.channel).T
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    posterior: Floats = likely / likely.sum(axis=1, keepdims=True)
    return posterior
