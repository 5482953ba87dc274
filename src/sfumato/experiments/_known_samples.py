"""What Figures 5 to 7, 10 and 11 of giannella2010 have in common: the breach rate against the sample ratio."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Job, rows_of
from sfumato.experiments._plotting import above, lines
from sfumato.experiments._rotation_attacks import Draw, breaches
from sfumato.experiments._tables import cells, distinct

PAPER, OURS = "PCA attack (paper)", "likeliest turn (ours)"
DIFFERENCES, CENTRED = "differences of pairs (paper)", "centred on the means (ours)"
MOVED: dict[str, dict[str, Any]] = {
    DIFFERENCES: {"method": "energy", "shift": "differences"},
    CENTRED: {"method": "energy"},
}
"""Attacks on data that are turned and moved."""
ABOUT = (
    "The share of all tuples found within ε of their size, as a mean over {runs} independent runs (the paper: 100), "
    "each with its own {own}, sample and turn; bars: the standard error. Left the paper's attack (all mirrorings, "
    "minimal energy statistic: G16), right the turn under which the sample is likeliest."
)


def against_ratio(
    draw: Draw,
    rows: int,
    ratios: Any,
    runs: int,
    epsilons: Any,
    job: Job,
    attacks: dict[str, dict[str, Any]],
    *,
    moved: bool = False,
) -> pa.Table:
    """Each attack at each ratio of sample to data."""
    return rows_of(
        {"attack": name, "ratio": ratio, **found}
        for ratio in job.steps(ratios)
        for name, options in attacks.items()
        for found in breaches(
            draw, runs, rows, max(int(ratio * rows), 10), epsilons, job, int(1e4 * ratio), moved=moved, **options
        )
    )


def draw_ratio(figure: Any, table: pa.Table) -> None:
    """A panel for each attack, a line for each ε."""
    names = distinct(table, "attack")
    for axis, name in zip(figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names, strict=True):
        shown = rows_of({**row, "series": f"ε = {row['epsilon']:g}"} for row in table.to_pylist())
        lines(axis, shown, "ratio", "rate", "series", "error", attack=name)
        axis.set_xscale("log")
        axis.set_ylim(-0.03, 1.08)
        axis.set_xlabel("sample size / number of tuples")
        axis.set_title(name, fontsize=9.5, loc="right")
    figure.axes[0].set_ylabel("share of tuples breached")
    above(figure.axes[0], 3)


def rising(table: pa.Table, attack: str, epsilon: float) -> tuple[Any, bool]:
    """The rates at one ε, and whether they grow with the sample but for two standard errors."""
    rate, error = (cells(table, what, attack=attack, epsilon=epsilon) for what in ("rate", "error"))
    grows = bool((rate[1:] - rate[:-1] > -2.5 * (error[1:] + error[:-1]) - 0.02).all() and rate[-1] > rate[0])
    return rate, grows
