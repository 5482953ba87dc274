"""Audit report: a self-contained HTML page for data owners, auditors and ethics boards."""

from __future__ import annotations

import html
import math
from datetime import UTC, datetime

from sfumato import pages
from sfumato.attacks import ATTACKS, Score
from sfumato.audit import figures, messages
from sfumato.audit.column_risk import ColumnRisk
from sfumato.audit.outliers import MIN_NEIGHBOURS
from sfumato.audit.result import AttackRun, Audit
from sfumato.audit.sections import all_sections, findings_section
from sfumato.audit.sign_off import render


def page(audit: Audit) -> str:
    """The report of an audit as HTML."""
    copies = ", ".join(f"{copy.name} (fidelity {copy.fidelity:.4g})" for copy in audit.copies)
    count = "one copy" if len(audit.copies) == 1 else f"{len(audit.copies)} copies"
    today = f"{datetime.now(UTC):%d %B %Y}"
    sections = [
        *(render(section) for section in [findings_section(audit)] if section is not None),
        _alarms(audit),
        _thresholds(audit),
        _column_risks(audit),
        _single_copies(audit),
        _collusion(audit),
        _attacks(audit),
        _outliers(audit),
        _survival(audit),
        *map(render, all_sections(audit)),
        _method(audit),
    ]
    return pages.page(
        title=f"Audit of {audit.dataset}",
        subtitle=f"{today}. {audit.rows:,} records, {count}: {copies}.",
        verdict=f"{audit.state.value.upper()}. {messages.verdict(audit)}",
        failed=not audit.passed,
        body="\n".join(section for section in sections if section),
        footer=f"Made by {audit.software}. This page names outliers: it is for the data owner and the auditors only.",
    )


def _survival(audit: Audit) -> str:
    if not audit.survival:
        return ""
    rows = [
        [
            one.column,
            one.values,
            f"{one.share:.2%}",
            "-" if math.isnan(one.measured) else f"{one.measured:.0%}",
            f"{one.expected:.0%}",
            f"{one.protective_fidelity:.2f}",
        ]
        for one in audit.survival
    ]
    names = ["column", "value", "records", "precision", "expected precision", "below 50 % at fidelity"]
    return (
        "<h2>Rare and extreme values</h2>"
        "<p>In margin-preserving columns, as many records show a value in a copy as in the original, but not the same "
        "ones. <em>Precision</em> is the share of the records showing the value in the best copy that have it, "
        "counted; the <em>expected</em> one is calculated for normal scores. At the fidelity in the last column "
        "and below, most records that show the value do not have it.</p>" + pages.table(names, rows, texts=2)
    )


def _alarms(audit: Audit) -> str:
    if not audit.soundness.alarms:
        return ""
    rows = [[check.subject, check.fault, f"{check.p_value:.2g}"] for check in audit.soundness.alarms[:20]]
    more = len(audit.soundness.alarms) - len(rows)
    note = f"<p>And {more} more.</p>" if more > 0 else ""
    return "<h2>Failed checks</h2>" + pages.table(["copies and columns", "fault", "p-value"], rows, texts=2) + note


def _thresholds(audit: Audit) -> str:
    if not audit.thresholds:
        return ""
    rows = [
        [str(result.target), result.attack, f"{result.value:.4g}", "met" if result.met else "VIOLATED"]
        for result in audit.thresholds
    ]
    names = ["threshold", "best attack", "reaches", "result"]
    return "<h2>Thresholds of the policy</h2>" + pages.table(names, rows, texts=2)


def _column_risks(audit: Audit) -> str:
    if not audit.column_risks:
        return ""
    return (
        "<h2>Disclosure risk by column</h2>"
        "<p>What the best attack recovers of each column: the proportional reduction in error, compared with an "
        "attacker without a copy, from 0 % (nothing) to 100 %. <em>Independent noise</em> is that of as many copies of "
        "the same levels, if each had been perturbed independently. For numbers, the <em>residual error</em> is the "
        "mean square error of the best attack as a share of the column's variance. For categories, the "
        "<em>accuracy</em> is the share of records whose category the best attack infers correctly. A clipped column "
        "is compared with its clipped original.</p>"
        + pages.table(messages.risk_headings(), messages.risk_rows(audit.column_risks), texts=messages.TEXT_COLUMNS)
        + _value_risks(audit)
    )


def _value_risks(audit: Audit) -> str:
    """The risks of margin-preserving columns in their own values."""
    if not audit.value_risks:
        return ""
    return (
        "<p>Of margin-preserving columns, the table above measures the normal <em>scores</em> that their noise is in, "
        "which is what the level is about. Read off the published margins, such estimates tell of the values "
        "(<em>posterior</em>: the better of llse and regression, with the error that its scores have):</p>"
        + pages.table(messages.risk_headings(), messages.risk_rows(audit.value_risks), texts=messages.TEXT_COLUMNS)
    )


def _single_copies(audit: Audit) -> str:
    """The risk of each copy, if its recipient does not collude."""
    if not audit.column_risks or len(audit.copies) < 2:
        return ""
    rows = [[risk.column, *(_best_result(run, risk) for run in audit.single_copy)] for risk in audit.column_risks]
    names = [f"{copy.name} ({copy.fidelity:.4g})" for copy in audit.copies]
    return (
        "<h2>Disclosure risk by recipient, without collusion</h2>"
        "<p>What the best attack on one copy, with its fidelity, recovers; a dash where the copy does not have the "
        "column.</p>" + pages.table(["column", *names], rows, texts=1)
    )


def _best_result(run: AttackRun, risk: ColumnRisk) -> str:
    """The best attack of one adversary on a column."""
    if risk.measure == "error":
        best = min(run.residual_errors(risk.column), default=None)
    else:
        best = max(run.accuracies(risk.columns), default=None)
    return "-" if best is None else messages.share(risk.reduction(best[0]))


def _collusion(audit: Audit) -> str:
    if len(audit.copies) < 2:
        return ""
    drawn = [_figure(figures.collusion_curve(curve), _CAPTIONS[curve.measure]) for curve in audit.collusion_curves]
    if audit.error_distribution is not None:
        caption = "Distribution over records of the error of the best linear attack on all copies."
        drawn.append(_figure(figures.error_histogram(audit), caption))
    return f"<h2>Effect of collusion</h2><div class='pair'>{''.join(drawn)}</div>"


_CAPTIONS = {
    "error": "Numbers: if copies are collusion-resistant, one more copy does not reduce the residual error.",
    "reconstruction": "Categories: if copies are collusion-resistant, one more copy does not raise the mean posterior "
    "probability of the true category.",
}


def _attacks(audit: Audit) -> str:
    rows = [row for score in audit.all_copies.scores for row in _score_rows(score)]
    if not rows:
        return ""
    parts = ["<h2>Results by attack</h2>"]
    if any(score.numbers for score in audit.all_copies.scores):
        caption = (
            "Numbers: the lower the bar, the better the attack; the dashed line is an attacker without any copy. "
            "The attacks are explained at the end of this page; average and difference need two copies."
        )
        parts.append(_figure(figures.attack_bars(audit, "error"), caption))
    if any(score.categories for score in audit.all_copies.scores):
        caption = "Categories: the higher the bar, the better the attack."
        parts.append(_figure(figures.attack_bars(audit, "success"), caption))
    names = ["attack", "measure", "result", "95 % interval", "without a copy", "control"]
    table = pages.table(names, rows, texts=2)
    parts.append(f"<details><summary>All results on all copies</summary>{table}</details>")
    return "".join(parts)


def _score_rows(score: Score) -> list[list[str]]:
    """The measures of one attack, one row each."""
    rows = [(f"{number.column}, residual error", number.error) for number in score.numbers]
    for category in score.categories:
        rows.append((f"{' x '.join(category.columns)}, accuracy", category.success))
        rows.append((f"{' x '.join(category.columns)}, posterior probability of the truth", category.reconstruction))
    for name, breach in score.breaches.items():
        rows.append((f"records within {score.epsilon:.0%} ({name})", breach))
    return [
        [
            score.attack,
            label,
            f"{measured.attack.estimate:.1%}",
            f"{measured.attack.low:.1%} to {measured.attack.high:.1%}",
            f"{measured.baseline.estimate:.1%}",
            f"{measured.control.estimate:.1%}",
        ]
        for label, measured in rows
    ]


def _outliers(audit: Audit) -> str:
    if audit.singling_out is None:
        return ""
    head = "<h2>Outliers at risk of singling out</h2>"
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in messages.notes(audit))
    if not audit.singling_out.outliers:
        none = f"None: every value has at least {MIN_NEIGHBOURS} others within two noise standard deviations."
        return f"{head}<p>{none}</p>{notes}"
    rows = [[one.record, one.column, str(one.neighbours), f"{one.distance:.1f}"] for one in audit.singling_out.outliers]
    names = ["record", "column", "neighbours within the noise", "noise deviations from the median"]
    caption = "Noise does not protect records this far out; clipping the column does."
    return head + notes + _figure(figures.outlier_bars(audit), caption) + pages.table(names, rows, texts=2)


def _method(audit: Audit) -> str:
    names = sorted({score.attack for score in (*audit.all_copies.scores, *audit.independent_noise.scores)})
    rows = [[name, (ATTACKS[name].__doc__ or "").split("\n")[0], ATTACKS[name].reference] for name in names]
    skipped = "".join(
        f"<li>{html.escape(one.attack)}: {html.escape(one.reason)}</li>" for one in audit.all_copies.skipped
    )
    return (
        "<h2>Method and limits</h2>"
        f"<p>{audit.audited_rows:,} records were attacked through their copies. One in ten was held out as a control: "
        "whatever an attack infers about a record of which it has no copy, it infers without one. The attackers "
        "knew the models that every manifest publishes and, for attacks that need them, the true values of some "
        "records, which are not scored. "
        f"{len(audit.soundness.checks):,} statistical tests, with exact or conservative p-values, checked on the noise "
        f"itself that the copies match their manifests; their false-alarm rate is {messages.false_alarm_rate(audit)} "
        "per audit of sound copies. Membership is not protected. Columns released unchanged may be quasi-identifiers; "
        "they are not protected, and attacks may use them. Each record is taken for that of another person: several "
        "records of one person can be averaged by those who know that they belong together; the attack "
        f"repeated-records recognises those that are alike. {messages.UNKNOWN_RULES}</p>"
        + pages.table(["attack", "description", "reference"], rows, texts=3)
        + (f"<p>Not run on all copies:</p><ul>{skipped}</ul>" if skipped else "")
    )


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>"
