"""Noisy-label attack: each category inferred from all other columns, learned from its own perturbed values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Categories, Estimate, Evidence, FittedAttack, Posterior
from sfumato.attacks._mixed_evidence import MixedEvidence
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks.collusion import best_of_each_path
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.kernels import Floats, Rows
from sfumato.kernels.column_moments import column_deviations, column_means
from sfumato.kernels.label_regression import LabelRegression, fit
from sfumato.kernels.latent_class import one_hot
from sfumato.models.uniform_replacement import UniformReplacement

_LARGEST_DOMAIN = 100
"""The largest number of categories of an attribute that is inferred."""
_FAR = 4.0
"""Numbers are moved to within this many standard deviations of their mean."""
_CHUNK = 1 << 14


@dataclass(frozen=True, kw_only=True)
class NoisyLabels(Attack):
    """Multinomial regression of each category on all other columns, public ones included.

    It needs no known record: the replacement of a category is independent of all other columns, so that regressing the
    category shown on the others, with the known probability of replacement in the likelihood, learns the true one. Its
    own perturbed value then counts by Bayes' rule.
    """

    reference = "learning with noisy labels (Natarajan et al. 2013; Patrini et al. 2017) behind xiao2009, eq. 1"
    cost = 2.5
    supports = frozenset({UniformReplacement.kind})
    combines_copies = False
    imputes_missing = True
    example = {"iterations": 5}
    unit_tolerance = 1e-3
    iterations: int = 30
    """The most iterations of the optimisation."""
    rows: int = 20_000
    """The largest number of records that are learned from."""

    def __post_init__(self) -> None:
        require_at_least("iterations", self.iterations, 1)
        require_at_least("rows", self.rows, 50)

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Learn one regression per attribute."""
        view = MixedEvidence.of(evidence)
        training = evidence.take(np.arange(evidence.rows)[:: max(evidence.rows // self.rows, 1)][: self.rows])
        scale = _Scale.of(view.observed(training).numbers)
        attributes = [part for part in view.attributes if part.size <= _LARGEST_DOMAIN]
        regressions = []
        for part in attributes:
            codes = training.attributes()[part.model.columns][0].codes
            known = np.flatnonzero(codes >= 0)
            prior = attribute_prior(part, evidence.knowledge)
            inputs = _inputs(view, scale, training.take(known), part)
            regressions.append(fit(inputs, codes[known], part.model.retention, prior, self.iterations))

        def estimate(some: Evidence) -> Estimate:
            posteriors = [
                _posterior(part, regression, view, scale, some)
                for part, regression in zip(attributes, regressions, strict=True)
            ]
            return Estimate(self.name, (), np.empty((some.rows, 0)), tuple(posteriors))

        return estimate


@dataclass(frozen=True)
class _Scale:
    """The mean and standard deviation of each number."""

    centre: Floats
    unit: Floats

    @classmethod
    def of(cls, numbers: Floats) -> _Scale:
        spread = column_deviations(numbers)
        return cls(column_means(numbers), np.where(spread > 0, spread, 1.0))

    def standardised(self, numbers: Floats) -> Floats:
        """Standardised numbers, zero where missing."""
        scaled = np.where(np.isnan(numbers), 0.0, (numbers - self.centre) / self.unit)
        return np.clip(scaled, -_FAR, _FAR)


def _inputs(view: MixedEvidence, scale: _Scale, some: Evidence, target: Categories) -> Floats:
    """All other columns: categories one-hot, numbers with their squares; and other paths' copies of the category."""
    observed = view.observed(some)
    numbers = scale.standardised(observed.numbers)
    parts = [np.empty((some.rows, 0)), numbers, numbers**2]
    for i, codes in enumerate(observed.codes):
        if i >= len(view.attributes) or view.attributes[i].model.columns != target.model.columns:
            parts.append(one_hot(codes, view.channel.sizes[i]))
    others = best_of_each_path(some.attributes()[target.model.columns])[1:]
    parts += [one_hot(other.codes, other.size) for other in others]
    return np.hstack([*parts, np.ones((some.rows, 1))])


def _posterior(
    part: Categories, regression: LabelRegression, view: MixedEvidence, scale: _Scale, some: Evidence
) -> Posterior:
    """The posterior of an attribute: its distribution given the other columns, and the likelihood of what is shown."""
    copy = some.attributes()[part.model.columns][0]
    found = []
    for start in range(0, some.rows, _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, some.rows))
        found.append(regression.probabilities(_inputs(view, scale, some.take(rows), part)))
    probabilities = np.vstack(found)
    ratios = probabilities / regression.prior
    shown: Rows = np.flatnonzero(copy.codes >= 0)
    retention = min(part.model.retention, 1 - 1e-9)
    ratios[shown, copy.codes[shown]] *= 1 + retention * part.size / (1 - retention)
    everything = np.broadcast_to(np.arange(part.size), ratios.shape)
    return Posterior(part.model, regression.prior, everything, ratios)
