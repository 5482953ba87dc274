"""Report of a profile: as text for a terminal, and as one self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sfumato import pages
from sfumato.kernels.intervals import Interval
from sfumato.mining.report.estimates import QUANTILES, Category, Number, Profile
from sfumato.mining.report.figures import density_figure, frequency_figure, relation_figure

TITLE = "Statistical profile of"
"""The beginning of a page's title, by which an earlier page is recognised."""

_SECONDS = {"day": 86400.0, "second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}

_SUPPORTED = "What this trust level supports"
_UNSUPPORTED = "What it does not support"
_FOOTER = (
    "All figures estimate statistics of the original, corrected for the noise of the copy; none is about a record."
)
_RELIABILITY = (
    "Reliability is the share of what varies in the copy that is the original's, the rest being noise; of a category, "
    "the share of records in which it was retained rather than drawn at random."
)
_PRESERVED = "Its margin is preserved: the copy's own statistics are the estimates, with any software."
_CAPTION = (
    "The length of the black bar is the standard deviation of the noise: narrower features are not resolved, and next "
    "to a discontinuity the curve may overshoot."
)


def heading(profile: Profile) -> str:
    """The dataset, trust level and confidence level of a profile."""
    level = f"at trust level {profile.manifest.level!r}, " if profile.manifest.level else "with "
    return (
        f"{profile.rows:,} records of {profile.manifest.dataset}, estimated from a copy {level}fidelity "
        f"{profile.manifest.fidelity:.4g}; {profile.confidence:.0%} confidence intervals."
    )


def text(profile: Profile) -> str:
    """The profile for a terminal."""
    lines = [heading(profile)]
    if profile.numbers:
        heads = ("mean", "standard deviation", "median")
        is_noisy = any(map(_reliability, profile.numbers))
        reliability = f"{'reliability':>12}" if is_noisy else ""
        lines += ["", f"{'numeric column':<18}{reliability}" + "".join(f"{head:>38}" for head in heads)]
        for n in profile.numbers:
            cells = "".join(f"{cell:>38}" for cell in _cells(n))
            lines += [f"{n.name[:17]:<18}{f'{_reliability(n):>12}' if is_noisy else ''}{cells}"]
    for category in profile.categories:
        lines += ["", *_category_lines(category)]
    if profile.pairs:
        lines += ["", "strongest relations"]
        lines += [
            f"  {f'{p.one} and {p.other}':<40}{p.named_measure:<20}{_number(p.correlation)}" for p in profile.pairs
        ]
    lines += ["", *_limit_lines(profile)]
    lines += [f"{_SUPPORTED}:", *(f"  {sentence}" for sentence in profile.supported or ("nothing",))]
    lines += [f"{_UNSUPPORTED}:", *(f"  {sentence}" for sentence in profile.unsupported or ("no restrictions",))]
    return "\n".join(lines)


def _limit_lines(profile: Profile) -> list[str]:
    """What is not known of columns, those together of which the same is to be said."""
    about: dict[str, list[str]] = {}
    columns: list[Number | Category] = [*profile.numbers, *profile.categories]
    for column in columns:
        for limit in column.limits:
            about.setdefault(limit, []).append(column.name)
    if not about:
        return []
    return ["What to know of single columns:", *(f"  {', '.join(names)}: {why}" for why, names in about.items()), ""]


def _reliability(column: Number | Category) -> str:
    return "" if column.reliability is None else f"{column.reliability:.0%}"


def _category_lines(category: Category) -> list[str]:
    unlisted = f", {category.unlisted:,} more categories not listed" if category.unlisted else ""
    pairs = zip(category.values, category.frequencies, strict=True)
    rows = [f"  {value[:30]:<32}{_percentage(interval)}" for value, interval in pairs]
    kept = f", retained in {_reliability(category)} of records" if category.reliability is not None else ""
    return [f"{category.name}{kept}{unlisted}", *(rows or ["  frequencies cannot be estimated at this trust level"])]


def page(profile: Profile) -> str:
    """The profile as an HTML page."""
    return pages.page(
        title=f"{TITLE} {profile.manifest.dataset}",
        verdict=heading(profile),
        body=_body(profile),
        footer=f"Made by {profile.manifest.software}. {_FOOTER}",
    )


def fragment(profile: Profile) -> str:
    """The profile as a part of a page, such as a notebook."""
    return f"<div><p><strong>{html.escape(heading(profile))}</strong></p>{_body(profile)}<p>{_FOOTER}</p></div>"


def _body(profile: Profile) -> str:
    columns = [*map(_number_section, profile.numbers), *map(_category_section, profile.categories)]
    parts = [_overview(profile), relation_figure(profile.pairs), _relations(profile), *columns, _capabilities(profile)]
    return "\n".join(part for part in parts if part)


def _overview(profile: Profile) -> str:
    """One line for each column: how reliable it is, and what is most worth knowing of it."""
    rows = [[n.name, "number", _reliability(n) or "100%", _mean(n), _median(n)] for n in profile.numbers]
    for c in profile.categories:
        first = f"{c.values[0]}: {_percentage(c.frequencies[0])}" if c.values else "unknown"
        rows.append([c.name, "category", _reliability(c) or "100%", first, ""])
    names = ["column", "kind", "reliability", "mean, or the most frequent category", "median"]
    return f"<h2>Columns</h2>{pages.table(names, rows, texts=2)}<p class=secondary>{_RELIABILITY}</p>"


def _mean(number: Number) -> str:
    return _value(number.mean, number.unit)


def _median(number: Number) -> str:
    return _cells(number)[2]


def _capabilities(profile: Profile) -> str:
    def section(title: str, sentences: Sequence[str]) -> str:
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
        return f"<section><h2>{title}</h2><ul>{items}</ul></section>" if sentences else ""

    sections = section(_SUPPORTED, profile.supported) + section(_UNSUPPORTED, profile.unsupported)
    return f'<div class="pair">{sections}</div>'


def _number_section(number: Number) -> str:
    headers = ["mean", "standard deviation", *(f"{q:.0%} quantile" for q in QUANTILES[: len(number.quantiles)])]
    cells = [_value(number.mean, number.unit), _deviation(number), *(_value(q, number.unit) for q in number.quantiles)]
    rows = "".join(f"<tr><th scope=row>{h}</th><td>{c}</td></tr>" for h, c in zip(headers, cells, strict=True))
    how = [_PRESERVED] if number.preserved else [] if number.noisy else ["Released unchanged."]
    shared = ", ".join(f"{value:g} ({share:.0%})" for value, share in number.special)
    how += [f"Many records share a value, as the owner states: {shared}."] if shared else []
    return _section(
        number.name, f"<table>{rows}</table>", density_figure(number), _CAPTION, notes=(*how, *number.limits)
    )


def _notes(sentences: Sequence[str]) -> str:
    """Sentences below a column."""
    return "".join(f"<p class=secondary>{html.escape(sentence)}</p>" for sentence in sentences)


def _category_section(category: Category) -> str:
    need = (
        f"Counts are known within ±10% for categories with {category.rows_for_count:,} or more rows."
        if category.rows_for_count
        else "No category has enough rows for its count to be known within ±10%."
    )
    unlisted = f" {category.unlisted:,} more categories are not listed." if category.unlisted else ""
    pairs = zip(category.values, category.frequencies, strict=True)
    rows = "".join(f"<tr><th scope=row>{html.escape(v)}</th><td>{_percentage(i)}</td></tr>" for v, i in pairs)
    known = (*category.limits, *([] if category.reliability is None else [f"{need}{unlisted}"]))
    return _section(category.name, f"<table>{rows}</table>", frequency_figure(category), notes=known)


def _relations(profile: Profile) -> str:
    rows = [[f"{p.one} and {p.other}", p.named_measure, _number(p.correlation)] for p in profile.pairs]
    return pages.table(["columns", "measure", "strength"], rows, texts=2) if rows else ""


def _section(title: str, table: str, picture: str, caption: str = "", notes: Sequence[str] = ()) -> str:
    figure = f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" if picture else ""
    return f'<h2>{html.escape(title)}</h2><div class="pair"><div>{table}</div>{figure}</div>{_notes(notes)}'


def _cells(number: Number) -> list[str]:
    unknown = "not at this trust level"
    median = _value(number.quantiles[len(QUANTILES) // 2], number.unit) if number.quantiles else unknown
    return [_value(number.mean, number.unit), _deviation(number), median]


def _value(interval: Interval, unit: str) -> str:
    """A number with its interval, or a date if the column holds dates or times."""
    if not unit:
        return _number(interval)
    epoch, seconds = datetime(1970, 1, 1, tzinfo=UTC), _SECONDS[unit]
    days = [epoch + timedelta(seconds=seconds * end) for end in (interval.estimate, interval.low, interval.high)]
    estimate, low, high = (f"{day:%Y-%m-%d}" for day in days)
    return f"{estimate} ({low} to {high})"


def _deviation(number: Number) -> str:
    """A standard deviation with its interval; in days if the column holds dates or times."""
    if not number.unit:
        return _number(number.standard_deviation)
    return f"{_number(number.standard_deviation.scaled(_SECONDS[number.unit] / _SECONDS['day']))} days"


def _number(interval: Interval) -> str:
    ends = (interval.estimate, interval.low, interval.high)
    estimate, low, high = (f"{end:,.0f}" if 1000 <= abs(end) < 1e12 else f"{end:.4g}" for end in ends)
    return estimate if interval.low == interval.high else f"{estimate} ({low} to {high})"


def _percentage(interval: Interval) -> str:
    if interval.low == interval.high:
        return f"{interval.estimate:.1%}"
    return f"{interval.estimate:.1%} ({interval.low:.1%} to {interval.high:.1%})"
