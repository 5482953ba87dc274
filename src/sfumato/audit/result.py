"""Audit result: the disclosure risk that an audit found, as a record to print, to draw and to write as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.attacks import Score
from sfumato.audit.checks import Soundness
from sfumato.audit.column_risk import RECOVERED, ColumnRisk
from sfumato.audit.field_measures import FieldMeasures
from sfumato.audit.measures.accounting import PrivacyBudget
from sfumato.audit.measures.information_loss import Utility
from sfumato.audit.outliers import SinglingOutRisk
from sfumato.audit.risk_utility import RiskUtilityPoint
from sfumato.audit.states import State
from sfumato.audit.survival import Survival
from sfumato.audit.verdict import (
    Finding,
    disclosed_by_related_records,
    quasi_identifiers,
    readable,
    standing_out,
    unsound,
    violated,
)
from sfumato.pages.described import Described, Description
from sfumato.risk.thresholds import ThresholdResult


@dataclass(frozen=True)
class HeldCopy:
    """A copy that a recipient holds, and its fidelity."""

    name: str
    """The name of the recipient, or of the file."""
    fidelity: float


@dataclass(frozen=True)
class SkippedAttack:
    """An attack without a score, and the reason."""

    attack: str
    reason: str
    failed: bool
    """Whether the attack applies to the copies but failed numerically on their values."""


@dataclass(frozen=True)
class AttackRun:
    """All attacks by one adversary on the copies that it holds."""

    adversary: str
    scores: tuple[Score, ...]
    skipped: tuple[SkippedAttack, ...] = ()

    def residual_errors(self, column: str) -> list[tuple[float, str]]:
        """The residual error of each attack on a column, as a share of its variance, with the attack's name."""
        found = [(one.number(column).error.attack.estimate, one.attack) for one in self.scores if one.has(column)]
        return [(value, name) for value, name in found if not math.isnan(value)]

    def accuracies(self, columns: tuple[str, ...]) -> list[tuple[float, str]]:
        """The accuracy of each attack on an attribute, with the attack's name."""
        found = [
            (category.success.attack.estimate, one.attack)
            for one in self.scores
            for category in one.categories
            if category.columns == columns
        ]
        return [(value, name) for value, name in found if not math.isnan(value)]


@dataclass(frozen=True)
class CollusionCurve:
    """The success of the joint attack with one copy, two copies, and so on (li2012, Figure 2; xiao2009, Figure 7)."""

    measure: str
    """`error`, or `reconstruction`, the mean probability that the posterior gives to the true category."""
    these_copies: tuple[float, ...]
    independent_noise: tuple[float, ...]


@dataclass(frozen=True)
class ErrorDistribution:
    """A histogram over records of the error of the joint attack (li2012, Figure 3)."""

    bin_edges: tuple[float, ...]
    """Errors in standard deviations of the columns."""
    these_copies: tuple[float, ...]
    """The share of records in each bin."""
    independent_noise: tuple[float, ...]
    """The share of records in each bin if the noise of the copies were independent."""


@dataclass(frozen=True, repr=False)
class Audit(Described):
    """The disclosure risk of some copies of a dataset, held by some recipients."""

    dataset: str
    rows: int
    """The number of records in the table."""
    audited_rows: int
    """The number of records that were attacked."""
    paths: int
    """The number of paths that the copies lie on; copies of one scheme and key lie on one."""
    copies: tuple[HeldCopy, ...]
    single_copy: tuple[AttackRun, ...]
    """The attacks on each copy alone."""
    all_copies: AttackRun
    """The attacks by a coalition of all recipients."""
    independent_noise: AttackRun
    """The attacks on as many copies of the same levels whose noise is independent, for comparison."""
    soundness: Soundness
    column_risks: tuple[ColumnRisk, ...]
    collusion_curves: tuple[CollusionCurve, ...]
    error_distribution: ErrorDistribution | None
    singling_out: SinglingOutRisk | None
    thresholds: tuple[ThresholdResult, ...]
    software: str
    partial: bool = False
    """Whether only some attacks were run."""
    coarsened_columns: tuple[str, ...] = ()
    """Columns of which a copy shows less than its level allows, so that other copies may show some of the rest."""
    value_risks: tuple[ColumnRisk, ...] = ()
    """The risks of margin-preserving columns in their own values; those above are in their scores."""
    survival: tuple[Survival, ...] = ()
    """Rare and extreme values of margin-preserving columns in the best copy."""
    measures: FieldMeasures | None = None
    """The field's measures of the risk of records."""
    utility: Utility | None = None
    """The utility of the best copy as it stands."""
    budget: PrivacyBudget | None = None
    """The differential privacy of a record's values."""
    without: tuple[str, ...] = ()
    """The parts of the audit that were left out."""
    risk_utility: tuple[RiskUtilityPoint, ...] = ()
    """What each level would risk and preserve, if that was asked for."""

    def description(self) -> Description:
        """What notebooks and prompts show: what is bad before what is good."""
        names = ("column", "best attack", "measure", "all copies", "recovered")
        kinds = {"error": "residual error", "success": "accuracy"}
        rows = [
            (one.column, one.attack, kinds[one.measure], f"{one.all_copies:.1%}", f"{one.recovered:.0%}")
            for one in sorted(self.column_risks, key=lambda risk: -risk.recovered)
        ]
        notes = [f"{one.subject}: {one.fault}; {one.advice}." for one in self.findings]
        facts = (f"{self.state}: {self.state.sentence.rstrip('.')}", f"{self.audited_rows:,} records attacked")
        return Description(f"Audit of {self.dataset!r}", facts, names, rows, texts=3, notes=notes)

    @property
    def collusion_gains(self) -> bool:
        """Whether recipients who combine these copies learn more than from the best of them."""
        return self.paths > 1 or bool(self.soundness.alarms)

    @property
    def worst_columns(self) -> tuple[ColumnRisk, ...]:
        """The risks of all columns, the largest share recovered first."""
        return tuple(sorted(self.column_risks, key=lambda risk: -risk.recovered))

    @property
    def disclosed_columns(self) -> tuple[ColumnRisk, ...]:
        """The columns of which an attack recovers nearly everything, the worst first."""
        risks = sorted((*self.column_risks, *self.value_risks), key=lambda risk: -risk.recovered)
        worst = {risk.column: risk for risk in reversed(risks) if risk.recovered > RECOVERED}
        return tuple(reversed(worst.values()))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is bad about the copies, the worst first.

        A column for which the policy states a threshold is judged by that one: its owner has decided what is enough.
        """
        decided = {result.target.column for result in self.thresholds}
        fidelity = max(copy.fidelity for copy in self.copies)
        disclosed = [risk for risk in self.disclosed_columns if decided.isdisjoint(risk.columns)]
        ranked = {risk.column for risk in self.value_risks}
        rare = self.measures.rare_values if self.measures else ()
        named = decided | {name for one in disclosed for name in one.columns}
        open_risks = [risk for risk in self.worst_columns if named.isdisjoint(risk.columns)]
        records = [one for one in standing_out(self.singling_out, rare, self.survival) if one.subject not in decided]
        return (
            *unsound(self.soundness, self.paths),
            *violated(self.thresholds, partial=self.partial),
            *(readable(risk, fidelity, by_rank=risk.column in ranked) for risk in disclosed),
            *disclosed_by_related_records(open_risks, fidelity),
            *quasi_identifiers(self.measures.anonymity if self.measures else None),
            *records,
        )

    @property
    def state(self) -> State:
        """The verdict."""
        if not self.soundness.sound or self.paths > 1:
            return State.UNSOUND
        return State.AT_RISK if self.findings else State.WITHIN_LIMITS

    @property
    def passed(self) -> bool:
        """Whether the copies are sound, lie on one path, are within all limits, and disclose nothing."""
        return self.state is State.WITHIN_LIMITS

    def summary(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            **asdict(self),
            "soundness": {
                "sound": self.soundness.sound,
                "checks": len(self.soundness.checks),
                "false_alarm_rate": self.soundness.false_alarm_rate,
                "alarms": [asdict(check) for check in self.soundness.alarms],
                "unchecked": self.soundness.unchecked,
            },
            "column_risks": [{**asdict(risk), "recovered": risk.recovered} for risk in self.column_risks],
            "value_risks": [{**asdict(risk), "recovered": risk.recovered} for risk in self.value_risks],
            "disclosed_columns": [risk.column for risk in self.disclosed_columns],
            "thresholds": [
                {**asdict(result), "target": str(result.target), "met": result.met} for result in self.thresholds
            ],
            "collusion_gains": self.collusion_gains,
            "state": self.state.value,
            "findings": [asdict(finding) for finding in self.findings],
            "passed": self.passed,
        }
