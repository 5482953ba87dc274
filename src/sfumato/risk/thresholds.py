"""Thresholds: attack a copy before it leaves, and hold it back if an attack does better than the policy allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.attacks import ATTACKS, Attack, Evidence, Knowledge, Records, Score, score
from sfumato.errors import AttackError, ReleaseError
from sfumato.policy.targets import Target
from sfumato.tables.sampling import one_in

ROWS = 20_000
"""Records that a threshold is tested on, at most."""

KNOWN = 10
"""An attacker is assumed to know one record in so many."""


@dataclass(frozen=True)
class Reached:
    """What the best attack on a column reached."""

    target: Target
    attack: str
    value: float
    """At the end of its confidence interval that favours the attacker."""

    @property
    def met(self) -> bool:
        """Whether the target holds."""
        return self.target.met(self.value)

    def __str__(self) -> str:
        return f"{self.target.column}: the attack {self.attack} may reach {self.target.measure} {self.value:,.4g}"


def suite(evidence: Evidence) -> list[Attack]:
    """All attacks that can be made on this evidence."""
    found = []
    for name in ATTACKS.names():
        attack: Attack = ATTACKS[name]()
        try:
            attack.check(evidence)
        except AttackError:
            continue
        found.append(attack)
    return found


def reached(targets: Iterable[Target], scores: Sequence[Score]) -> list[Reached]:
    """What the best of some attacks reached of each target."""
    out = []
    for target in targets:
        if not speaks_of(scores, target):
            raise AttackError(f"no attack speaks of {target.column!r} by its {target.measure}; see the column's role")
        found = [Reached(target, one.attack, value) for one in scores for value in _values(target, one)]
        there = [one for one in found if not math.isnan(one.value)]
        best = min if target.measure != "success" else max
        out += [best(there, key=lambda one: one.value)] if there else []  # a column without any value hides nothing
    return out


def speaks_of(scores: Sequence[Score], target: Target) -> bool:
    """Whether some attack says anything about a target."""
    return any(_values(target, one) for one in scores)


def _values(target: Target, found: Score) -> list[float]:
    """What an attack reached of a target, at the end of its confidence interval that favours the attacker."""
    if target.measure == "success":
        return [c.success.attack.high for c in found.categories if c.columns == (target.column,)]
    numbers = [number for number in found.numbers if number.column == target.column]
    return [(number.rmse if target.measure == "rmse" else number.error).attack.low for number in numbers]


def focused(evidence: Evidence, measure: str) -> Evidence:
    """The evidence for attacks on numbers, or on categories: the others are only told, not guessed."""
    if measure == "success":
        told, evidence = [part.values for part in evidence.numbers], replace(evidence, numbers=())
    else:
        told = [part.codes[:, None].astype(np.float64) for part in evidence.categories]
        evidence = replace(evidence, categories=())
    shown = [] if evidence.public is None else [evidence.public]
    return replace(evidence, public=np.hstack([*shown, *told]) if shown or told else None)


def best_reached(
    targets: Sequence[Target], evidence: Evidence, truth: Records, confidence: float = 0.95
) -> list[Reached]:
    """What the best of all attacks reaches of each target."""
    found: list[Reached] = []
    for kind in ({"rmse", "error"}, {"success"}):
        asked = [target for target in targets if target.measure in kind]
        if asked:
            found += reached(asked, tried(focused(evidence, asked[0].measure), truth, confidence))
    return found


def tried(evidence: Evidence, truth: Records, confidence: float = 0.95) -> list[Score]:
    """The scores of all attacks that can be made, by attackers who know one record in ten, on the others."""
    places = one_in(KNOWN, evidence.rows)
    rest = np.delete(np.arange(evidence.rows), places)
    evidence = replace(evidence, knowledge=Knowledge(known=truth.take(places), places=places))
    real = truth.take(rest)
    return [score(attack.estimate(evidence).take(rest), real, confidence=confidence) for attack in suite(evidence)]


def hold_back(targets: Sequence[Target], evidence: Evidence, truth: Records) -> None:
    """Refuse a copy on which an attack does better than allowed, or cannot be tried."""
    try:
        broken = [one for one in best_reached(targets, evidence, truth) if not one.met]
    except AttackError as error:
        raise ReleaseError(f"the policy's thresholds could not be tested, so no copy may leave: {error}") from None
    if broken:
        said = "; ".join(f"{one}, and the policy demands {one.target.requirement()}" for one in broken)
        raise ReleaseError(f"no copy at this level may leave: {said}. Lower the level, or raise the column's scale")
