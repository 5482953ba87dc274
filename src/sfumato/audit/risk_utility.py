"""Risk-utility map: what attacks recover, and what copies preserve, over levels and mechanisms, before any release.

A point is a level of one policy: the column of which the best attack recovers most, beside the information loss of the
copy as it stands (Duncan, Keller-McNulty and Stokes 2001). It is made on a sample of the table, and tries the strongest
attacks that need no known record; the audit of what is released tries all.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import ATTACKS, Attack, AttackError, Estimate, Evidence, Records, Score, score
from sfumato.audit.calibration import CONFIDENCE, TRIAL_KEY
from sfumato.audit.measures.information_loss import Utility, utility
from sfumato.audit.measures.mixed_table import encode
from sfumato.errors import PolicyError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.models import of_type
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import copy_evidence, original_records
from sfumato.release.manifest import Manifest
from sfumato.release.perturbation import numbered_rows, perturb_sample
from sfumato.release.policy import Policy
from sfumato.release.scheme import TableScheme
from sfumato.risk.thresholds import all_estimates
from sfumato.tables.columns import with_bins
from sfumato.tables.sampling import one_in, sampled

FIDELITIES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
"""The levels of a map."""
ROWS = 5000
"""The most records that a map is made with."""
FITTED = 50_000
"""The most records that a draft is fitted to, to tell what an attacker would gain."""
_FEWEST = 20
"""The fewest records that say what an attacker would gain."""
_STRONGEST = ("latent-class", "noisy-labels", "bayes", "mixture", "collusion")
_CONTROL_ONE_IN = 5
PRESERVED, PLAIN = "margins preserved (copula)", "plain noise"
"""The ways to perturb a table that a map compares."""
STEPS = 7
"""The steps by which the highest level within a limit is found."""
_LOWEST = 0.005
"""Below this no level is proposed: hardly anything is left in a copy."""
_LOWERED = 0.97
"""By this a level is lowered until the gate's attackers, who know some records, are within the limit too."""


@dataclass(frozen=True)
class RiskUtilityPoint:
    """One level of one policy."""

    mechanism: str
    """Which policy: that of the map, or another way to perturb the same columns."""
    fidelity: float
    recovered: float
    """The share of the column that the best attack recovers most of."""
    column: str
    """That column."""
    attack: str
    utility: Utility
    accuracy: float = math.nan
    """Of a categorical column, how often the attack is right."""

    def sentence(self, limit: float) -> str:
        """What an owner can say about the level that keeps within a limit."""
        return (
            f"At fidelity {self.fidelity:g} no attack recovers more than {limit:.0%} of any column ({self.column} sets "
            f"the limit, by {self.attack}); in the copy as it stands means hold to "
            f"{self.utility.largest_mean_error:.1%} of a standard deviation, and models that are trained on it keep "
            f"{self.preserved:.0%} of what they predict."
        )

    @property
    def preserved(self) -> float:
        """The share of what models of the original predict, beyond guessing, that models of the copy predict too."""
        gains = [(model.copy - model.baseline, model.original - model.baseline) for model in self.utility.models]
        total = sum(max(original, 0.0) for _, original in gains)
        if total <= 0:
            return 1 - self.utility.propensity
        return min(sum(max(copy, 0.0) for copy, _ in gains) / total, 1.0)


@dataclass(frozen=True)
class Trial:
    """A sample of a table under one policy, to be released at any level and attacked."""

    mechanism: str
    scheme: TableScheme
    row_numbers: Words
    rows: pa.Table
    key: Key

    @classmethod
    def of(cls, mechanism: str, policy: Policy, table: Any) -> Trial:
        """Fit a policy to a table, and draw the sample."""
        source = policy.source(table)
        scheme = replace(policy, digits=16, targets=()).fit(source)
        return cls(mechanism, scheme, *sampled(numbered_rows(scheme, source), ROWS), TRIAL_KEY)

    def point(self, fidelity: float) -> RiskUtilityPoint:
        """Release the sample at a level, attack it, and compare it with the original."""
        copy, manifest = self._copy(fidelity)
        recovered, column, best, accuracy = max(_required(_recovered(_strongest(*self._evidence(copy, manifest)))))
        kept = self._utility(copy, manifest)
        return RiskUtilityPoint(self.mechanism, fidelity, recovered, column, best, kept, accuracy)

    def risk(self, fidelity: float, *, gate: bool = False) -> tuple[float, str, str]:
        """The largest share of a column that an attack recovers, that column and the attack.

        By the strongest attackers, or by all of the gate; for columns of the policy, which the gate will judge, with so
        much confidence that other noise does not change it. Whether a value is missing is no column of the policy.
        """
        estimates = all_estimates if gate else _strongest_estimates
        stated, shares = self.scheme.policy.columns, []
        for estimate, real in estimates(*self.evidence(fidelity)):
            for confidence, is_stated in ((CONFIDENCE, True), (0.95, False)):
                found = _recovered([score(estimate, real, confidence=confidence)])
                shares += [one for one in found if all(name in stated for name in one[1].split(" x ")) == is_stated]
        return max(_required(shares))[:3]

    def evidence(self, fidelity: float) -> tuple[Evidence, Records]:
        """What an attacker has at a level, and what it is after."""
        return self._evidence(*self._copy(fidelity))

    def _copy(self, fidelity: float) -> tuple[pa.Table, Manifest]:
        copy = perturb_sample(self.scheme, self.row_numbers, self.rows, [Level(fidelity)], self.key)[0]
        return copy, Manifest.of(copy)

    def _evidence(self, copy: pa.Table, manifest: Manifest) -> tuple[Evidence, Records]:
        return copy_evidence(copy, manifest), original_records(self.rows, manifest.models)

    def _utility(self, copy: pa.Table, manifest: Manifest) -> Utility:
        """What the copy preserves, with one record in five as a test of models."""
        hidden = {name for one in manifest.models if one.identifies for name in one.columns}
        names = [name for name in self.rows.column_names if name in copy.column_names and name not in hidden]
        binned = with_bins(self.rows, of_type(manifest.models, UniformReplacement))
        original, shown = encode([binned, copy], names)
        control = one_in(_CONTROL_ONE_IN, len(original))
        others = np.delete(np.arange(len(original)), control)
        return utility(original.take(others), shown.take(others), original.take(control))


def drawn(policy: Policy, table: Any) -> pa.Table:
    """The records of a table that a draft is tried on."""
    source = policy.source(table)
    _, rows = sampled(source.numbered_batches(source.schema.names), FITTED)
    if rows.num_rows < _FEWEST:
        raise PolicyError(f"attacks are tried on at least {_FEWEST} records, and the table has {rows.num_rows}")
    return rows


def gains(policy: Policy, table: Any, *, progress: Callable[[int], None] = lambda _: None) -> dict[str, list[float]]:
    """The share of each column that the best attack recovers at each level of a policy, on a sample of the table."""
    trial, found = Trial.of("", policy, drawn(policy, table)), {}
    for level in policy.ladder:
        best: dict[str, float] = {}
        for share, columns, _, _ in _required(_recovered(_strongest(*trial.evidence(level.fidelity)))):
            for column in columns.split(" x "):
                best[column] = min(max(best.get(column, 0.0), share), 1.0)
        found[level] = best
        progress(1)
    return {column: [found[level].get(column, 0.0) for level in policy.ladder] for column in found[max(policy.ladder)]}


def _strongest(evidence: Evidence, truth: Records) -> list[Score]:
    return [score(estimate, real) for estimate, real in _strongest_estimates(evidence, truth)]


def _strongest_estimates(evidence: Evidence, truth: Records) -> Iterator[tuple[Estimate, Records]]:
    for name in _STRONGEST:
        attack: Attack = ATTACKS[name]()
        with contextlib.suppress(AttackError):
            yield attack.estimate(evidence), truth


_Share = tuple[float, str, str, float]
"""The share of a column that an attack recovers, the column, the attack, and its accuracy on categories."""


def _recovered(scores: Sequence[Score]) -> list[_Share]:
    """What each attack recovers of each column, at the end of the confidence interval that favours the attacker."""
    shares = [(1 - one.error.attack.low, one.column, by.attack, math.nan) for by in scores for one in by.numbers]
    for by in scores:
        for one in by.categories:
            base, reached = one.success.baseline.estimate, one.success.attack.high
            if base < 1:
                shares.append(((reached - base) / (1 - base), " x ".join(one.columns), by.attack, reached))
    return [share for share in shares if np.isfinite(share[0])]


def _required(shares: list[_Share]) -> list[_Share]:
    """The same shares, of which there must be one."""
    if not shares:
        raise PolicyError("a map needs a perturbed column, and the policy has none; give one a role that perturbs it")
    return shares


def risk_utility_map(
    policies: Mapping[str, Policy],
    table: Any,
    *,
    fidelities: Sequence[float] = FIDELITIES,
    progress: Callable[[int], None] = lambda _: None,
) -> list[RiskUtilityPoint]:
    """The points of some policies for the same table, by the name of the way in which they perturb it."""
    points = []
    for mechanism, policy in policies.items():
        trial = Trial.of(mechanism, policy, table)
        for fidelity in fidelities:
            points.append(trial.point(fidelity))
            progress(1)
    return points


def mechanisms(policy: Policy, table: Any) -> dict[str, Policy]:
    """A policy, and what would be proposed for the same table if its columns were perturbed in the other way."""
    preserves = any(column.role == "copula" for column in policy.columns.values())
    names = [PRESERVED, PLAIN] if preserves else [PLAIN, PRESERVED]
    other = Policy.suggest(table, dataset=policy.dataset, plain_noise=preserves)
    return dict(zip(names, [policy, other], strict=True))


def highest_within(
    policy: Policy, table: Any, limit: float, *, progress: Callable[[int], None] = lambda _: None
) -> RiskUtilityPoint:
    """The highest level at which no attack recovers more than a share of any column; its column sets the limit."""
    if not 0 < limit < 1:
        raise PolicyError(f"a limit is a share between 0 and 1 that no attack may recover, got {limit:g}")
    trial = Trial.of("", policy, table)
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = round((low + high) / 2, 3)
        risk = trial.risk(middle)
        low, high = (middle, high) if risk[0] <= limit else (low, middle)
        progress(1)
    lowest = high
    while low >= _LOWEST and (risk := trial.risk(low, gate=True))[0] > limit:
        lowest, low = low, math.floor(low * _LOWERED * 1000) / 1000
    if low < _LOWEST:
        recovered, column, attack = risk
        raise PolicyError(
            f"no level keeps every column below {limit:.0%}: {attack} recovers {recovered:.0%} of {column} at fidelity "
            f"{lowest:g}; drop that column, merge its values, or clip outliers (is there a code such as 999?)"
        )
    return trial.point(low)
