"""A profile in words, and as one page that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sfumato import pages
from sfumato.mining.copies.interval import Interval
from sfumato.mining.report import figures as _pictures
from sfumato.mining.report.profile import QUANTILES, Category, Number, Profile

_SECONDS = {"day": 86400.0, "second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}

_FOOT = "It tells of the original what the copy allows, and nothing of single records."
_NOISE = (
    "The black bar is as wide as the noise's standard deviation: nothing narrower is told, and beside a sharp edge the "
    "curve may rise where the original does not."
)


def heading(found: Profile) -> str:
    """What the profile is of."""
    level = f"level {found.manifest.level!r}, " if found.manifest.level else ""
    return (
        f"{found.rows:,} records of {found.manifest.dataset}, from a copy of {level}fidelity "
        f"{found.manifest.fidelity:.4g}; intervals of {found.confidence:.0%}."
    )


def text(found: Profile) -> str:
    """The profile for a terminal."""
    lines = [heading(found)]
    if found.numbers:
        lines += ["", f"{'numbers':<18}{'mean':>38}{'standard deviation':>38}{'median':>38}"]
        lines += [f"{n.name[:17]:<18}" + "".join(f"{cell:>38}" for cell in _cells(n)) for n in found.numbers]
    for category in found.categories:
        lines += ["", f"{category.name}" + (f", {category.more:,} more values not listed" if category.more else "")]
        lines += [
            f"  {value[:30]:<32}{_share(i)}" for value, i in zip(category.values, category.frequencies, strict=True)
        ]
        if not category.values:
            lines.append("  no frequency can be told at this level")
    if found.pairs:
        lines += ["", "correlations"]
        lines += [f"  {p.one} and {p.other}: {_short(p.correlation)}" for p in found.pairs]
    lines += ["", "What this level of trust can answer:", *(f"  {said}" for said in found.can or ("nothing",))]
    lines += ["What it cannot:", *(f"  {said}" for said in found.cannot or ("all can be answered",))]
    return "\n".join(lines)


def page(found: Profile) -> str:
    """The profile as HTML."""
    parts = [_abilities(found), *map(_number, found.numbers), *map(_category, found.categories), _pairs(found)]
    return pages.page(
        title=f"What a copy tells of {found.manifest.dataset}",
        verdict=heading(found),
        body="\n".join(part for part in parts if part),
        foot=f"Made by {found.manifest.software}. {_FOOT}",
    )


def _abilities(found: Profile) -> str:
    def listed(title: str, said: Sequence[str]) -> str:
        items = "".join(f"<li>{html.escape(one)}</li>" for one in said)
        return f"<section><h2>{title}</h2><ul>{items}</ul></section>" if said else ""

    both = listed("What this level of trust can answer", found.can) + listed("What it cannot", found.cannot)
    return f'<div class="pair">{both}</div>'


def _number(found: Number) -> str:
    heads = ["mean", "standard deviation", *(f"{q:.0%} lie below" for q in QUANTILES[: len(found.quantiles)])]
    cells = [_when(found.mean, found.unit), _spread(found), *(_when(q, found.unit) for q in found.quantiles)]
    rows = "".join(f"<tr><th scope=row>{h}</th><td>{c}</td></tr>" for h, c in zip(heads, cells, strict=True))
    note = "" if found.quantiles else "<p class=pale>Quantiles cannot be told at this level.</p>"
    kept = "" if found.noisy else "<p class=pale>Shown in the copy as it is.</p>"
    return _card(found.name, f"<table>{rows}</table>{note}{kept}", _pictures.number(found), _NOISE)


def _category(found: Category) -> str:
    said = (
        f"A value needs {found.enough:,} rows for its count to be known within 10 %."
        if found.enough
        else "No value has rows enough for its count to be known within 10 %."
    )
    more = f" {found.more:,} more values are not listed." if found.more else ""
    pairs = zip(found.values, found.frequencies, strict=True)
    rows = "".join(f"<tr><th scope=row>{html.escape(v)}</th><td>{_share(i)}</td></tr>" for v, i in pairs)
    return _card(found.name, f"<table>{rows}</table><p class=pale>{said}{more}</p>", _pictures.category(found))


def _pairs(found: Profile) -> str:
    rows = "".join(
        f"<tr><th scope=row>{html.escape(p.one)} and {html.escape(p.other)}</th><td>{_short(p.correlation)}</td></tr>"
        for p in found.pairs
    )
    return f"<h2>Correlations</h2><table>{rows}</table>" if rows else ""


def _card(title: str, table: str, picture: str, caption: str = "") -> str:
    figure = f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" if picture else ""
    return f'<h2>{html.escape(title)}</h2><div class="pair"><div>{table}</div>{figure}</div>'


def _cells(found: Number) -> list[str]:
    middle = "not at this level" if not found.quantiles else _when(found.quantiles[len(QUANTILES) // 2], found.unit)
    return [_when(found.mean, found.unit), _spread(found), middle]


def _when(interval: Interval, unit: str) -> str:
    """A number, or the day of a moment."""
    if not unit:
        return _short(interval)
    start, size = datetime(1970, 1, 1, tzinfo=UTC), _SECONDS[unit]
    days = [start + timedelta(seconds=size * end) for end in vars(interval).values()]
    middle, low, high = (f"{day:%Y-%m-%d}" for day in days)
    return f"{middle} ({low} to {high})"


def _spread(found: Number) -> str:
    if not found.unit:
        return _short(found.deviation)
    days = [end * _SECONDS[found.unit] / _SECONDS["day"] for end in vars(found.deviation).values()]
    return f"{_short(Interval(*days))} days"


def _short(interval: Interval) -> str:
    middle, low, high = (f"{end:,.0f}" if 1000 <= abs(end) < 1e12 else f"{end:.4g}" for end in vars(interval).values())
    return middle if interval.low == interval.high else f"{middle} ({low} to {high})"


def _share(interval: Interval) -> str:
    return f"{interval.estimate:.1%} ({interval.low:.1%} to {interval.high:.1%})"
