"""Trying attacks: each on each piece of evidence, on all cores, scored on what the attackers did not know."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from sfumato.attacks import ATTACKS, Attack, Evidence, Records, Score, score
from sfumato.audit.result import AttackRun
from sfumato.errors import AttackError
from sfumato.kernels import Rows


@dataclass(frozen=True)
class Case:
    """What somebody holds."""

    holder: str
    evidence: Evidence
    like: int | None = None
    """The place of a case whose only copy is what these copies pool to: most attacks need not be tried again."""


@dataclass(frozen=True)
class Scorer:
    """Knows the truth."""

    truth: Records
    known: Rows
    """The places of the records that attackers know, and that do not count."""
    control: Records | None = None

    def score(self, attack: Attack, evidence: Evidence) -> Score:
        """How right an attack is about the records that are not known."""
        rest = np.delete(np.arange(evidence.rows), self.known)
        return score(attack.estimate(evidence).take(rest), self.truth.take(rest), control=self.control)


def run_attacks(
    cases: Sequence[Case], names: Sequence[str] | None, scorer: Scorer, stage: Callable[[str], None]
) -> list[AttackRun]:
    """All attacks on all cases; an attack that does not fit a case says nothing of it."""
    attacks: list[Attack] = [ATTACKS[name]() for name in (ATTACKS.names() if names is None else names)]
    due = [(i, attack) for i, case in enumerate(cases) for attack in attacks if attack.pools or case.like is None]

    def attempt(job: tuple[int, Attack]) -> Score | str:
        case, attack = cases[job[0]], job[1]
        stage(f"{attack.name} on {case.holder}")
        try:
            return scorer.score(attack, case.evidence)
        except AttackError as error:
            return str(error)

    # one attack a core: a library that started threads of its own for each would only get in the way
    with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
        found = {(i, attack.name): done for (i, attack), done in zip(due, pool.map(attempt, due), strict=True)}

    out = []
    for i, case in enumerate(cases):
        places = [(i if case.like is None or attack.pools else case.like, attack.name) for attack in attacks]
        done = [(name, found[place, name]) for place, name in places]
        scores = tuple(result for _, result in done if isinstance(result, Score))
        out.append(AttackRun(case.holder, scores, tuple((n, reason) for n, reason in done if isinstance(reason, str))))
    return out
