"""Figures of audit reports as SVG: collusion curves, error distributions, attacks, outliers and breach curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.audit.linear_map_risk import LinearMapRisk
from sfumato.audit.result import AttackRun, Audit, CollusionCurve
from sfumato.pages.svg import BLUE, INK, ORANGE, PALE, plotted, svg
from sfumato.risk.breach import EPSILONS

THESE_COPIES, INDEPENDENT_NOISE = "these copies", "copies with independent noise"

MAX_OUTLIERS = 12
"""The largest number of outliers in a figure."""

_LABELS = {
    "error": "residual error of the best linear attack\n(share of variance)",
    "reconstruction": "mean posterior probability\nof the true category",
}


def collusion_curve(curve: CollusionCurve) -> str:
    """The success of a coalition against the number of its copies (li2012, Figure 2; xiao2009, Figure 7)."""

    def draw(axis: Any) -> None:
        counts = np.arange(1, len(curve.these_copies) + 1)
        axis.plot(counts, curve.independent_noise, "o-", color=ORANGE, label=INDEPENDENT_NOISE)
        axis.plot(counts, curve.these_copies, "s-", color=BLUE, label=THESE_COPIES)
        axis.set_xticks(counts[:: max(len(counts) // 10, 1)])
        axis.set_xlabel("number of copies combined, the most faithful first")
        axis.set_ylabel(_LABELS[curve.measure])
        axis.set_ylim(0, max(*curve.these_copies, *curve.independent_noise) * 1.15)
        axis.legend(frameon=False, loc="best")

    return svg(draw, (5.6, 3.6))


def error_histogram(audit: Audit) -> str:
    """The distribution over records of the error of the joint estimate (li2012, Figure 3)."""

    def draw(axis: Any) -> None:
        if audit.error_distribution is None:
            raise ValueError("there is no distribution of errors to draw")
        edges = np.array(audit.error_distribution.bin_edges)
        cumulative = axis.twinx()
        for shares, colour, name in (
            (audit.error_distribution.independent_noise, ORANGE, INDEPENDENT_NOISE),
            (audit.error_distribution.these_copies, BLUE, THESE_COPIES),
        ):
            axis.stairs(np.array(shares) * 100, edges, color=colour, fill=True, alpha=0.25)
            axis.stairs(np.array(shares) * 100, edges, color=colour, linewidth=1.4, label=name)
            cumulative.plot(edges[1:], np.cumsum(shares) * 100, color=colour, linestyle=":", linewidth=1.4)
        axis.set_xlabel("error of a record, in standard deviations of its columns")
        axis.set_ylabel("records (%)")
        cumulative.set_ylabel("cumulative (%), dotted")
        cumulative.set_ylim(0, 105)
        axis.legend(frameon=False, loc="center right", fontsize=9)

    return svg(draw, (5.6, 3.6))


def attack_bars(audit: Audit, measure: str) -> str:
    """Every attack on the best copy alone, on all copies, and on copies with independent noise."""
    best = max(range(len(audit.copies)), key=lambda i: audit.copies[i].fidelity)
    groups = [
        (f"{audit.single_copy[best].adversary} alone", PALE, _means(audit.single_copy[best], measure)),
        ("all copies", BLUE, _means(audit.all_copies, measure)),
        (INDEPENDENT_NOISE, ORANGE, _means(audit.independent_noise, measure)),
    ]
    groups = [group for group in groups if group[2]]
    combined = _means(audit.all_copies, measure)
    names = sorted({name for _, _, means in groups for name in means}, key=lambda name: combined.get(name, 9.0))
    is_error = measure == "error"
    top = 1.25 if is_error else 1.0

    def draw(axis: Any) -> None:
        for k, (label, colour, means) in enumerate(groups):
            positions = [i + (k - 1) * 0.27 for i, name in enumerate(names) if name in means]
            values = [means[name] for name in names if name in means]
            drawn = axis.bar(positions, np.minimum(values, top), 0.25, color=colour, label=label)
            axis.bar_label(drawn, [f"{value:.2f}" for value in values], fontsize=8, padding=1, rotation=90)
        axis.set_xticks(range(len(names)), names, **({"rotation": 25, "ha": "right"} if len(names) > 8 else {}))
        axis.set_ylabel("residual error (share of variance,\nmean over columns)" if is_error else "mean accuracy")
        if is_error:
            axis.axhline(1, color=INK, linewidth=0.8, linestyle="--")
        axis.set_ylim(0, top * 1.12)
        axis.legend(frameon=False, loc="upper left", ncols=3, fontsize=9, bbox_to_anchor=(0, 1.12))

    return svg(draw, (9.6, 3.8) if len(names) > 4 else (6.4, 3.4))


def plot_risks(audit: Audit, axes: Any = None) -> Any:
    """The share of each column that the best attack recovers, from these copies and from independent noise, on axes."""
    risks = audit.worst_columns[::-1]

    def draw(axis: Any) -> None:
        positions = np.arange(len(risks))
        axis.barh(positions + 0.19, [one.recovered for one in risks], 0.36, color=BLUE, label=THESE_COPIES)
        axis.barh(
            positions - 0.19,
            [one.independently_recovered for one in risks],
            0.36,
            color=ORANGE,
            label=INDEPENDENT_NOISE,
        )
        best = max(copy.fidelity for copy in audit.copies)
        axis.axvline(best, color=INK, linewidth=0.8, linestyle="--", label="level of the best copy")
        axis.set_yticks(positions, [one.column for one in risks])
        axis.set_xlim(0, 1)
        axis.set_xlabel("share of the column that the best attack recovers")
        axis.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, fontsize=8)

    return plotted(draw, axes, (6.8, 1.2 + 0.42 * len(risks)))


def outlier_bars(audit: Audit) -> str:
    """The outliers furthest from the median of their column."""
    outliers = (audit.singling_out.outliers if audit.singling_out else ())[:MAX_OUTLIERS]

    def draw(axis: Any) -> None:
        ordered = outliers[::-1]
        axis.barh(range(len(ordered)), [one.distance for one in ordered], color=ORANGE, height=0.7)
        axis.set_yticks(range(len(ordered)), [f"{one.record}, {one.column}" for one in ordered])
        axis.set_xlabel("distance from the median of the column, in noise standard deviations")

    return svg(draw, (7.2, 0.6 + 0.3 * len(outliers) + 0.4))


def breach_curves(risk: LinearMapRisk) -> str:
    """The breach probability of a rotated or projected copy against the number of known records."""

    def draw(axis: Any) -> None:
        for j, (epsilon, colour) in enumerate(zip(EPSILONS, (BLUE, ORANGE), strict=True)):
            label = f"share of records, ε = {epsilon:g}"
            curve = risk.known_records.curve
            counts = [point.known_records for point in curve]
            probabilities = [point.max_probability[j] for point in curve]
            shares = [point.breached_share[j] for point in curve]
            most = f"ρ of the record most at risk, ε = {epsilon:g}"
            axis.plot(counts, probabilities, "--", color=colour, label=most)
            axis.plot(counts, shares, "o-", color=colour, markersize=3.5, label=label)
        axis.set_xlabel("number of known records")
        axis.set_ylabel("estimated within ε of their norm")
        axis.set_ylim(-0.03, 1.05)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.axvline(risk.withstand, color=PALE, linewidth=1.2, linestyle=":", label="a copy must withstand")
        axis.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)

    return svg(draw, (6.4, 4.2))


def _means(run: AttackRun, measure: str) -> dict[str, float]:
    """The mean of a measure over all columns, by attack."""
    means = {}
    for score in run.scores:
        if measure == "error":
            values = [number.error.attack.estimate for number in score.numbers]
        else:
            values = [category.success.attack.estimate for category in score.categories]
        if values:
            means[score.attack] = float(np.nanmean(values))
    return means
