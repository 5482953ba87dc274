"""Shared by Figures 5 to 7, 10 and 11 of giannella2010: the known-sample attack's breach rate by sample ratio."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Job, to_table
from sfumato.experiments._plotting import legend_above, lines
from sfumato.experiments._rotation_attacks import Sampler, known_sample_breaches
from sfumato.experiments._tables import distinct, select

PAPER, OURS = "PCA attack (paper)", "maximum-likelihood rotation (ours)"
DIFFERENCES, CENTRED = "differences of pairs (paper)", "centred on the means (ours)"
TRANSLATED_ATTACKS: dict[str, dict[str, Any]] = {
    DIFFERENCES: {"method": "energy", "shift": "differences"},
    CENTRED: {"method": "energy"},
}
"""The attacks on data that are rotated and translated, with their options."""
DESCRIPTION = (
    "The share of all tuples estimated with a relative error of at most ε, as a mean over {runs} independent runs "
    "(the paper: 100), each with its own {own}, sample and rotation; bars: the standard error. Left the paper's attack "
    "(all reflections, minimal energy statistic: G16), right the rotation that maximises the likelihood of the sample."
)
TREND_CRITERION = "no step falls by more than 2.5 standard errors of both ends plus 0.02"


def breaches_by_ratio(
    sampler: Sampler,
    rows: int,
    ratios: Any,
    runs: int,
    epsilons: Any,
    job: Job,
    attacks: dict[str, dict[str, Any]],
    *,
    translated: bool = False,
) -> pa.Table:
    """The breach rates of each attack at each ratio of sample size to data size."""
    return to_table(
        {"attack": name, "ratio": ratio, **rate}
        for ratio in job.track(ratios)
        for name, options in attacks.items()
        for rate in known_sample_breaches(
            sampler,
            runs,
            rows,
            max(int(ratio * rows), 10),
            epsilons,
            job,
            int(1e4 * ratio),
            translated=translated,
            **options,
        )
    )


def plot_by_ratio(figure: Any, table: pa.Table) -> None:
    """One panel per attack, one line per ε."""
    names = distinct(table, "attack")
    series = to_table({**row, "series": f"ε = {row['epsilon']:g}"} for row in table.to_pylist())
    for axis, name in zip(figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names, strict=True):
        lines(axis, series, "ratio", "rate", "series", "error", attack=name)
        axis.set_xscale("log")
        axis.set_ylim(-0.03, 1.08)
        axis.set_xlabel("sample size / number of tuples")
        axis.set_title(name, fontsize=9.5, loc="right")
    figure.axes[0].set_ylabel("share of tuples breached")
    legend_above(figure.axes[0], 3)


def rates_and_trend(table: pa.Table, attack: str, epsilon: float) -> tuple[Any, bool]:
    """The breach rates at one ε, and whether they rise with the sample size up to `TREND_CRITERION`."""
    rate, error = (select(table, column, attack=attack, epsilon=epsilon) for column in ("rate", "error"))
    rises = bool((rate[1:] - rate[:-1] > -2.5 * (error[1:] + error[:-1]) - 0.02).all() and rate[-1] > rate[0])
    return rate, rises
