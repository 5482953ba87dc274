"""Repeated-records attack: several records of one person, recognised by how alike their copies are, and averaged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, AttackError, Categories, Estimate, Evidence, FittedAttack, Posterior
from sfumato.attacks._common_units import CommonUnits
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.kernels import Floats, Rows
from sfumato.kernels.repeats import Axes, Repeats, Shown
from sfumato.models.gaussian_noise import GaussianNoise

_MAX_CATEGORIES = 60
"""Attributes with more categories are left out."""

_FITTED = 500
"""The number of records by which the share of repeated ones is found."""


@dataclass(frozen=True, kw_only=True)
class RepeatedRecords(Attack):
    """The posterior where some records have the same original, whose noise averages out.

    Visits of one patient, say, of whom no identifier is published. How many pairs are of one original is found by EM:
    where there are none, this is the posterior of each record alone.
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
        """Find the share of pairs with one original."""
        scale = CommonUnits.of(evidence)
        noisy = scale.scaled(scale.values(evidence))
        axes = Axes.of(noisy, scale.noise)
        parts = [one[0] for one in evidence.attributes().values() if one[0].size <= _MAX_CATEGORIES]
        priors = [attribute_prior(part, evidence.knowledge) for part in parts]
        compared, some = _spread(evidence.rows, self.records), _spread(min(evidence.rows, self.records), _FITTED)
        shown = _shown(evidence.take(compared), parts, priors)
        fitted = Repeats(axes, noisy[compared] @ axes.directions.T, shown).fitted(some, self.iterations)

        def estimate(wanted: Evidence) -> Estimate:
            numbers = scale.scaled(scale.values(wanted)) @ axes.directions.T
            shown = _shown(wanted, parts, priors)
            means, counts, tables = fitted.averages(numbers, shown)
            shrunk = means * (axes.variances / (axes.variances + 1 / counts[:, None]))
            posteriors = [
                Posterior.dense(part.model, one.prior, _category(one, table))
                for part, one, table in zip(parts, shown, tables, strict=True)
            ]
            values = scale.original(shrunk @ axes.inverse.T, wanted)
            return Estimate(self.name, scale.columns, values, tuple(posteriors))

        return estimate


def _spread(rows: int, most: int) -> Rows:
    """Some of the rows, evenly spread."""
    return np.linspace(0, rows - 1, min(rows, most)).astype(np.int64)


def _shown(evidence: Evidence, parts: list[Categories], priors: list[Floats]) -> tuple[Shown, ...]:
    """What the records show of some attributes."""
    attributes = evidence.attributes()
    return tuple(
        Shown(attributes[part.model.columns][0].codes, prior, part.model.retention)
        for part, prior in zip(parts, priors, strict=True)
    )


def _category(shown: Shown, table: Floats) -> Floats:
    """The probability of each category, from how often it is shown by records of one original."""
    logs = np.log(shown.prior) + table @ np.log(shown.channel).T
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    posterior: Floats = likely / likely.sum(axis=1, keepdims=True)
    return posterior
