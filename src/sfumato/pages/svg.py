"""Figures by matplotlib, all in one style: as SVG for HTML reports, and as axes for notebooks."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

# Okabe and Ito's palette, which remains distinguishable with colour vision deficiency
INK, BLUE, ORANGE, PALE = "#22303c", "#0072b2", "#d55e00", "#9aa7b2"

STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "svg.hashsalt": "sfumato",
}


def svg(draw: Callable[[Any], None], size: tuple[float, float]) -> str:
    """The SVG text of what `draw` plots on one set of axes; `size` is width and height in inches."""
    import matplotlib as mpl  # noqa: PLC0415 - most commands draw nothing
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=size, layout="constrained")

    with mpl.rc_context(STYLE):
        draw(figure.subplots())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def plotted(draw: Callable[[Any], None], axes: Any, size: tuple[float, float]) -> Any:
    """The axes on which `draw` has plotted: those given, or those of a new figure, which a notebook shows."""
    import matplotlib as mpl  # noqa: PLC0415 - most commands draw nothing
    from matplotlib import pyplot as plt  # noqa: PLC0415

    # a notebook's settings are made with its first figure, and the context would undo them
    figure = plt.figure(figsize=size, layout="constrained") if axes is None else None
    with mpl.rc_context(STYLE):
        axes = axes if figure is None else figure.subplots()
        draw(axes)
    return axes
