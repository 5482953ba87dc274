"""Disclosure-risk thresholds: attacks on a copy before its release, which is refused if one of them does too well.

A policy states thresholds as targets, such as a smallest root mean square error. Every attack that applies is run on a
sample of the copy, and the end of its confidence interval that favours the attacker is compared with the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.attacks import ATTACKS, Attack, Estimate, Evidence, Knowledge, Records, Score, score
from sfumato.errors import AttackError, ReleaseError, UnknownMember
from sfumato.kernels.covariances import noise_dissimilarity
from sfumato.levels import Level
from sfumato.policy.targets import CLOSED_FORM, Target
from sfumato.tables.sampling import one_in

ROWS = 20_000
"""The largest number of records that a threshold is tested on."""

KNOWN_ONE_IN = 10
"""The attacker is assumed to know one record in this many."""


ANYBODY = "any attacker"
"""In place of an attack's name where a threshold is evaluated in closed form."""


@dataclass(frozen=True)
class ThresholdResult:
    """What the best attack on a column achieves, compared with the threshold of that column."""

    target: Target
    attack: str
    """The name of the best attack."""
    value: float
    """The end of the attack's confidence interval that favours the attacker."""

    @property
    def met(self) -> bool:
        """Whether the threshold is met."""
        return self.target.met(self.value)

    def __str__(self) -> str:
        who = self.attack if self.attack == ANYBODY else f"the attack {self.attack}"
        return f"{self.target.column}: {who} may reach {self.target.measure} {self.value:,.4g}"


def require_thresholds(targets: Sequence[Target], evidence: Evidence, truth: Records) -> None:
    """Refuse a copy on which an attack does better than a threshold allows, or whose thresholds cannot be tested."""
    try:
        violated = [result for result in evaluate_thresholds(targets, evidence, truth) if not result.met]
    except AttackError as error:
        raise ReleaseError(f"the policy's thresholds could not be tested, so nothing was released: {error}") from None
    if violated:
        reasons = "; ".join(f"{result}, and the policy requires {result.target.requirement()}" for result in violated)
        by_rank = {name for part in evidence.numbers if part.copula for name in part.columns}
        scalable = any(r.target.measure in ("rmse", "error") and r.target.column not in by_rank for r in violated)
        advice = "Lower the level, or raise the `scale` of the column" if scalable else "Lower the level"
        raise ReleaseError(f"no copy may be released at this level: {reasons}. {advice}")


def evaluate_thresholds(
    targets: Sequence[Target], evidence: Evidence, truth: Records, confidence: float = 0.95
) -> list[ThresholdResult]:
    """Run all attacks on a copy, and compare the best one with each target; some follow from the models alone."""
    results = closed_form_results(targets, evidence, truth)
    missing = {target for target in targets if target.measure in CLOSED_FORM} - {result.target for result in results}
    if missing:
        raise _unmeasured(missing.pop())
    for measures in ({"rmse", "error"}, {"success"}):
        chosen = [target for target in targets if target.measure in measures]
        if chosen:
            scores = run_all_attacks(restricted_to(evidence, chosen), truth, confidence)
            results += best_results(chosen, scores)
    return results


def closed_form_results(targets: Sequence[Target], evidence: Evidence, truth: Records) -> list[ThresholdResult]:
    """The targets that hold against any attacker, by the least perturbed copy of each column."""
    results = []
    for target in targets:
        if target.measure in CLOSED_FORM:
            found = _dissimilarities if target.measure == "dissimilarity" else _beliefs
            values = found(target, evidence, truth)
            results += [ThresholdResult(target, ANYBODY, max(values))] if values else []
    return results


def _beliefs(target: Target, evidence: Evidence, truth: Records) -> list[float]:  # noqa: ARG001 - whatever it is
    """What anybody may come to believe of a category, by its model in each copy (xiao2009, section 3)."""
    found = []
    for part in evidence.categories:
        if target.column in part.model.columns:
            level = Level(part.model.retention)
            prior = () if target.prior is None else (target.prior,)
            found.append(getattr(level, target.measure)(*prior, domain=part.size) if part.size > 1 else 0.0)
    return found


def _dissimilarities(target: Target, evidence: Evidence, truth: Records) -> list[float]:
    """How unlike data the noise is with which a column is perturbed, in each copy (huang2005, Definition 8.1)."""
    return [
        noise_dissimilarity(truth.numbers(part.columns), part.covariance)
        for part in evidence.numbers
        if target.column in part.columns and part.copula is None
    ]


def run_all_attacks(evidence: Evidence, truth: Records, confidence: float = 0.95) -> list[Score]:
    """The scores of all attacks that apply, by an attacker who knows one record in ten, on the other records."""
    return [score(estimate, real, confidence=confidence) for estimate, real in all_estimates(evidence, truth)]


def all_estimates(evidence: Evidence, truth: Records) -> Iterator[tuple[Estimate, Records]]:
    """The estimates of all attacks that apply, of the records that the attacker does not know, and the truth."""
    known = one_in(KNOWN_ONE_IN, evidence.rows)
    others = np.delete(np.arange(evidence.rows), known)
    evidence = replace(evidence, knowledge=Knowledge(known=truth.take(known), known_rows=known))
    real = truth.take(others)
    for attack in applicable_attacks(evidence):
        yield attack.estimate(evidence).take(others), real


def applicable_attacks(evidence: Evidence) -> list[Attack]:
    """All attacks that can be made on this evidence, with their default parameters.

    An installed attack that cannot be loaded is an error here: a copy leaves only if every attack was tried.
    """
    applicable: list[Attack] = []
    for name in ATTACKS:
        try:
            attack: Attack = ATTACKS[name]()
        except UnknownMember as error:
            raise AttackError(str(error)) from None
        try:
            attack.check(evidence)
        except AttackError:
            continue
        applicable.append(attack)
    return applicable


def restricted_to(evidence: Evidence, targets: Sequence[Target]) -> Evidence:
    """The evidence for attacks on numbers, or on the categories that targets are about.

    Columns of the other kind, and other categories, become public covariates.
    """
    if targets[0].measure == "success":
        names = {target.column for target in targets}
        kept = tuple(part for part in evidence.categories if names & set(part.model.columns))
        others = [
            part.codes[:, None].astype(np.float64)
            for part in evidence.categories
            if not names & set(part.model.columns)
        ]
        covariates = [*(part.values for part in evidence.numbers), *others]
        evidence = replace(evidence, numbers=(), categories=kept)
    else:
        covariates = [part.codes[:, None].astype(np.float64) for part in evidence.categories]
        evidence = replace(evidence, categories=())
    public = [] if evidence.public is None else [evidence.public]
    return replace(evidence, public_data=np.hstack([*public, *covariates]) if public or covariates else None)


def best_results(targets: Iterable[Target], scores: Sequence[Score]) -> list[ThresholdResult]:
    """The best of some attacks on each target; a column without any value has no result, and discloses nothing."""
    results = []
    for target in targets:
        if not is_measured(scores, target):
            raise _unmeasured(target)
        found = [ThresholdResult(target, one.attack, value) for one in scores for value in _values(target, one)]
        defined = [result for result in found if not math.isnan(result.value)]
        best = max if target.measure == "success" else min
        results += [best(defined, key=lambda result: result.value)] if defined else []
    return results


def _unmeasured(target: Target) -> AttackError:
    return AttackError(
        f"a target needs something that measures it, and nothing measures the {target.measure} of {target.column!r}; "
        "check the role of the column"
    )


def is_measured(scores: Sequence[Score], target: Target) -> bool:
    """Whether some attack measures what a target is about."""
    return any(_values(target, one) for one in scores)


def _values(target: Target, found: Score) -> list[float]:
    """What an attack achieves on a target, at the end of its confidence interval that favours the attacker."""
    if target.measure == "success":
        return [c.success.attack.high for c in found.categories if c.columns == (target.column,)]
    numbers = [number for number in found.numbers if number.column == target.column]
    return [(number.rmse if target.measure == "rmse" else number.error).attack.low for number in numbers]
