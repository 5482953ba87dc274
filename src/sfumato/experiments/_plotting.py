"""Lines and bars as all figures draw them: Okabe and Ito's colours, and a marker of its own for each series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments._tables import cells, distinct
from sfumato.pages.svg import BLUE, INK, ORANGE, PALE

COLOURS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK, PALE)
MARKERS = "osD^vP*X"


def lines(axis: Any, table: pa.Table, x: str, y: str, by: str, spread: str = "", **where: Any) -> None:
    """A line for each value of a column, with bars of one standard deviation or error if there is a column of them."""
    for at, name in enumerate(distinct(table, by)):
        chosen = {by: name, **where}
        at_x, at_y = cells(table, x, **chosen), cells(table, y, **chosen)
        if not len(at_x):
            continue
        style = {"color": COLOURS[at % 8], "marker": MARKERS[at % 8], "markersize": 4, "linewidth": 1.4}
        if spread:
            axis.errorbar(at_x, at_y, cells(table, spread, **chosen), capsize=2, label=str(name), **style)
        else:
            axis.plot(at_x, at_y, label=str(name), **style)
    axis.grid(alpha=0.25)


def bars(axis: Any, table: pa.Table, x: str, y: str, by: str, form: str = "{:.2f}", **where: Any) -> None:
    """Groups of bars, one group for each value of `x` and one bar for each of `by`."""
    groups, series = distinct(table, x), distinct(table, by)
    width = 0.8 / len(series)
    for at, name in enumerate(series):
        chosen = {one: cells(table, y, **{x: one, by: name}, **where) for one in groups}
        places = [i + (at - (len(series) - 1) / 2) * width for i, one in enumerate(groups) if len(chosen[one])]
        values = [float(found[0]) for found in chosen.values() if len(found)]
        drawn = axis.bar(places, values, 0.92 * width, color=COLOURS[at % 8], label=str(name))
        axis.bar_label(drawn, [form.format(value) for value in values], fontsize=8, padding=1)
    axis.set_xticks(range(len(groups)), [str(one) for one in groups])


def against(axis: Any, x: Any, found: Any, expected: Any, labels: tuple[str, str]) -> None:
    """What was found as bars, what was expected as marks on them."""
    axis.bar(x, found, 0.9, color=BLUE, alpha=0.55, label=labels[0])
    axis.plot(x, expected, "_", color=ORANGE, markersize=5, markeredgewidth=1.6, label=labels[1])


def legend(axis: Any, columns: int = 1, **options: Any) -> None:
    """A legend without a frame."""
    axis.legend(frameon=False, fontsize=8.5, ncols=columns, **options)


def above(axis: Any, columns: int) -> None:
    """The legend of an axis above all of the figure's, where no line can hide it."""
    handles, labels = axis.get_legend_handles_labels()
    axis.figure.legend(handles, labels, loc="outside upper left", ncols=columns, frameon=False, fontsize=8.5)


def slope(x: Any, y: Any) -> float:
    """The exponent of a power law through these points."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
