"""Pictures as SVG, all in one style."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from sfumato.errors import ReleaseError

# Okabe and Ito's colours, which colour-blind people can tell apart
INK, BLUE, ORANGE, PALE = "#22303c", "#0072b2", "#d55e00", "#9aa7b2"

STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "svg.hashsalt": "sfumato",
}


def figure_class() -> Any:
    """Matplotlib's figure, which is an extra."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise ReleaseError("pictures need matplotlib; run `pip install 'sfumato[plot]'`") from None
    return Figure


def svg(draw: Callable[[Any], None], size: tuple[float, float]) -> str:
    """What `draw` draws on an axis, that many inches wide and high."""
    figure = figure_class()(figsize=size, layout="constrained")
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    with mpl.rc_context(STYLE):
        draw(figure.subplots())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
