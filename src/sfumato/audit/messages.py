"""An audit in words, for a terminal and a page."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

from sfumato.audit.outliers import CROWD
from sfumato.audit.result import Audit, Worth


def verdict(audit: Audit) -> str:
    """What the audit says, in a sentence."""
    checks = f"{len(audit.soundness.checks):,} checks"
    chance = f"sound copies would fail one once in {1 / audit.soundness.rate:,.0f} audits"
    if audit.soundness.alarms:
        first = audit.soundness.alarms[0]
        return (
            f"DO NOT RELEASE: {len(audit.soundness.alarms)} of {checks} failed ({chance}). The surest: {first.fault} "
            f"({first.subject}). Either these copies are not what they claim to be, or this is not their original."
        )
    if audit.soundness.unchecked:
        lost = ", ".join(audit.soundness.unchecked)
        return f"NOT CHECKED: too few records to test the noise of {lost}; see what the attacks found."
    if audit.paths > 1:
        return (
            f"POOLING GAINS: these copies lie on {audit.paths} paths, whose noise is independent, so that each tells "
            "something that the others do not. Copies of one scheme and key lie on one."
        )
    broken = [reached for reached in audit.targets if not reached.met]
    if broken:
        said = "; ".join(f"{one}, where {one.target.requirement()} is demanded" for one in broken)
        return f"BELOW THE POLICY'S THRESHOLDS: {said}."
    if audit.targets and audit.partial:
        return "THRESHOLDS NOT JUDGED: only some attacks were tried; leave out --attack to try them all."
    if len(audit.copies) == 1:
        return f"Sound: the copy is what its manifest says ({checks}; {chance}).{_rest(audit)}"
    return f"Pooling gains nothing: all {checks} passed ({chance}).{_rest(audit)}"


def _rest(audit: Audit) -> str:
    """What a good verdict does not speak of."""
    lonely = sum(column.records for column in audit.exposure.columns) if audit.exposure else 0
    open_ = [worth.column for worth in audit.worth if worth.recovered > 0.9]
    lost = f" BUT {len(open_)} columns are recovered to more than 90 %: {', '.join(open_[:5])}" if open_ else ""
    lost += (", and more." if len(open_) > 5 else ".") if open_ else ""
    outliers = f" But noise does not hide everybody: {lonely:,} values stand out." if lonely else ""
    return f"{lost}{outliers} What the copies give away by themselves is below."


def heads() -> list[str]:
    """Of the table of columns."""
    return ["column", "measure", "no copy", "one copy alone", "all together", "independent", "best attack", "recovered"]


def lines(audit: Audit) -> list[list[str]]:
    """What each column is worth to an attacker."""
    return [_line(worth) for worth in audit.worth]


def _line(worth: Worth) -> list[str]:
    values = (worth.baseline, worth.alone, worth.pooled, worth.independent)
    measure = "error left" if worth.measure == "error" else "guessed right"
    return [
        worth.column,
        measure,
        *("-" if math.isnan(value) else f"{value:.1%}" for value in values),
        worth.attack,
        f"{worth.recovered:.0%}",
    ]


def notes(audit: Audit) -> list[str]:
    """What else is worth saying."""
    out = [f"{check.fault}: {check.subject}." for check in audit.soundness.alarms[1:6]]
    if audit.partial:
        out.append(f"Only some attacks were tried: {', '.join(score.attack for score in audit.pooled.scores)}.")
    if audit.exposure is not None:
        for column in audit.exposure.columns:
            if column.records:
                hint = f"; clipped to {_range(column.clip)}, none would" if column.clip else ""
                many = f"{column.records:,} records stand" if column.records > 1 else "one record stands"
                out.append(
                    f"{column.column}: {many} out of the noise, with fewer than {CROWD} others within two noise "
                    f"deviations{hint}."
                )
    failed = [(name, why) for name, why in audit.pooled.skipped if "could not be tried" in why]
    out += [f"{why[0].upper()}{why[1:]}." for _, why in failed]
    if audit.audited < audit.rows:
        share = f"{audit.audited:,} of {audit.rows:,} records, chosen at random, were attacked"
        out.append(f"{share}; all were looked at for outliers.")
    return out


def text(audit: Audit) -> str:
    """For a terminal."""
    held = ", ".join(f"{copy.name} ({copy.fidelity:.4g})" for copy in audit.copies)
    parts = [f"{audit.dataset}: {held}", "", verdict(audit)]
    parts += ["", table("What the best attack finds out", heads(), lines(audit), texts=2)] if audit.worth else []
    parts += [f"- {note}" for note in notes(audit)]
    return "\n".join(parts)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> str:
    """A table for a terminal; the first `texts` columns are words."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.table import Table  # noqa: PLC0415

    shown = Table(title=title or None)
    for i, head in enumerate(columns):
        shown.add_column(head, justify="left" if i < texts or head == "best attack" else "right")
    for row in rows:
        shown.add_row(*row)
    out = Console(file=io.StringIO(), width=120)
    out.print(shown)
    text: str = out.file.getvalue()  # type: ignore[attr-defined]
    return text


def _range(clip: tuple[float, float]) -> str:
    low, high = (f"{float(f'{end:.4g}'):,.10g}" for end in clip)
    return f"{low} to {high}"
