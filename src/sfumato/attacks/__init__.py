"""Attacks: reconstruction, attribute inference and record linkage on released copies, one attack per file.

An attack sees published models and copies, never the original, a key or the fitting of a scheme. Its estimate is
compared with the truth by `score`, which an attack never calls. A new attack is one file in this package, or an entry
point in the group `sfumato.attacks`, with one final class:

    from dataclasses import dataclass

    import numpy as np

    from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack
    from sfumato.models.gaussian_noise import GaussianNoise


    @dataclass(frozen=True, kw_only=True)
    class ColumnMean(Attack):
        \"\"\"Estimate every record by the mean of its columns.\"\"\"

        reference = "the baseline of every score"
        supports = frozenset({GaussianNoise.kind})

        def fit(self, evidence: Evidence) -> FittedAttack:
            copy = evidence.numbers[0]
            means = np.nanmean(copy.values, axis=0)

            def estimate(some: Evidence) -> Estimate:
                return Estimate(self.name, copy.columns, np.tile(means, (some.rows, 1)))

            return estimate

The command line, the audit, the documentation and the conformance tests find it by its name.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from sfumato.attacks.evidence.evidence import Categories, Evidence, Knowledge, MappedRows, Numbers, Records
from sfumato.attacks.evidence.lazy import Lazy
from sfumato.attacks.evidence.pooling import Pool, design_matrix, joint_noise, non_dominated, pool
from sfumato.attacks.evidence.prior import attribute_prior, prior_from_counts
from sfumato.attacks.evidence.simulation import simulate_copies
from sfumato.attacks.evidence.statistics import Statistics, complete_records, statistics
from sfumato.attacks.results.estimate import Estimate, Posterior, concatenate, marginal_codes
from sfumato.attacks.results.measure import Measure
from sfumato.attacks.results.score import CategoryScore, NumberScore, Score, breached, record_errors, score
from sfumato.errors import AttackError, NumericalFailure
from sfumato.family import Family
from sfumato.kernels.column_moments import column_means

__all__ = [
    "ATTACKS",
    "Attack",
    "AttackError",
    "Categories",
    "CategoryScore",
    "Estimate",
    "Evidence",
    "FittedAttack",
    "Knowledge",
    "Lazy",
    "MappedRows",
    "Measure",
    "NumberScore",
    "Numbers",
    "NumericalFailure",
    "Pool",
    "Posterior",
    "Records",
    "Score",
    "Statistics",
    "attribute_prior",
    "breached",
    "column_means",
    "complete_records",
    "concatenate",
    "design_matrix",
    "joint_noise",
    "marginal_codes",
    "non_dominated",
    "pool",
    "prior_from_counts",
    "record_errors",
    "score",
    "simulate_copies",
    "statistics",
]

FittedAttack = Callable[[Evidence], Estimate]
"""A fitted attack: it estimates any records of the same copies."""

ATTACKS = Family("sfumato.attacks", "Attack")


class Attack(abc.ABC):
    """An attack on copies, with its parameters, which are immutable."""

    reference: ClassVar[str]
    """Paper, section and equation."""
    supports: ClassVar[frozenset[str]]
    """The kinds of models that it attacks; columns of other kinds are ignored."""
    combines_copies: ClassVar[bool] = True
    """Whether several copies can give it more than their pooled copy does."""
    min_copies: ClassVar[int] = 1
    """The number of copies that it needs."""
    needs_all_records: ClassVar[bool] = False
    """Whether it must be fitted to all records rather than to a part of them."""
    needs_known_records: ClassVar[bool] = False
    """Whether it needs known records, or a sample of the population."""
    imputes_missing: ClassVar[bool] = False
    """Whether it estimates missing values too, from the other columns."""
    cost: ClassVar[float] = 0.1
    """Seconds that it takes on some 10,000 records with twenty columns, roughly: for estimates of the time left."""
    unit_tolerance: ClassVar[float] = 1e-5
    """How much estimates may change when columns are measured in other units, in standard deviations."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters other than the defaults, which the conformance suite tries."""

    @property
    def name(self) -> str:
        """The public name of the attack, that of its file with hyphens."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    @abc.abstractmethod
    def fit(self, evidence: Evidence) -> FittedAttack:
        """Estimate the parameters of the attack from all records of the evidence.

        The result estimates some records of the same copies, so that a table of any size can be attacked in batches.
        """

    def estimate(self, evidence: Evidence) -> Estimate:
        """Fit the attack to the evidence, and estimate all of its records."""
        return self.check_and_fit(evidence)(evidence)

    def check_and_fit(self, evidence: Evidence) -> FittedAttack:
        """Fit the attack to evidence that it can use; a numerical failure becomes a `NumericalFailure`."""
        self.check(evidence)
        try:
            return self.fit(evidence)
        except np.linalg.LinAlgError as error:
            raise NumericalFailure(f"the attack {self.name!r} failed numerically on these values: {error}") from None

    def check(self, evidence: Evidence) -> None:
        """Raise `AttackError` for evidence that this attack cannot use."""
        if not self.supports & set(evidence.kinds):
            raise AttackError(
                f"the attack {self.name!r} needs columns with {' or '.join(sorted(self.supports))}, and these copies "
                f"have {' and '.join(evidence.kinds) or 'no perturbed columns'}; choose another attack"
            )
        attributes = evidence.attributes().values()
        copies = max(len(evidence.numbers), len(evidence.linear_maps), *(len(parts) for parts in attributes), 0)
        if copies < self.min_copies:
            raise AttackError(
                f"the attack {self.name!r} needs at least {self.min_copies} copies, got {copies}; add another copy"
            )
        if evidence.rows < 2:
            raise AttackError(f"an attack needs at least two records, and these copies have {evidence.rows}")
        if self.needs_known_records and evidence.knowledge.known is None and evidence.knowledge.sample is None:
            raise self.lacks_known_records()

    def lacks_known_records(self) -> AttackError:
        """The error that the attack needs known records and was given none."""
        return AttackError(
            f"the attack {self.name!r} needs known records or a sample; declare some (--known 1000, or --sample)"
        )
