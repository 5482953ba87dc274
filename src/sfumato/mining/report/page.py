"""Report of a profile: as text for a terminal, and as one self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sfumato import pages
from sfumato.kernels.intervals import Interval
from sfumato.mining.report.figures import density_figure, frequency_figure
from sfumato.mining.report.profile import QUANTILES, Category, Number, Pair, Profile

TITLE = "Statistical profile of"
"""The beginning of a page's title, by which an earlier page is recognised."""

_SECONDS = {"day": 86400.0, "second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}

_SUPPORTED = "What this trust level supports"
_UNSUPPORTED = "What it does not support"
_FOOTER = (
    "All figures estimate statistics of the original, corrected for the noise of the copy; none is about a record."
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
        lines += ["", f"{'numeric column':<18}{'mean':>38}{'standard deviation':>38}{'median':>38}"]
        lines += [f"{n.name[:17]:<18}" + "".join(f"{cell:>38}" for cell in _cells(n)) for n in profile.numbers]
    for category in profile.categories:
        lines += ["", *_category_lines(category)]
    if profile.pairs:
        lines += ["", "correlations"]
        lines += [f"  {_pair(p)}: {_number(p.correlation)}" for p in profile.pairs]
    lines += ["", f"{_SUPPORTED}:", *(f"  {sentence}" for sentence in profile.supported or ("nothing",))]
    lines += [f"{_UNSUPPORTED}:", *(f"  {sentence}" for sentence in profile.unsupported or ("no restrictions",))]
    return "\n".join(lines)


def _category_lines(category: Category) -> list[str]:
    unlisted = f", {category.unlisted:,} more categories not listed" if category.unlisted else ""
    pairs = zip(category.values, category.frequencies, strict=True)
    rows = [f"  {value[:30]:<32}{_percentage(interval)}" for value, interval in pairs]
    return [f"{category.name}{unlisted}", *(rows or ["  frequencies cannot be estimated at this trust level"])]


def page(profile: Profile) -> str:
    """The profile as an HTML page."""
    columns = [*map(_number_section, profile.numbers), *map(_category_section, profile.categories)]
    parts = [_capabilities(profile), *columns, _correlations(profile)]
    return pages.page(
        title=f"{TITLE} {profile.manifest.dataset}",
        verdict=heading(profile),
        body="\n".join(part for part in parts if part),
        footer=f"Made by {profile.manifest.software}. {_FOOTER}",
    )


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
    quantiles = "" if number.quantiles else "<p class=secondary>Quantiles cannot be estimated at this trust level.</p>"
    how = _PRESERVED if number.preserved else "" if number.noisy else "Released unchanged."
    note = f"<p class=secondary>{how}</p>" if how else ""
    return _section(number.name, f"<table>{rows}</table>{quantiles}{note}", density_figure(number), _CAPTION)


def _category_section(category: Category) -> str:
    need = (
        f"Counts are known within ±10% for categories with {category.rows_for_count:,} or more rows."
        if category.rows_for_count
        else "No category has enough rows for its count to be known within ±10%."
    )
    unlisted = f" {category.unlisted:,} more categories are not listed." if category.unlisted else ""
    pairs = zip(category.values, category.frequencies, strict=True)
    rows = "".join(f"<tr><th scope=row>{html.escape(v)}</th><td>{_percentage(i)}</td></tr>" for v, i in pairs)
    body = f"<table>{rows}</table><p class=secondary>{need}{unlisted}</p>"
    return _section(category.name, body, frequency_figure(category))


def _correlations(profile: Profile) -> str:
    rows = "".join(
        f"<tr><th scope=row>{html.escape(_pair(p))}</th><td>{_number(p.correlation)}</td></tr>" for p in profile.pairs
    )
    return f"<h2>Correlations</h2><table>{rows}</table>" if rows else ""


def _pair(pair: Pair) -> str:
    return f"{pair.one} and {pair.other}{', by ranks' if pair.of_ranks else ''}"


def _section(title: str, table: str, picture: str, caption: str = "") -> str:
    figure = f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" if picture else ""
    return f'<h2>{html.escape(title)}</h2><div class="pair"><div>{table}</div>{figure}</div>'


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
    return f"{interval.estimate:.1%} ({interval.low:.1%} to {interval.high:.1%})"
