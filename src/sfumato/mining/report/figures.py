"""The pictures of a profile, as SVG."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.mining.report.profile import Category, Number
from sfumato.pages.svg import BLUE, INK, ORANGE, svg

_WIDTH = 5.4


def number(found: Number) -> str:
    """The density of a column of numbers, with its band, and the histogram of the copy itself."""
    density = found.density
    if density is None:
        return ""

    def draw(axis: Any) -> None:
        edges = density.edges_[0]
        middles = (edges[1:] + edges[:-1]) / 2
        axis.plot(middles, density.seen_ / np.diff(edges), color=ORANGE, lw=1, label="the copy, as it is")
        axis.fill_between(middles, *density.band_, color=BLUE, alpha=0.25, lw=0)
        axis.plot(middles, density.density_, color=BLUE, lw=1.6, label="the original, reconstructed")
        told = np.flatnonzero(density.density_ > 2e-3 * density.density_.max())
        axis.set_xlim(edges[told[0]], edges[told[-1] + 1])
        axis.set_ylim(bottom=0)
        middle, half, top = (edges[told[0]] + edges[told[-1] + 1]) / 2, found.noise / 2, density.density_.max()
        axis.plot([middle - half, middle + half], [0.03 * top] * 2, color=INK, lw=3, solid_capstyle="butt")
        axis.set_xlabel(found.name + (f", in {found.unit}s since 1970" if found.unit else ""))
        axis.locator_params(axis="x", nbins=6)
        axis.set_ylabel("density")
        axis.legend(frameon=False, fontsize=8)

    return svg(draw, (_WIDTH, 2.8))


def category(found: Category) -> str:
    """The frequencies of a column of categories, with intervals."""

    def draw(axis: Any) -> None:
        places = np.arange(len(found.values))[::-1]
        middle = np.array([interval.estimate for interval in found.frequencies])
        low, high = (np.array([getattr(interval, end) for interval in found.frequencies]) for end in ("low", "high"))
        axis.barh(places, middle, color=BLUE, alpha=0.35)
        axis.hlines(places, low, high, color=BLUE, lw=2)
        axis.set_yticks(places, [value[:24] for value in found.values])
        axis.set_xlim(left=0)
        axis.set_xlabel(f"share of records by {found.name}")

    return svg(draw, (_WIDTH, 1.1 + 0.26 * len(found.values))) if found.values else ""
