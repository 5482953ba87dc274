"""SVG figures by matplotlib, all in one style, for HTML reports."""

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
