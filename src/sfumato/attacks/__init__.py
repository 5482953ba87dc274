"""Attacks: everything that is known to undo blurring, one attack a file.

An attack sees published models and copies, never the truth, a key or how a scheme was made; whether it was right is
said by `score`, which it never calls. A new attack is one file in this folder with one final class:

    @dataclass(frozen=True, kw_only=True)
    class Zero(Attack):
        reference = "nobody"
        supports = frozenset({GaussianNoise.kind})

        def prepare(self, evidence: Evidence) -> Guess:
            def guess(seen: Evidence) -> Estimate:
                return Estimate("zero", seen.columns, np.zeros((seen.rows, len(seen.columns))))

            return guess

The command line, the audit, the documentation and the conformance tests find it by its name.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from sfumato.attacks.evidence.evidence import Categories, Evidence, Knowledge, MappedRows, Numbers, Records, size_of
from sfumato.attacks.evidence.pooling import Pool, non_dominated, pool
from sfumato.attacks.evidence.prior import prior_from
from sfumato.attacks.evidence.simulation import simulated
from sfumato.attacks.evidence.statistics import means_of
from sfumato.attacks.results.estimate import Belief, Estimate, column_of, joined
from sfumato.attacks.results.score import Score, breached, record_errors, score
from sfumato.errors import AttackError
from sfumato.family import Family

__all__ = [
    "ATTACKS",
    "Attack",
    "Belief",
    "Categories",
    "Estimate",
    "Evidence",
    "Guess",
    "Knowledge",
    "Numbers",
    "Pool",
    "Records",
    "Score",
    "MappedRows",
    "breached",
    "column_of",
    "joined",
    "means_of",
    "pool",
    "prior_from",
    "record_errors",
    "score",
    "simulated",
    "size_of",
    "non_dominated",
]

Guess = Callable[[Evidence], Estimate]
"""What an attack has learnt, to be applied to any records of the same copies."""

ATTACKS = Family("sfumato.attacks", "Attack")


class Attack(abc.ABC):
    """One way to undo blurring. Its parameters are frozen."""

    reference: ClassVar[str]
    """Paper, section and equation."""
    supports: ClassVar[frozenset[str]]
    """The kinds of models it can undo; columns of other kinds it leaves alone."""
    pools: ClassVar[bool] = True
    """Whether it makes something of several copies that their pooled copy does not say."""
    fewest: ClassVar[int] = 1
    """How many copies it needs."""
    whole: ClassVar[bool] = False
    """Whether it must see all records at once to learn anything."""
    needs_known: ClassVar[bool] = False
    """Whether it needs to know some records."""

    @property
    def name(self) -> str:
        """Its public name, after its file."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    @abc.abstractmethod
    def prepare(self, evidence: Evidence) -> Guess:
        """Learn from the evidence what is to be learnt of all records together.

        What it returns gives the estimate of some records of the same copies, so that a table of any size can be
        attacked a batch at a time.
        """

    def estimate(self, evidence: Evidence) -> Estimate:
        """The guesses of all records."""
        return self.ready(evidence)(evidence)

    def ready(self, evidence: Evidence) -> Guess:
        """What `prepare` learns from evidence that fits; a failure of its arithmetic is told by the attack's name."""
        self.check(evidence)
        try:
            return self.prepare(evidence)
        except np.linalg.LinAlgError as error:
            raise AttackError(f"the attack {self.name!r} could not be tried on these numbers: {error}") from None

    def check(self, evidence: Evidence) -> None:
        """Refuse evidence that this attack cannot use."""
        if not self.supports & set(evidence.kinds):
            raise AttackError(
                f"the attack {self.name!r} undoes {' and '.join(sorted(self.supports))}, and these copies hold "
                f"{' and '.join(evidence.kinds) or 'nothing blurred'}; choose another attack"
            )
        copies = max(
            len(evidence.numbers), len(evidence.turned), *(len(parts) for parts in evidence.attributes().values()), 0
        )
        if copies < self.fewest:
            raise AttackError(f"the attack {self.name!r} needs {self.fewest} copies, got {copies}; give it another one")
        if evidence.rows < 2:
            raise AttackError(f"an attack needs at least two records, and these copies have {evidence.rows}")
        knowledge = evidence.knowledge
        if self.needs_known and knowledge.known is None and knowledge.sample is None:
            raise AttackError(
                f"the attack {self.name!r} learns from records that it knows; declare some (--known 1000, or --sample)"
            )
