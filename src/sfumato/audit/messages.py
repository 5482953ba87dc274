"""Audit messages: the verdict, the table of column risks and the notes of an audit, as plain text."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np

from sfumato.audit.column_risk import RECOVERED, ColumnRisk
from sfumato.audit.field_measures import RecordRisks
from sfumato.audit.outliers import MIN_NEIGHBOURS, ColumnOutliers
from sfumato.audit.result import Audit
from sfumato.audit.survival import Survival
from sfumato.audit.verdict import quasi_identifiers

_NAMED = 5
"""The most disclosed columns that a verdict names."""

_LISTED = 12
"""The most findings that a terminal shows."""

MEASURES = {"error": "residual error", "success": "accuracy"}
"""The measures of a column's risk, as a reader knows them."""

_VISIBLE_GAIN = 0.005
"""A smaller difference between residual errors is not mentioned."""

_NOTABLY = 0.05
"""By so much more than its level a column may be recovered before the verdict names the level beside it."""

_GROUPS_MOVED = 0.2
"""A group's mean that moved by more standard deviations is named."""

_SINGLED_OUT = 0.5
"""Values that a copy shows for records that have them, with a larger share of these, are named."""

UNKNOWN_RULES = (
    "The attackers do not know the rules by which columns follow from others (a tax code, a tariff, a map): those who "
    "do may learn more. What can be computed from other columns is best left out of a release."
)

OF_SCORES = (
    "Columns with the role copula are perturbed as normal scores, which a table of many equal values determines only "
    "roughly: the share is of these scores, in the order of the values; of the values themselves it is often smaller."
)

TEXT_COLUMNS = 2
"""The number of columns of the table of risks, from the left, that hold text."""


def verdict(audit: Audit) -> str:
    """The verdict of an audit in a few sentences, what is bad before what is good."""
    closing = "Membership is not protected; the risk of each column is below."
    return " ".join([*_problems(audit), *_worst_column(audit), *_assurance(audit), closing])


def headline(audit: Audit) -> str:
    """The verdict of an audit in one sentence: the first thing that is bad, else the column at the highest risk."""
    return next(iter([*_problems(audit), *_worst_column(audit), *_assurance(audit), "There is nothing to attack."]))


def _problems(audit: Audit) -> list[str]:
    """All that is bad about the copies, in sentences, the worst first."""
    return [*_unsoundness(audit), *_violations(audit), *_disclosures(audit)]


def _unsoundness(audit: Audit) -> list[str]:
    """The failed checks, the copies that could not be checked, and the paths on which copies add information."""
    out = []
    if audit.soundness.alarms:
        first = audit.soundness.alarms[0]
        out.append(
            f"DO NOT RELEASE: {len(audit.soundness.alarms)} of {_checks(audit)} failed (false-alarm rate "
            f"{false_alarm_rate(audit)}). The smallest p-value: {first.fault} ({first.subject}). Either these copies "
            "do not match their manifests, or this is not their original."
        )
    if audit.soundness.unchecked:
        names = ", ".join(audit.soundness.unchecked)
        out.append(f"NOT CHECKED: there are too few records to test the noise of {names}.")
    if audit.paths > 1:
        out.append(
            f"COLLUSION GAINS: these copies lie on {audit.paths} paths with independent noise, so that each of them "
            "adds information to the others. Copies of one scheme and key lie on one path."
        )
    return out


def _violations(audit: Audit) -> list[str]:
    """The thresholds of the policy that an attack breaks, or that were not tested."""
    out = []
    violated = [result for result in audit.thresholds if not result.met]
    if violated:
        reasons = "; ".join(f"{result}, and the policy requires {result.target.requirement()}" for result in violated)
        out.append(f"BELOW THE POLICY'S THRESHOLDS: {reasons}.")
    if audit.thresholds and audit.partial:
        out.append("THRESHOLDS NOT TESTED: only some attacks were run; leave out --attack to run them all.")
    return out


def _disclosures(audit: Audit) -> list[str]:
    """The columns that an attack recovers, and the outliers."""
    out = []
    disclosed = audit.disclosed_columns
    if disclosed:
        named = "; ".join(_recovery(audit, risk) for risk in disclosed[:_NAMED])
        more = f"; and {len(disclosed) - _NAMED} more" if len(disclosed) > _NAMED else ""
        count = counted(len(disclosed), "column")
        out.append(f"DISCLOSED: an attack recovers more than {RECOVERED:.0%} of {count}: {named}{more}.")
    anonymity = audit.measures.anonymity if audit.measures else None
    out += [f"QUASI-IDENTIFIERS: {one.subject}: {one.fault}." for one in quasi_identifiers(anonymity)]
    rare = audit.measures.rare_values if audit.measures else ()
    if rare:
        first = rare[0]
        others = len({one.column for one in rare}) - 1
        more = f", and rare values of {counted(others, 'other column')}" if others else ""
        out.append(
            f"NAMEABLE: an attack names {counted(first.named, 'record')} with {first.column} {first.values}, "
            f"{first.precision:.0%} of them rightly{more}."
        )
    outliers = sum(column.records for column in audit.singling_out.columns) if audit.singling_out else 0
    if outliers:
        subject = "one value" if outliers == 1 else f"{outliers:,} values"
        out.append(f"OUTLIERS: {subject} that the noise does not protect from singling out.")
    return out


def _worst_column(audit: Audit) -> list[str]:
    """The column at the highest risk, where none is disclosed."""
    if audit.disclosed_columns or not audit.column_risks:
        return []
    worst, fidelity = audit.worst_columns[0], max(copy.fidelity for copy in audit.copies)
    more = f", where the level by itself discloses {fidelity:.0%}" if worst.recovered > fidelity + _NOTABLY else ""
    return [f"The column at the highest risk: {_recovery(audit, worst)}{more}."]


def _recovery(audit: Audit, risk: ColumnRisk) -> str:
    """The share of a column that the best attack recovers, such as `income 98 % (mixture)`."""
    in_values = {one.column: one for one in audit.value_risks}
    other = in_values.get(risk.column)
    scores = "" if other is None or risk is other else f" of its scores, {max(other.recovered, 0):.0%} of its values"
    return f"{risk.column} {max(risk.recovered, 0):.0%}{scores} ({risk.attack})"


def _assurance(audit: Audit) -> list[str]:
    """What the checks of sound copies on one path have shown."""
    if not audit.soundness.sound or audit.paths > 1:
        return []
    passed = f"{_checks(audit)} passed; false-alarm rate {false_alarm_rate(audit)}"
    if len(audit.copies) == 1:
        return [f"The noise matches the manifest ({passed})."]
    if audit.coarsened_columns:
        allowed = "tells no more about a record than the level of the best of them allows"
        return [f"Collusion-resistant: combining these copies {allowed} (all {passed})."]
    return [f"Collusion-resistant: combining these copies adds no information to the best of them (all {passed})."]


def _checks(audit: Audit) -> str:
    return counted(len(audit.soundness.checks), "check")


def counted(number: int, noun: str) -> str:
    """A number with its noun in the singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def false_alarm_rate(audit: Audit) -> str:
    """The probability that an audit of sound copies raises an alarm, such as 1e-6."""
    return np.format_float_scientific(audit.soundness.false_alarm_rate, trim="-", exp_digits=1)


def risk_headings() -> list[str]:
    """The column names of the table of risks."""
    return [
        *("column", "best attack"),
        *("best copy alone", "all copies", "independent noise", "which means, of all copies"),
    ]


def risk_rows(risks: Sequence[ColumnRisk]) -> list[list[str]]:
    """The table of some risks, the worst first."""
    return [_risk_row(risk) for risk in sorted(risks, key=lambda risk: -risk.recovered)]


def _risk_row(risk: ColumnRisk) -> list[str]:
    shares = (share(value) for value in (risk.recovered_alone, risk.recovered, risk.independently_recovered))
    without = f", {risk.baseline:.1%} without a copy" if risk.measure == "success" else ""
    return [risk.column, risk.attack, *shares, f"{MEASURES[risk.measure]} {risk.all_copies:.1%}{without}"]


def share(value: float) -> str:
    """A share of a column that an attack recovers; a dash where none estimates it."""
    return "-" if math.isnan(value) else f"{value:.0%}"


def notes(audit: Audit) -> list[str]:
    """Further findings of an audit, in sentences."""
    out = [f"{check.fault}: {check.subject}." for check in audit.soundness.alarms[1:6]]
    if audit.partial:
        out.append(f"Only some attacks were run: {', '.join(score.attack for score in audit.all_copies.scores)}.")
    if audit.singling_out is not None:
        out += [_outlier_note(column) for column in audit.singling_out.columns if column.records]
    out += [_pooled_note(audit, risk) for risk in audit.column_risks if _gains(audit, risk)]
    out += _group_notes(audit)
    out += [_survival_note(one) for one in audit.survival if one.expected > _SINGLED_OUT]
    out += [f"An attack failed: {skipped.reason}." for skipped in audit.all_copies.skipped if skipped.failed]
    if audit.audited_rows < audit.rows:
        out.append(
            f"{audit.audited_rows:,} of {audit.rows:,} records, a random sample, were attacked; all were searched for "
            "outliers."
        )
    return out


def _outlier_note(column: ColumnOutliers) -> str:
    """The outliers of one column, and the clip that would remove them."""
    count = f"{column.records:,} records are outliers" if column.records > 1 else "one record is an outlier"
    advice = f"; clipping the column to {_range(column.clip)} would leave none" if column.clip else ""
    return (
        f"{column.column}: {count} at risk of singling out, with fewer than {MIN_NEIGHBOURS} others within two noise "
        f"standard deviations{advice}."
    )


def _gains(audit: Audit, risk: ColumnRisk) -> bool:
    """Whether all copies show more of a column than the best one, as they may where it shows less than its level."""
    return risk.column in audit.coarsened_columns and risk.single_copy - risk.all_copies > _VISIBLE_GAIN


def _pooled_note(audit: Audit, risk: ColumnRisk) -> str:
    least = 1 - max(copy.fidelity for copy in audit.copies)
    return (
        f"{risk.column}: all copies together leave {risk.all_copies:.1%}, the best one alone {risk.single_copy:.1%}, "
        f"and its level allows no attack to leave less than {least:.1%} of the variance of its scores."
    )


def _group_notes(audit: Audit) -> list[str]:
    """The means of groups that the best copy as it stands shows wrongly."""
    changes = audit.utility.group_changes if audit.utility else ()
    moved = [f"{one.column} by {one.by} ({one.moved:+.1f})" for one in changes if abs(one.moved) > _GROUPS_MOVED]
    if not moved:
        return []
    more = f", and {len(moved) - _NAMED} more" if len(moved) > _NAMED else ""
    return [
        f"Averages of groups are not those of the original in the best copy as it stands, by up to so many standard "
        f"deviations: {', '.join(moved[:_NAMED])}{more}. Tell its recipient to ask `sfumato mine`, which allows for it."
    ]


def _survival_note(found: Survival) -> str:
    """A rare or extreme value that a copy shows mostly for records that have it."""
    counted = found.expected if math.isnan(found.measured) else found.measured
    return (
        f"{found.column}: {counted:.0%} of the records that the best copy shows with {found.values} have it, and it is "
        f"rare ({found.share:.1%}); at fidelity {found.protective_fidelity:.2f} and below, most do not."
    )


def text(audit: Audit) -> str:
    """An audit as text for a terminal."""
    copies = ", ".join(f"{copy.name} ({copy.fidelity:.4g})" for copy in audit.copies)
    parts = [f"{audit.dataset}: {copies}", "", f"{audit.state.value.upper()}: {audit.state.sentence}", verdict(audit)]
    if audit.column_risks:
        title = (
            f"Recovered by the best attack, 0 % (nothing) to 100 %{', of normal scores' if audit.value_risks else ''}"
        )
        parts += ["", table(title, risk_headings(), risk_rows(audit.column_risks), texts=TEXT_COLUMNS)]
    if audit.value_risks:
        title = "The same of the values themselves"
        parts += ["", table(title, risk_headings(), risk_rows(audit.value_risks), texts=TEXT_COLUMNS)]
    parts += ["", *_records_text(audit)]
    if audit.findings:
        rows = [[one.subject, one.fault, one.advice] for one in audit.findings[:_LISTED]]
        parts += ["", table("What to do", ["column", "finding", "advice"], rows, texts=3)]
        more = len(audit.findings) - _LISTED
        parts += [f"And {more} more, in the report (-o report.html) and in --json."] if more > 0 else []
    parts += [f"- {note}" for note in notes(audit)]
    return "\n".join(parts)


def _records_text(audit: Audit) -> list[str]:
    """What the copies tell of records, in one line for each adversary."""
    out = []
    for one in audit.measures.records if audit.measures else ():
        singled = ", ".join(f"{share(found.excess.estimate)} by {found.name}" for found in one.singling_out)
        singled = f"singled out {singled}; " if singled else ""
        out.append(
            f"Records, from {one.adversary}: {singled}linked {share(one.linkability.excess.estimate)} "
            f"(both beside records never released); the nearest one is the person's own for "
            f"{share(one.linkage.estimate)}{_by_quasi_identifiers(one)}; membership guessed at AUC "
            f"{one.membership.auc.estimate:.2f} (0.50 or less is guessing)."
        )
    return out


def _by_quasi_identifiers(one: RecordRisks) -> str:
    """What somebody learns who knows the named quasi-identifiers alone."""
    if one.quasi_linkage is None:
        return ""
    known = f", and for {share(one.quasi_linkage.estimate)} by {' and '.join(one.quasi)} alone"
    worst = max(one.quasi_inference, key=lambda risk: risk.excess.estimate, default=None)
    return known + (f" (of {worst.name} {share(max(worst.excess.estimate, 0))} inferred)" if worst else "")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> str:
    """A table for a terminal; the first `texts` columns are aligned left, as text."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.table import Table  # noqa: PLC0415

    rendered = Table(title=title or None)
    for i, head in enumerate(columns):
        rendered.add_column(head, justify="left" if i < texts else "right")
    for row in rows:
        rendered.add_row(*row)
    out = Console(file=io.StringIO(), width=120)
    out.print(rendered)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text


def _range(clip: tuple[float, float]) -> str:
    low, high = (f"{float(f'{end:.4g}'):,.10g}" for end in clip)
    return f"{low} to {high}"
