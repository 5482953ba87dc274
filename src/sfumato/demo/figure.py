"""The demonstration in one picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats
from sfumato.pages.svg import BLUE, INK, ORANGE, PALE, figure_class

SHOWN = 1500
"""Patients drawn in each scatter."""


@dataclass(frozen=True)
class Panel:
    """What there is to draw."""

    table: pa.Table
    copies: dict[str, pa.Table]
    story: Any
    guesses: dict[str, Floats]


def draw(path: Path, panel: Panel) -> None:
    """Draw what each recipient sees above what they can reconstruct together."""
    figure_of = figure_class()
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK}
    with mpl.rc_context(style):
        figure = figure_of(figsize=(13, 8.6), layout="constrained")
        figure.suptitle(
            "One clinic, three copies: each recipient sees what its trust allows, and pooling them gains nothing",
            fontsize=14,
            fontweight="bold",
            y=1.04,
        )
        parts: Any = figure.subfigures(2, 1, height_ratios=[1, 1.15])
        above, below = parts
        _scatters(above, panel)
        left, right = below.subplots(1, 2, width_ratios=[1.45, 1])
        _bars(left, panel)
        _errors(right, panel)
        figure.savefig(path, dpi=130, bbox_inches="tight", pad_inches=0.25)


def _scatters(figure: Any, panel: Panel) -> None:
    """Age and pressure of the same patients, in the original and in each copy."""
    axes = figure.subplots(1, len(panel.copies) + 1, sharex=True, sharey=True)
    for axis, (name, table) in zip(axes, {"the original": panel.table, **panel.copies}.items(), strict=True):
        colour = INK if name == "the original" else BLUE
        age, pressure = (table.column(c).to_numpy()[:SHOWN] for c in ("age", "systolic"))
        axis.scatter(age, pressure, s=4, alpha=0.35, color=colour, linewidths=0)
        axis.set_title(name if name == "the original" else f"what the {name} sees")
        axis.set_xlabel("age (years)")
    axes[0].set_ylabel("systolic pressure (mmHg)")


def _bars(axis: Any, panel: Panel) -> None:
    """The error left in each column: best copy, all pooled, all pooled had the noise been independent."""
    rows = panel.story.rows
    places = np.arange(len(rows))
    best = panel.story.recipients[0]
    groups = [
        (f"the {best} alone", PALE, [row.alone[0] for row in rows]),
        ("all three pooled, Sfumato", BLUE, [row.pooled for row in rows]),
        ("all three pooled, independent noise", ORANGE, [row.independent for row in rows]),
    ]
    for i, (label, colour, values) in enumerate(groups):
        bars = axis.bar(places + (i - 1) * 0.27, np.array(values) * 100, 0.25, color=colour, label=label)
        axis.bar_label(bars, fmt="%.0f", fontsize=8, padding=1)
    axis.set_xticks(places, [row.column for row in rows])
    axis.set_ylabel("error left to the best attacker (%)")
    axis.set_title("What they can reconstruct: a lower bar is more lost", loc="left")
    axis.set_ylim(0, axis.get_ylim()[1] * 1.22)
    axis.legend(frameon=False, loc="upper center", ncols=3, fontsize=9)
    axis.text(
        0,
        -0.13,
        "numbers: mean square error as a share of the variance; categories: share of wrong guesses\n"
        "by the best of all attacks (audit.html)",
        transform=axis.transAxes,
        fontsize=8.5,
        va="top",
    )


def _errors(axis: Any, panel: Panel) -> None:
    """How near the pooled estimate of a patient's pressure comes."""
    truth = panel.table.column("systolic").to_numpy()
    column = [row.column for row in panel.story.rows].index("systolic")
    bins = np.linspace(-40, 40, 81)
    for key, name, colour in (("independent", "independent noise", ORANGE), ("pooled", "Sfumato", BLUE)):
        error = panel.guesses[key][:, column] - truth
        label = f"{name}: {(np.abs(error) <= 5).mean():.0%} within 5 mmHg"
        axis.hist(error, bins, density=True, color=colour, alpha=0.3, histtype="stepfilled")
        axis.hist(error, bins, density=True, color=colour, histtype="step", linewidth=1.6, label=label)
    axis.set_title("Pooled estimate of one patient's pressure", loc="left")
    axis.set_xlabel("estimate minus truth (mmHg)")
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.2)
    axis.legend(frameon=False, loc="upper left", fontsize=9)
