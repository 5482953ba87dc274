"""Known-density attack: known records as the centres of the distribution that all records come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.attacks import Attack, Categories, Estimate, Evidence, FittedAttack, Posterior, Records
from sfumato.attacks._common_units import CommonUnits
from sfumato.attacks._dependent_columns import fit_groups
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.kernels.centres import Attribute, Centres
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

_WIDTHS = ((0.05, 0.01), (0.15, 0.03), (0.3, 0.1), (0.5, 0.2), (0.8, 0.4))
"""How far records are from a known one, in deviations, and how likely a category differs; the likeliest is taken."""

_CHOSEN_BY = 2000
"""The most records by which the width is chosen, and the weights are found."""

_MAX_CATEGORIES = 400
"""Attributes with more categories are left out."""

_SHOWN = 3
"""A combination of categories that the copies show so often is a centre, too."""

_COMBINATIONS = 800
"""The most such combinations."""

_CERTAIN = 1 - 1e-6
"""The retention of what was not perturbed: whether a value is missing."""


@dataclass(frozen=True, kw_only=True)
class KnownDensity(Attack):
    """The posterior where every record is one like those that are known: repeated records are recognised.

    A kernel density estimate of whole records, numbers and categories together, behind the published noise. Its width
    and the weights of the known records are those under which the copies are the most likely.
    """

    reference = "nonparametric maximum likelihood (Kiefer and Wolfowitz 1956) behind the noise of li2012 and xiao2009"
    cost = 4.0
    supports = frozenset({GaussianNoise.kind, UniformReplacement.kind})
    combines_copies = False
    needs_known_records = True
    unit_tolerance = 1e-3
    known: int = 1500
    """The most known records that are used."""
    iterations: int = 4
    """Iterations of EM for their weights."""

    def __post_init__(self) -> None:
        require_at_least("known", self.known, 2)
        require_at_least("iterations", self.iterations, 1)

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Fit a density to each group of columns that depend on each other."""
        known = evidence.knowledge.records
        if known is None:
            raise self.lacks_known_records()
        some = known.take(np.arange(len(known))[:: max(len(known) // self.known, 1)][: self.known])
        if not _is_usable(evidence):
            raise AttackError("the attack 'known-density' needs numbers, or attributes with few categories")
        return fit_groups(evidence, lambda group, _: self._fit(group, some), self.name)

    def _fit(self, evidence: Evidence, known: Records) -> FittedAttack:
        """Choose the width, and find the weights."""
        if not _is_usable(evidence):
            return lambda wanted: Estimate(self.name, (), np.empty((wanted.rows, 0)))
        knowledge = evidence.knowledge
        view = _View.of(evidence, known)
        some = evidence.take(evenly_spaced(evidence.rows, _CHOSEN_BY))
        shown = view.observed(some), view.attributes(some)
        tried = [replace(view.centres, width=width, spread=spread) for width, spread in _WIDTHS]
        best = max(tried, key=lambda one: float(one.responsibilities(*shown)[1].mean()))
        fitted = best.weighted(*shown, self.iterations)
        priors = {part.model.columns: attribute_prior(part, knowledge) for part in view.parts}

        def estimate(wanted: Evidence) -> Estimate:
            numbers, posteriors = fitted.estimate(view.observed(wanted), view.attributes(wanted))
            made = [
                Posterior.dense(part.model, priors[part.model.columns], found)
                for part, found in zip(view.parts, posteriors, strict=False)
            ]
            return Estimate(self.name, view.scale.columns, view.scale.original(numbers, wanted), tuple(made))

        return estimate


@dataclass(frozen=True)
class _View:
    """How copies are read: pooled numbers in common units, the best copy of each attribute, and what is missing."""

    scale: CommonUnits
    parts: tuple[Categories, ...]
    known: Records
    centres: Centres

    @classmethod
    def of(cls, evidence: Evidence, known: Records) -> _View:
        scale = CommonUnits.of(evidence, known)
        parts = tuple(copies[0] for copies in evidence.attributes().values() if copies[0].size <= _MAX_CATEGORIES)
        known = known if scale.columns else _with_frequent(known, parts)
        if len(known) < 2:
            raise AttackError("the attack 'known-density' needs at least two known records")
        numbers = scale.scaled(known.numbers(scale.columns))
        shape = np.cov(numbers.T).reshape(scale.noise.shape) if scale.columns else scale.noise
        even = np.full(len(numbers), 1 / len(numbers))
        return cls(scale, parts, known, Centres(numbers, shape, scale.noise, 1.0, 1.0, even))

    def observed(self, evidence: Evidence) -> Floats:
        """The noisy numbers in common units; a missing one as the mean, as in known records."""
        return self.scale.scaled(self.scale.values(evidence))

    def attributes(self, evidence: Evidence) -> list[Attribute]:
        """The attributes, and whether each column of numbers is missing, where it is for some known record."""
        shown = evidence.attributes()
        found = []
        for part in self.parts:
            own = self.known.codes[part.model.columns]
            share = np.bincount(own[own >= 0], minlength=part.size) + 0.5
            codes = shown[part.model.columns][0].codes
            found.append(Attribute(np.maximum(own, 0), codes, share / share.sum(), part.model.retention))
        values, theirs = self.scale.values(evidence), self.known.numbers(self.scale.columns)
        for i in np.flatnonzero(np.isnan(theirs).any(axis=0)):
            missing, own = (np.isnan(some[:, i]).astype(np.int64) for some in (values, theirs))
            share = (np.bincount(own, minlength=2) + 0.5) / (len(own) + 1)
            found.append(Attribute(own, missing, share, _CERTAIN))
        return found


def _is_usable(evidence: Evidence) -> bool:
    """Whether there is something to estimate."""
    return bool(evidence.numbers) or any(one[0].size <= _MAX_CATEGORIES for one in evidence.attributes().values())


def _with_frequent(known: Records, parts: Sequence[Categories]) -> Records:
    """Known records, and combinations of categories that the copies show more often than by replacement alone."""
    shown = np.column_stack([part.codes for part in parts])
    own = np.column_stack([known.codes[part.model.columns] for part in parts])
    combinations, counts = np.unique(shown[(shown >= 0).all(axis=1)], axis=0, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_COMBINATIONS]
    frequent = combinations[often[counts[often] >= _SHOWN]]
    new = frequent[~(frequent[:, None, :] == np.unique(own, axis=0)).all(axis=2).any(axis=1)]
    codes = {part.model.columns: np.concatenate([own[:, i], new[:, i]]) for i, part in enumerate(parts)}
    return Records((), np.empty((len(own) + len(new), 0)), codes)
