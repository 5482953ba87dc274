"""The report of an audit: one page that needs nothing else, for owners, auditors and ethics boards."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime

from sfumato import pages
from sfumato.attacks import ATTACKS, Score
from sfumato.audit import figures as pictures
from sfumato.audit import messages as words
from sfumato.audit.result import AttackRun, Audit, Worth


def page(audit: Audit) -> str:
    """The report."""
    copies = ", ".join(f"{copy.name} (fidelity {copy.fidelity:.4g})" for copy in audit.copies)
    today = f"{datetime.now(UTC):%d %B %Y}"
    parts = [
        _alarms(audit),
        _targets(audit),
        _columns(audit),
        _holders(audit),
        _pooling(audit),
        _attacks(audit),
        _exposed(audit),
    ]
    return pages.page(
        title=f"Audit of {audit.dataset}",
        subtitle=f"{today}. {audit.rows:,} records, {len(audit.copies)} copies: {copies}.",
        verdict=words.verdict(audit),
        bad=not audit.passed,
        body="\n".join(part for part in (*parts, _method(audit)) if part),
        foot=f"Made by {audit.software}. This page names records that stand out: it is for the owner and the auditors.",
    )


def _alarms(audit: Audit) -> str:
    if not audit.soundness.alarms:
        return ""
    rows = [[check.subject, check.fault, f"{check.p:.2g}"] for check in audit.soundness.alarms[:20]]
    more = len(audit.soundness.alarms) - len(rows)
    note = f"<p>And {more} more.</p>" if more > 0 else ""
    return "<h2>What is wrong</h2>" + _table(["copies and columns", "fault", "p"], rows, texts=2) + note


def _targets(audit: Audit) -> str:
    if not audit.targets:
        return ""
    rows = [
        [str(one.target), one.attack, f"{one.value:.4g}", "holds" if one.met else "BROKEN"] for one in audit.targets
    ]
    return "<h2>The policy's thresholds</h2>" + _table(["threshold", "best attack", "reaches", ""], rows, texts=2)


def _columns(audit: Audit) -> str:
    if not audit.worth:
        return ""
    return (
        "<h2>What each column is worth to an attacker</h2>"
        "<p>For numbers, the mean square error that the best attack leaves, as a share of the column's variance (100 % "
        "is what a guess without any copy leaves); for categories, how often the best guess is right. "
        "<em>Recovered</em> is how much of what is unknown without a copy is found out with all of them. "
        "<em>Independent</em> is what copies as faithful as these would give away together if each had been blurred "
        "by itself, as other tools do. A clipped column is held against its clipped original.</p>"
        + _table(words.heads(), words.lines(audit), texts=2)
    )


def _holders(audit: Audit) -> str:
    """What each holder finds out alone."""
    rows = []
    for worth in audit.worth:
        found = [_alone(trial, worth) for trial in audit.alone]
        rows.append([worth.column, "error left" if worth.measure == "error" else "guessed right", *found])
    if not rows or len(audit.copies) < 2:
        return ""
    names = [f"{copy.name} ({copy.fidelity:.4g})" for copy in audit.copies]
    return (
        "<h2>What each holder finds out alone</h2>"
        "<p>The best attack on one copy, with its fidelity; a dash where the copy does not show the column.</p>"
        + _table(["column", "measure", *names], rows, texts=2)
    )


def _alone(trial: AttackRun, worth: Worth) -> str:
    if worth.measure == "error":
        reached = min(trial.errors(worth.column), default=None)
    else:
        reached = max(trial.successes(tuple(worth.column.split(" x "))), default=None)
    return "-" if reached is None else f"{reached[0]:.1%}"


def _pooling(audit: Audit) -> str:
    if len(audit.copies) < 2:
        return ""
    figures = [_figure(pictures.growth(found), _GROWTH[found.measure]) for found in audit.growth]
    if audit.spread is not None:
        figures.append(
            _figure(pictures.spread(audit), "How far off the joint estimate of a record is, over all records.")
        )
    return f"<h2>What pooling gives</h2><div class='pair'>{''.join(figures)}</div>"


_GROWTH = {
    "error": "One more copy should leave the line where it is: pooled copies tell what the best one tells.",
    "reconstruction": "The same for categories: the probability that the joint posterior gives to the truth.",
}


def _attacks(audit: Audit) -> str:
    out = ["<h2>Attack by attack</h2>"]
    if any(score.numbers for score in audit.pooled.scores):
        note = (
            "Numbers: a lower bar is better for the attacker; at the dashed line, a guess without any copy is as good. "
            "The attacks are explained at the end of this page; average and difference need two copies."
        )
        out.append(_figure(pictures.bars(audit, "error"), note))
    if any(score.categories for score in audit.pooled.scores):
        out.append(_figure(pictures.bars(audit, "success"), "Categories: higher bars are better for the attacker."))
    rows = [row for score in audit.pooled.scores for row in _score_rows(score)]
    names = ["attack", "on", "result", "95 % interval", "no copy", "control"]
    table = f"<details><summary>Every figure, on all copies together</summary>{_table(names, rows, texts=2)}</details>"
    return "".join(out) + table if rows else ""


def _score_rows(score: Score) -> list[list[str]]:
    rows = [(f"{number.column}, error left", number.error) for number in score.numbers]
    for category in score.categories:
        rows.append((f"{' x '.join(category.columns)}, guessed right", category.success))
        rows.append((f"{' x '.join(category.columns)}, probability of the truth", category.reconstruction))
    for name, breach in score.breaches.items():
        rows.append((f"records within {score.epsilon:.0%} ({name})", breach))
    return [
        [
            score.attack,
            label,
            f"{found.attack.value:.1%}",
            f"{found.attack.low:.1%} to {found.attack.high:.1%}",
            f"{found.baseline.value:.1%}",
            f"{found.control.value:.1%}",
        ]
        for label, found in rows
    ]


def _exposed(audit: Audit) -> str:
    if audit.exposure is None:
        return ""
    said = "".join(f"<p>{html.escape(note)}</p>" for note in words.notes(audit))
    if not audit.exposure.outliers:
        return (
            f"<h2>Records that stand out</h2><p>None: every value has at least five others within the noise.</p>{said}"
        )
    rows = [[one.record, one.column, str(one.others), f"{one.distance:.1f}"] for one in audit.exposure.outliers]
    return (
        "<h2>Records that stand out</h2>"
        + said
        + _figure(pictures.exposed(audit), "Noise does not hide who lies this far out; clipping does.")
        + _table(["record", "column", "others within the noise", "noise deviations from the middle"], rows, texts=2)
    )


def _method(audit: Audit) -> str:
    names = sorted({score.attack for score in (*audit.pooled.scores, *audit.independent.scores)})
    rows = [[name, (ATTACKS[name].__doc__ or "").split("\n")[0], ATTACKS[name].reference] for name in names]
    skipped = "".join(f"<li>{html.escape(name)}: {html.escape(why)}</li>" for name, why in audit.pooled.skipped)
    return (
        "<h2>How it was done</h2>"
        f"<p>{audit.audited:,} records were taken with the copies that were made of them. One in ten was kept from "
        "the attackers as a control: what an attack finds of a record that it never saw a copy of, it would find "
        "anyway. The attackers knew the models that every manifest publishes and, for attacks that need it, "
        "the truth about some of the records, which then do not count. Whether copies are what they claim to be was "
        f"checked {len(audit.soundness.checks):,} times on their noise itself, with exact or conservative p-values; "
        f"sound copies raise an alarm once in {1 / audit.soundness.rate:,.0f} audits.</p>"
        + _table(["attack", "what it does", "after"], rows, texts=3)
        + (f"<p>Not tried on all copies together:</p><ul>{skipped}</ul>" if skipped else "")
    )


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        kinds = ["text" if i < texts else "" for i in range(len(row))]
        marks = [f' class="{kind}"' if kind else "" for kind in kinds]
        return "".join(f"<{tag}{mark}>{html.escape(cell)}</{tag}>" for mark, cell in zip(marks, row, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{cells('th', names)}</tr></thead><tbody>{body}</tbody></table></div>"
