"""Attack runs: every attack on the copies that each adversary holds, in parallel, scored on records it did not know."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.attacks import ATTACKS, Attack, Evidence, Records, Score, score
from sfumato.audit.best_estimates import BestEstimates
from sfumato.audit.result import AttackRun, SkippedAttack
from sfumato.audit.steps import Steps
from sfumato.errors import AttackError, NumericalFailure
from sfumato.kernels import Rows
from sfumato.kernels.threads import in_threads

Outcome = Score | SkippedAttack
"""The result of one attack by one adversary."""


@dataclass(frozen=True)
class Adversary:
    """A recipient, or a coalition of recipients, and the copies that it holds."""

    name: str
    evidence: Evidence
    is_comparison: bool = False
    """Whether the copies are simulated for comparison, and were never released."""
    equivalent: int | None = None
    """The index of the adversary whose single copy is all that these copies combine to: where an attack makes no use
    of further copies, it need not be run again."""


@dataclass(frozen=True)
class Scorer:
    """Scores attacks against the original, without the records that adversaries know."""

    truth: Records
    known_rows: Rows
    """The row indices of the records that adversaries know, which are not scored."""
    control: Records | None = None
    """Records that were held out, of which no adversary has a copy."""
    best: BestEstimates = field(default_factory=BestEstimates)
    """The best estimates from released copies so far."""

    @property
    def unknown(self) -> Rows:
        """The row indices of the records that adversaries do not know, which are scored."""
        return np.delete(np.arange(len(self.truth)), self.known_rows)

    def score(self, attack: Attack, adversary: Adversary) -> Score:
        """The score of an attack on the records that the adversary does not know."""
        estimate = attack.estimate(adversary.evidence).take(self.unknown)
        found = score(estimate, self.truth.take(self.unknown), control=self.control)
        if not adversary.is_comparison:
            self.best.offer(estimate, found)
        return found


def run_attacks(
    adversaries: Sequence[Adversary], names: Sequence[str] | None, scorer: Scorer, steps: Steps
) -> list[AttackRun]:
    """Run all attacks, or those named, by all adversaries; an attack that does not apply is reported as skipped."""
    classes = ATTACKS.members().values() if names is None else [ATTACKS[name] for name in names]
    attacks: list[Attack] = [attack_class() for attack_class in classes]
    jobs = [
        (i, attack)
        for i, adversary in enumerate(adversaries)
        for attack in attacks
        if _source(i, adversary, attack) == i
    ]

    cores = os.cpu_count() or 1

    def run(job: tuple[int, Attack]) -> Outcome:
        i, attack = job
        with steps.step(f"{attack.name} on {adversaries[i].name}", attack.cost / cores):
            return _outcome(attack, adversaries[i], scorer)

    steps.plan(sum(attack.cost for _, attack in jobs) / cores)

    found = in_threads(run, jobs)
    outcomes = {(i, attack.name): outcome for (i, attack), outcome in zip(jobs, found, strict=True)}
    return [
        _attack_run(adversary.name, (outcomes[_source(i, adversary, attack), attack.name] for attack in attacks))
        for i, adversary in enumerate(adversaries)
    ]


def _source(index: int, adversary: Adversary, attack: Attack) -> int:
    """The index of the adversary whose outcome counts: an equivalent one, unless the attack uses several copies."""
    return index if attack.combines_copies or adversary.equivalent is None else adversary.equivalent


def _outcome(attack: Attack, adversary: Adversary, scorer: Scorer) -> Outcome:
    """The score of one attack, or the reason why it could not be run."""
    try:
        return scorer.score(attack, adversary)
    except AttackError as error:
        return SkippedAttack(attack.name, str(error), failed=isinstance(error, NumericalFailure))


def _attack_run(adversary: str, outcomes: Iterator[Outcome]) -> AttackRun:
    """The outcomes of one adversary's attacks, divided into scores and skipped attacks."""
    scores: list[Score] = []
    skipped: list[SkippedAttack] = []
    for outcome in outcomes:
        if isinstance(outcome, Score):
            scores.append(outcome)
        else:
            skipped.append(outcome)
    return AttackRun(adversary, tuple(scores), tuple(skipped))
