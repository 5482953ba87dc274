"""Figures of a profile: reconstructed densities, frequencies and relations, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from sfumato.errors import MiningError
from sfumato.mining.report.estimates import Category, Number, Pair, Profile
from sfumato.pages.svg import BLUE, INK, ORANGE, plotted, svg

_WIDTH = 5.4


def density_figure(number: Number) -> str:
    """The reconstructed density of a numeric column as SVG."""
    if number.density is None:
        return ""
    return svg(partial(_draw_density, number), (_WIDTH, 2.8))


def frequency_figure(category: Category) -> str:
    """The frequencies of a categorical column as SVG."""
    return svg(partial(_draw_frequencies, category), _size_of(category)) if category.values else ""


def relation_figure(pairs: Sequence[Pair]) -> str:
    """How strongly columns are related, as a section of a page."""
    if not pairs:
        return ""
    size = (_WIDTH + 2, 1.0 + 0.28 * len(pairs))
    return f"<h2>Strongest relations</h2>{svg(partial(_draw_relations, pairs), size)}"


def plot(profile: Profile, column: str | None, axes: Any) -> Any:
    """The density of a number, the frequencies of a category, or the strongest relations, on axes."""
    if column is None:
        return plotted(partial(_draw_relations, profile.pairs), axes, (_WIDTH + 2, 1.0 + 0.28 * len(profile.pairs)))
    columns: tuple[Number | Category, ...] = (*profile.numbers, *profile.categories)
    known = {one.name: one for one in columns}
    if column not in known:
        raise MiningError(f"a plot is of a column of the profile, {', '.join(known)}, got {column!r}; name one")
    found = known[column]
    if isinstance(found, Category):
        return plotted(partial(_draw_frequencies, found), axes, _size_of(found))
    return plotted(partial(_draw_density, found), axes, (_WIDTH, 2.8))


def _draw_density(number: Number, axes: Any) -> None:
    """The density with its confidence band, the copy's own histogram, and a bar as long as a noise deviation."""
    density = number.density
    if density is None:
        raise MiningError(f"{number.name} has no density, since it has no noise or none was asked for; plot another")
    edges = density.edges_[0]
    centres = (edges[1:] + edges[:-1]) / 2
    axes.plot(centres, density.copy_histogram_ / np.diff(edges), color=ORANGE, lw=1, label="copy, uncorrected")
    axes.fill_between(centres, *density.band_, color=BLUE, alpha=0.25, lw=0)
    axes.plot(centres, density.density_, color=BLUE, lw=1.6, label="original, reconstructed")
    visible = np.flatnonzero(density.density_ > 2e-3 * density.density_.max())
    low, high = edges[visible[0]], edges[visible[-1] + 1]
    axes.set_xlim(low, high)
    axes.set_ylim(bottom=0)
    middle, half, top = (low + high) / 2, number.noise / 2, density.density_.max()
    axes.plot([middle - half, middle + half], [0.03 * top] * 2, color=INK, lw=3, solid_capstyle="butt")
    axes.set_xlabel(number.name + (f", in {number.unit}s since 1970" if number.unit else ""))
    axes.locator_params(axis="x", nbins=6)
    axes.set_ylabel("density")
    axes.legend(frameon=False, fontsize=8)


def _size_of(category: Category) -> tuple[float, float]:
    return _WIDTH, 1.1 + 0.26 * len(category.values)


def _draw_frequencies(category: Category, axes: Any) -> None:
    """The frequencies of a categorical column as bars, with confidence intervals."""
    positions = np.arange(len(category.values))[::-1]
    estimates, low, high = (
        np.array([getattr(interval, end) for interval in category.frequencies]) for end in ("estimate", "low", "high")
    )
    axes.barh(positions, estimates, color=BLUE, alpha=0.35)
    axes.hlines(positions, low, high, color=BLUE, lw=2)
    axes.set_yticks(positions, [value[:24] for value in category.values])
    axes.set_xlim(left=0)
    axes.set_xlabel(f"share of records by {category.name}")


def _draw_relations(pairs: Sequence[Pair], axes: Any) -> None:
    """How strongly columns are related, with confidence intervals."""
    positions = np.arange(len(pairs))[::-1]
    for position, pair in zip(positions, pairs, strict=True):
        found, colour = pair.correlation, BLUE if pair.correlation.estimate > 0 else ORANGE
        axes.barh(position, abs(found.estimate), color=colour, alpha=0.35)
        axes.hlines(position, *sorted((abs(found.low), abs(found.high))), color=colour, lw=2)
    axes.set_yticks(positions, [f"{pair.one[:18]} and {pair.other[:18]}" for pair in pairs])
    axes.set_xlim(0, 1)
    axes.set_xlabel("strength of the relation, from 0 to 1 (orange: the one falls as the other rises)")
