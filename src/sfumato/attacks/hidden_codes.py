"""Hidden-code attack: codes of many categories that depend on each other, such as a municipality and a postcode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, AttackError, Categories, Estimate, Evidence, FittedAttack, Posterior
from sfumato.attacks._common_units import CommonUnits
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.kernels import Floats, Rows
from sfumato.kernels.code_classes import CodeClasses, Labels, Shown, fit
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.models.uniform_replacement import UniformReplacement

_FEWEST, _MOST = 5, 600
"""The numbers of categories of an attribute that may be classes."""

_ATTRIBUTES = 4
"""The most attributes that are tried as classes."""

_ROWS = 8000
"""The most records that classes are fitted to."""

_Name = tuple[str, ...]
_Runs = dict[_Name, tuple[CodeClasses, float]]
"""The classes by each attribute, and how likely they make the copies."""


@dataclass(frozen=True, kw_only=True)
class HiddenCodes(Attack):
    """The posterior where a code tells what others are likely to be: the hierarchy is learned behind the replacement.

    The categories of one attribute are taken for classes, with distributions of all other columns in each, by EM;
    known records are labelled. Each attribute of many categories is estimated by its own classes, others by those of
    all on average.
    """

    reference = "latent classes with absolute discounting (Ney, Essen and Kneser 1994) behind xiao2009, eq. 1"
    cost = 3.0
    supports = frozenset({UniformReplacement.kind})
    combines_copies = False
    imputes_missing = True
    unit_tolerance = 1e-3
    example = {"iterations": 3}
    iterations: int = 8
    """Iterations of EM."""

    def __post_init__(self) -> None:
        require_at_least("iterations", self.iterations, 1)

    def check(self, evidence: Evidence) -> None:
        """Raise `AttackError` for evidence without an attribute of many categories."""
        super().check(evidence)
        if not _candidates(evidence):
            raise AttackError(
                f"the attack {self.name!r} needs an attribute of {_FEWEST} to {_MOST} categories; choose another attack"
            )

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Fit the classes of each attribute of many categories."""
        scale = CommonUnits.of(evidence)
        parts = _best(evidence)
        runs = {name: self._run(evidence, scale, name) for name in _candidates(evidence)}
        likeliest = max(runs, key=lambda name: runs[name][1])

        def estimate(some: Evidence) -> Estimate:
            shown = {part.model.columns: _shown(part) for part in _best(some)}
            numbers, posteriors = scale.scaled(scale.values(some)), []
            classes = {}
            for name, (model, _) in runs.items():
                others = [one for other, one in shown.items() if other != name]
                classes[name] = model.probabilities(shown[name], others, numbers)[0]
            for part in parts:
                name, prior = part.model.columns, attribute_prior(part, evidence.knowledge)
                own = classes[name] if name in classes else _pooled(runs, classes, shown, name)
                posteriors.append(Posterior.dense(part.model, prior, own))
            found = runs[likeliest][0].originals(numbers, classes[likeliest])
            estimates = scale.original(found, some) if scale.columns else numbers
            return Estimate(self.name, scale.columns, estimates, tuple(posteriors))

        return estimate

    def _run(self, evidence: Evidence, scale: CommonUnits, name: tuple[str, ...]) -> tuple[CodeClasses, float]:
        """The classes by one attribute, and their likelihood."""
        known = evidence.knowledge.known_rows
        rows = evenly_spaced(evidence.rows, _ROWS)
        if known is not None:
            rows = np.union1d(rows, known)
        shown = {part.model.columns: _shown(part) for part in _best(evidence.take(rows))}
        others = [one for other, one in shown.items() if other != name]
        labels = _labels(evidence, scale, rows, name, [other for other in shown if other != name])
        numbers = scale.scaled(scale.values(evidence.take(rows)))
        return fit(shown[name], others, numbers, scale.noise, labels, self.iterations)


def _pooled(runs: _Runs, classes: dict[_Name, Floats], shown: dict[_Name, Shown], name: _Name) -> Floats:
    """The posterior distribution of an attribute that is no class, on average over all runs."""
    total = np.zeros((len(shown[name].codes), shown[name].size))
    for own, (model, _) in runs.items():
        table = dict(zip((other for other in shown if other != own), model.tables, strict=True))[name]
        total += model.categories(shown[name], table, classes[own])
    return total / len(runs)


def _best(evidence: Evidence) -> list[Categories]:
    """The best copy of each attribute that is not too large."""
    return [copies[0] for copies in evidence.attributes().values() if copies[0].size <= _MOST]


def _candidates(evidence: Evidence) -> list[tuple[str, ...]]:
    """The attributes that may be classes, those of the most categories first."""
    large = sorted((part for part in _best(evidence) if part.size >= _FEWEST), key=lambda part: -part.size)
    return [part.model.columns for part in large[:_ATTRIBUTES]]


def _shown(part: Categories) -> Shown:
    return Shown(part.codes, part.size, min(part.model.retention, 1 - 1e-6))


def _labels(
    evidence: Evidence, scale: CommonUnits, rows: Rows, name: tuple[str, ...], others: list[tuple[str, ...]]
) -> Labels | None:
    """The known records among some rows, if their class is known."""
    known, where = evidence.knowledge.known, evidence.knowledge.known_rows
    if known is None or where is None:
        return None
    there = np.flatnonzero(known.codes[name] >= 0)
    numbers: Floats = scale.scaled(known.numbers(scale.columns))[there]
    codes = tuple(known.codes[other][there] for other in others)
    return Labels(np.searchsorted(rows, where[there]), known.codes[name][there], codes, numbers)
