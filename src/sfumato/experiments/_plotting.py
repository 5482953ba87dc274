"""Shared plots of all figures: lines, grouped bars and legends, in Okabe and Ito's colours with distinct markers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments._tables import distinct, select
from sfumato.pages.svg import BLUE, INK, ORANGE, PALE

COLOURS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK, PALE)
MARKERS = "osD^vP*X"


def lines(axis: Any, table: pa.Table, x: str, y: str, by: str, spread: str = "", **where: Any) -> None:
    """One line per value of the column `by`; the column `spread`, if given, holds the half-length of error bars."""
    for i, name in enumerate(distinct(table, by)):
        series = {by: name, **where}
        x_values, y_values = select(table, x, **series), select(table, y, **series)
        if not len(x_values):
            continue
        style = {"color": COLOURS[i % 8], "marker": MARKERS[i % 8], "markersize": 4, "linewidth": 1.4}
        if spread:
            axis.errorbar(x_values, y_values, select(table, spread, **series), capsize=2, label=str(name), **style)
        else:
            axis.plot(x_values, y_values, label=str(name), **style)
    axis.grid(alpha=0.25)


def bars(axis: Any, table: pa.Table, x: str, y: str, by: str, form: str = "{:.2f}", **where: Any) -> None:
    """Grouped bars: one group per value of `x`, one bar in it per value of `by`."""
    groups, series = distinct(table, x), distinct(table, by)
    width = 0.8 / len(series)
    for i, name in enumerate(series):
        heights = {group: select(table, y, **{x: group, by: name}, **where) for group in groups}
        offset = (i - (len(series) - 1) / 2) * width
        positions = [at + offset for at, group in enumerate(groups) if len(heights[group])]
        values = [float(found[0]) for found in heights.values() if len(found)]
        drawn = axis.bar(positions, values, 0.92 * width, color=COLOURS[i % 8], label=str(name))
        axis.bar_label(drawn, [form.format(value) for value in values], fontsize=8, padding=1)
    axis.set_xticks(range(len(groups)), [str(group) for group in groups])


def bars_with_expected(axis: Any, x: Any, observed: Any, expected: Any, labels: tuple[str, str]) -> None:
    """Observed values as bars, with a dash across each bar at its expected value."""
    axis.bar(x, observed, 0.9, color=BLUE, alpha=0.55, label=labels[0])
    axis.plot(x, expected, "_", color=ORANGE, markersize=5, markeredgewidth=1.6, label=labels[1])


def legend(axis: Any, columns: int = 1, **options: Any) -> None:
    """A legend without a frame, inside the axes."""
    axis.legend(frameon=False, fontsize=8.5, ncols=columns, **options)


def legend_above(axis: Any, columns: int) -> None:
    """The legend of one axes object above the whole figure, where no line can cover it."""
    handles, labels = axis.get_legend_handles_labels()
    axis.figure.legend(handles, labels, loc="outside upper left", ncols=columns, frameon=False, fontsize=8.5)


def straightness(x: Any, y: Any) -> float:
    """The share of the variance of `y` that a straight line in `x` explains; 0 if it does not rise."""
    slope, _ = np.polyfit(x, y, 1)
    return float(np.corrcoef(x, y)[0, 1] ** 2) if slope > 0 else 0.0


def power_exponent(x: Any, y: Any) -> float:
    """The exponent b of the power function `y = a·x^b` fitted to points by least squares on logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
