"""Verdict of an audit in three states, with what was found and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.audit.checks import Soundness
from sfumato.audit.column_risk import RECOVERED, ColumnRisk
from sfumato.audit.measures.anonymity import Anonymity
from sfumato.audit.measures.rare_values import RareValue
from sfumato.audit.outliers import SinglingOutRisk
from sfumato.audit.survival import Survival
from sfumato.risk.thresholds import ThresholdResult


@dataclass(frozen=True)
class Finding:
    """One thing that is bad: what it concerns, what was found, and what to do."""

    subject: str
    """The column, or the copies."""
    fault: str
    advice: str


BEYOND_LEVEL = 0.2
"""By so much more than its level a column may be recovered from related records before that is a finding."""

RELATED_ADVICE = (
    "perturb or coarsen public columns that many records share, or lower the level; where rows keep their order, "
    "release them in a secret one, and hide ids that follow it"
)

UNIQUE = 0.05
"""Columns released unchanged that single out a larger share of the records are quasi-identifiers to act upon."""

SURVIVING = 0.8
"""A rare value that so many of the records showing it have is a risk of singling out."""


def unsound(soundness: Soundness, paths: int) -> list[Finding]:
    """The failed checks, the copies that could not be checked, and paths on which copies add information."""
    found = [
        Finding(check.subject, check.fault, "make the copies again with this version, and keep these as evidence")
        for check in soundness.alarms
    ]
    found += [
        Finding(name, "too few records to test the noise", "audit more records (--rows)")
        for name in soundness.unchecked
    ]
    if paths > 1:
        fault = f"lie on {paths} paths with independent noise, so that each adds information"
        found.append(Finding("these copies", fault, "release copies of one scheme and key only"))
    return found


def violated(thresholds: Sequence[ThresholdResult], *, partial: bool) -> list[Finding]:
    """The thresholds of the policy that an attack breaks, or that were not tested."""
    found = [
        Finding(
            result.target.column,
            f"{result.attack} may reach {result.target.measure} {result.value:,.4g}, and the policy requires "
            f"{result.target.requirement()}",
            "lower the level, or drop the column",
        )
        for result in thresholds
        if not result.met
    ]
    if thresholds and partial:
        found.append(Finding("the policy's thresholds", "not tested: only some attacks were run", "run all attacks"))
    return found


def readable(risk: ColumnRisk, fidelity: float, *, by_rank: bool) -> Finding:
    """A column that an attack recovers, and what would hide it."""
    fault = f"{risk.attack} recovers {risk.recovered:.0%} of it"
    if fidelity > RECOVERED:
        advice = f"lower the level: at fidelity {fidelity:.2g} most of every column is meant to be readable"
    elif risk.attack == "smoothing":
        advice = RELATED_ADVICE
    elif by_rank:
        advice = "lower the level, merge its values into fewer, or drop the column"
    else:
        advice = "perturb it by its ranks (role copula), clip it, lower the level, or drop the column"
    return Finding(risk.column, fault, advice)


def disclosed_by_related_records(risks: Iterable[ColumnRisk], fidelity: float) -> list[Finding]:
    """Columns of which related records tell much more than the level means to disclose."""
    return [
        Finding(
            risk.column,
            f"related records tell {risk.recovered:.0%} of it, although the level is meant to disclose {fidelity:.0%}",
            RELATED_ADVICE,
        )
        for risk in risks
        if risk.attack == "smoothing" and risk.recovered > fidelity + BEYOND_LEVEL
    ]


def quasi_identifiers(found: Anonymity | None) -> list[Finding]:
    """Columns released unchanged that single out many records by themselves."""
    if found is None or found.population_uniques <= UNIQUE:
        return []
    fault = f"released unchanged, and these columns alone single out {found.population_uniques:.0%} of the records"
    return [Finding(", ".join(found.columns), fault, "perturb, coarsen or drop some of them")]


def standing_out(
    outliers: SinglingOutRisk | None, rare_values: Sequence[RareValue], survival: Sequence[Survival]
) -> list[Finding]:
    """Records that can be singled out: outliers, and rare values that can be named."""
    found = []
    for column in outliers.columns if outliers else ():
        if column.records:
            count = f"{column.records:,} records are outliers" if column.records > 1 else "one record is an outlier"
            clip = f"clip it to {' to '.join(map(_amount, column.clip))}" if column.clip else "top-code it"
            fault = f"{count} that the noise does not hide"
            found.append(Finding(column.column, fault, f"{clip}, or perturb it by its ranks (role copula)"))
        if column.separated:
            fault = f"{column.separated:,} records form small groups that are apart from all others"
            found.append(
                Finding(column.column, fault, "perturb it by its ranks (role copula), merge values, or drop it")
            )
    for rare in rare_values:
        fault = f"{rare.named:,} records with {rare.values} can be named, {rare.precision:.0%} of them rightly"
        found.append(Finding(rare.column, fault, "top-code it or merge rare values, or lower the level"))
    for one in survival:
        if one.measured >= SURVIVING:
            fault = f"{one.measured:.0%} of the records shown with {one.values} have it, and it is rare"
            advice = f"lower the level to {one.protective_fidelity:.2f}, or merge rare values"
            found.append(Finding(one.column, fault, advice))
    return found


def _amount(value: float) -> str:
    """A number to four digits."""
    return f"{float(f'{value:.4g}'):,.10g}"
