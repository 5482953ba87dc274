"""The pictures of a profile, as SVG."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.errors import MiningError
from sfumato.mining._profile import Category, Number

# Okabe and Ito's colours, which colour-blind people can tell apart
INK, ORIGINAL, COPY = "#22303c", "#0072b2", "#d55e00"

_STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "svg.hashsalt": "sfumato",
}


def number(found: Number) -> str:
    """The density of a column of numbers, with its band, and the histogram of the copy itself."""
    density = found.density
    if density is None:
        return ""

    def draw(axis: Any) -> None:
        edges = density.edges_[0]
        middles = (edges[1:] + edges[:-1]) / 2
        axis.plot(middles, density.seen_ / np.diff(edges), color=COPY, lw=1, label="the copy, as it is")
        axis.fill_between(middles, *density.band_, color=ORIGINAL, alpha=0.25, lw=0)
        axis.plot(middles, density.density_, color=ORIGINAL, lw=1.6, label="the original, reconstructed")
        told = np.flatnonzero(density.density_ > 2e-3 * density.density_.max())
        axis.set_xlim(edges[told[0]], edges[told[-1] + 1])
        axis.set_ylim(bottom=0)
        middle, half, top = (edges[told[0]] + edges[told[-1] + 1]) / 2, found.noise / 2, density.density_.max()
        axis.plot([middle - half, middle + half], [0.03 * top] * 2, color=INK, lw=3, solid_capstyle="butt")
        axis.set_xlabel(found.name + (f", in {found.unit}s since 1970" if found.unit else ""))
        axis.locator_params(axis="x", nbins=6)
        axis.set_ylabel("density")
        axis.legend(frameon=False, fontsize=8)

    return _svg(draw)


def category(found: Category) -> str:
    """The frequencies of a column of categories, with intervals."""

    def draw(axis: Any) -> None:
        places = np.arange(len(found.values))[::-1]
        middle = np.array([interval.estimate for interval in found.frequencies])
        low, high = (np.array([getattr(interval, end) for interval in found.frequencies]) for end in ("low", "high"))
        axis.barh(places, middle, color=ORIGINAL, alpha=0.35)
        axis.hlines(places, low, high, color=ORIGINAL, lw=2)
        axis.set_yticks(places, [value[:24] for value in found.values])
        axis.set_xlim(left=0)
        axis.set_xlabel(f"share of records by {found.name}")

    return _svg(draw, height=1.1 + 0.26 * len(found.values)) if found.values else ""


def _svg(draw: Callable[[Any], None], height: float = 2.8) -> str:
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MiningError("pictures need matplotlib; run `pip install 'sfumato[plot]'`") from None
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.4, height), layout="constrained")
        draw(figure.add_subplot())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
