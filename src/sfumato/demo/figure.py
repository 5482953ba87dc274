"""The figure of the demonstration: what each recipient sees, and what colluding recipients can estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats
from sfumato.pages.svg import BLUE, INK, ORANGE, PALE

PLOTTED = 1500
"""The number of patients in each scatter plot."""

PLOTTED_COLUMN = "systolic"
"""The column whose estimates are shown."""

_FOLLOWED = 4
"""The number of patients who are shown with a letter in all scatter plots."""


@dataclass(frozen=True)
class ColumnErrors:
    """The residual errors of one column, as a share of the variance of its scores."""

    column: str
    single_copy: tuple[float, ...]
    """The error of the best attack on each recipient's copy."""
    all_copies: float
    """The error of the best attack if all recipients collude."""
    independent_noise: float
    """The error if all recipients collude and the noise of their copies is independent."""


@dataclass(frozen=True)
class FigureData:
    """The tables and numbers that the figure shows."""

    table: pa.Table
    copies: dict[str, pa.Table]
    """The copy of each recipient, from the most to the least trusted."""
    errors: Sequence[ColumnErrors]
    estimates: dict[str, Floats]
    """The estimated blood pressures from the copies (`all_copies`), and from independent ones."""


def draw(path: Path, data: FigureData) -> None:
    """Save the figure: scatter plots of the copies above residual errors with and without collusion."""
    import matplotlib as mpl  # noqa: PLC0415 - most commands draw nothing
    from matplotlib.figure import Figure  # noqa: PLC0415

    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK}
    with mpl.rc_context(style):
        figure = Figure(figsize=(13, 8.6), layout="constrained")
        figure.suptitle(
            "One table, three trust levels: every copy looks like the data, with other people in it,\n"
            "and recipients who collude learn no more than the best level allows",
            fontsize=14,
            fontweight="bold",
            y=1.07,
        )
        parts: Any = figure.subfigures(2, 1, height_ratios=[1, 1.15])
        above, below = parts
        _scatter_plots(above, data)
        left, right = below.subplots(1, 2, width_ratios=[1.45, 1])
        _residual_errors(left, data)
        _error_distribution(right, data)
        figure.savefig(path, dpi=130, bbox_inches="tight", pad_inches=0.25)


def _scatter_plots(figure: Any, data: FigureData) -> None:
    """Plot age against blood pressure of the same patients, in the original and in each copy; a few are followed."""
    axes = figure.subplots(1, len(data.copies) + 1, sharex=True, sharey=True)
    titles = ["original", *(f"copy of the {name}" for name in data.copies)]
    followed = _followed(data.table)
    for i, (axis, title, table) in enumerate(zip(axes, titles, (data.table, *data.copies.values()), strict=True)):
        age, pressure = (table.column(c).to_numpy() for c in ("age", PLOTTED_COLUMN))
        axis.scatter(age[:PLOTTED], pressure[:PLOTTED], s=4, alpha=0.35, color=BLUE if i else INK, linewidths=0)
        patients = table.column("patient").to_numpy()
        rows = [int(np.flatnonzero(patients == one)[0]) for one in followed]
        axis.scatter(age[rows], pressure[rows], s=90, color=ORANGE, edgecolors="white", zorder=3)
        for letter, row in zip("ABCD", rows, strict=True):
            point = (age[row], pressure[row])
            axis.annotate(
                letter, point, color="white", fontsize=8, fontweight="bold", ha="center", va="center_baseline", zorder=4
            )
        axis.set_title(title)
        axis.set_xlabel("age (years)")
    axes[0].set_ylabel("systolic pressure (mmHg)")
    figure.supxlabel("Patients A to D are the same in all four: the crowd stays, people move.", fontsize=9, color=INK)


def _followed(table: pa.Table) -> list[int]:
    """Patients far apart in age, whose blood pressure is unusual for it."""
    age, pressure, patients = (table.column(c).to_numpy() for c in ("age", PLOTTED_COLUMN, "patient"))
    residual = pressure - np.polyval(np.polyfit(age, pressure, 1), age)
    found = []
    for i, (low, high) in enumerate(pairwise(np.linspace(25, 85, _FOLLOWED + 1))):
        inside = np.flatnonzero((age >= low) & (age < high))
        wanted = np.quantile(residual[inside], 0.9 if i % 2 else 0.1)
        found.append(int(patients[inside[np.abs(residual[inside] - wanted).argmin()]]))
    return found


def _residual_errors(axis: Any, data: FigureData) -> None:
    """Plot each column's residual error: best copy, collusion, and collusion had the noise been independent."""
    positions = np.arange(len(data.errors))
    best = next(iter(data.copies))
    groups = [
        (f"{best}'s copy alone", PALE, [errors.single_copy[0] for errors in data.errors]),
        ("collusion of all three", BLUE, [errors.all_copies for errors in data.errors]),
        ("collusion, independent noise", ORANGE, [errors.independent_noise for errors in data.errors]),
    ]
    for i, (label, colour, values) in enumerate(groups):
        bars = axis.bar(positions + (i - 1) * 0.27, np.array(values) * 100, 0.25, color=colour, label=label)
        axis.bar_label(bars, fmt="%.0f", fontsize=8, padding=1)
    axis.set_xticks(positions, [errors.column for errors in data.errors])
    axis.set_ylabel("residual error of the best attack (%)")
    axis.set_title("Residual error: a lower bar is more disclosure", loc="left")
    axis.set_ylim(0, axis.get_ylim()[1] * 1.22)
    axis.legend(frameon=False, loc="upper center", ncols=3, fontsize=9)
    axis.text(
        0,
        -0.13,
        "mean square error as a share of the variance of a column's normal scores, which the noise is in;\n"
        "each by the best of all attacks (audit.html has it for the values themselves)",
        transform=axis.transAxes,
        fontsize=8.5,
        va="top",
    )


def _error_distribution(axis: Any, data: FigureData) -> None:
    """Plot the distribution of the error of the joint estimate of a patient's blood pressure."""
    truth = data.table.column(PLOTTED_COLUMN).to_numpy()
    bins = np.linspace(-40, 40, 81)
    for key, name, colour in (("independent_noise", "independent noise", ORANGE), ("all_copies", "Sfumato", BLUE)):
        error = data.estimates[key] - truth
        label = f"{name}: {(np.abs(error) <= 5).mean():.0%} within 5 mmHg"
        axis.hist(error, bins, density=True, color=colour, alpha=0.3, histtype="stepfilled")
        axis.hist(error, bins, density=True, color=colour, histtype="step", linewidth=1.6, label=label)
    axis.set_title("Estimate of a patient's pressure from all three copies", loc="left")
    axis.set_xlabel("estimate minus true value (mmHg)")
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.2)
    axis.legend(frameon=False, loc="upper left", fontsize=9)
