"""Audit messages: the verdict, the table of column risks and the notes of an audit, as plain text."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np

from sfumato.audit.outliers import MIN_NEIGHBOURS, ColumnOutliers
from sfumato.audit.result import Audit, ColumnRisk

RECOVERED = 0.9
"""A verdict names the columns of which an attack recovers more than this."""

MEASURES = {"error": "residual error", "success": "accuracy"}
"""The measures of a column's risk, as a reader knows them."""

TEXT_COLUMNS = 3
"""The number of columns of the table of risks, from the left, that hold text."""


def verdict(audit: Audit) -> str:
    """The verdict of an audit in a few sentences, what is bad before what is good."""
    checks = f"{len(audit.soundness.checks):,} checks"
    rate = f"false-alarm rate {false_alarm_rate(audit)}"
    if audit.soundness.alarms:
        first = audit.soundness.alarms[0]
        return (
            f"DO NOT RELEASE: {len(audit.soundness.alarms)} of {checks} failed ({rate}). The smallest p-value: "
            f"{first.fault} ({first.subject}). Either these copies do not match their manifests, or this is not their "
            "original."
        )
    if audit.soundness.unchecked:
        names = ", ".join(audit.soundness.unchecked)
        return f"NOT CHECKED: there are too few records to test the noise of {names}; see the results of the attacks."
    if audit.paths > 1:
        return (
            f"COLLUSION GAINS: these copies lie on {audit.paths} paths with independent noise, so that each of them "
            "adds information to the others. Copies of one scheme and key lie on one path."
        )
    violated = [result for result in audit.thresholds if not result.met]
    if violated:
        reasons = "; ".join(f"{result}, and the policy requires {result.target.requirement()}" for result in violated)
        return f"BELOW THE POLICY'S THRESHOLDS: {reasons}."
    if audit.thresholds and audit.partial:
        return "THRESHOLDS NOT TESTED: only some attacks were run; leave out --attack to run them all."
    if len(audit.copies) == 1:
        good = f"Sound: the copy matches its manifest ({checks} passed; {rate})."
    else:
        good = (
            "Collusion-resistant: combining these copies adds no information to the best of them (all "
            f"{checks} passed; {rate})."
        )
    return " ".join([*_open_risks(audit), good, "Membership is not protected; the risk of each column is below."])


def _open_risks(audit: Audit) -> list[str]:
    """The disclosure risks of sound copies, in sentences."""
    risks = []
    open_columns = [risk.column for risk in audit.column_risks if risk.recovered > RECOVERED]
    if open_columns:
        names = f"{', '.join(open_columns[:5])}{', and more' if len(open_columns) > 5 else ''}"
        risks.append(f"AT RISK: an attack recovers more than {RECOVERED:.0%} of {len(open_columns)} columns: {names}.")
    outliers = sum(column.records for column in audit.singling_out.columns) if audit.singling_out else 0
    if outliers:
        risks.append(f"AT RISK: {outliers:,} values are outliers that the noise does not protect from singling out.")
    return risks


def false_alarm_rate(audit: Audit) -> str:
    """The probability that an audit of sound copies raises an alarm, such as 1e-6."""
    return np.format_float_scientific(audit.soundness.false_alarm_rate, trim="-", exp_digits=1)


def risk_headings() -> list[str]:
    """The column names of the table of risks."""
    return [
        *("column", "measure", "best attack"),
        *("without a copy", "best single copy", "all copies", "independent noise", "recovered"),
    ]


def risk_rows(audit: Audit) -> list[list[str]]:
    """The table of risks, one row per column of the dataset."""
    return [_risk_row(risk) for risk in audit.column_risks]


def _risk_row(risk: ColumnRisk) -> list[str]:
    values = (risk.baseline, risk.single_copy, risk.all_copies, risk.independent_noise)
    shares = ("-" if math.isnan(value) else f"{value:.1%}" for value in values)
    return [risk.column, MEASURES[risk.measure], risk.attack, *shares, f"{risk.recovered:.0%}"]


def notes(audit: Audit) -> list[str]:
    """Further findings of an audit, in sentences."""
    out = [f"{check.fault}: {check.subject}." for check in audit.soundness.alarms[1:6]]
    if audit.partial:
        out.append(f"Only some attacks were run: {', '.join(score.attack for score in audit.all_copies.scores)}.")
    if audit.singling_out is not None:
        out += [_outlier_note(column) for column in audit.singling_out.columns if column.records]
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


def text(audit: Audit) -> str:
    """An audit as text for a terminal."""
    copies = ", ".join(f"{copy.name} ({copy.fidelity:.4g})" for copy in audit.copies)
    parts = [f"{audit.dataset}: {copies}", "", verdict(audit)]
    if audit.column_risks:
        title = "Disclosure risk by the best attack"
        parts += ["", table(title, risk_headings(), risk_rows(audit), texts=TEXT_COLUMNS)]
    parts += [f"- {note}" for note in notes(audit)]
    return "\n".join(parts)


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
