"""The pictures of an audit, as SVG."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.audit.linear_map_risk import Advised
from sfumato.audit.result import AttackRun, Audit, Growth
from sfumato.pages.svg import BLUE, INK, ORANGE, PALE, svg
from sfumato.risk.breach import EPSILONS

_MEANING = {
    "error": "error left to the best linear attack\n(share of variance)",
    "reconstruction": "mean probability given\nto the true category",
}


def growth(found: Growth) -> str:
    """What one more copy gives an attacker, ours and independent (li2012, Figure 2; xiao2009, Figure 7)."""

    def draw(axis: Any) -> None:
        counts = np.arange(1, len(found.ours) + 1)
        axis.plot(counts, found.independent, "o-", color=ORANGE, label="had the noise been independent")
        axis.plot(counts, found.ours, "s-", color=BLUE, label="these copies")
        axis.set_xticks(counts[:: max(len(counts) // 10, 1)])
        axis.set_xlabel("number of copies pooled, the most faithful first")
        axis.set_ylabel(_MEANING[found.measure])
        axis.set_ylim(0, max(*found.ours, *found.independent) * 1.15)
        axis.legend(frameon=False, loc="best")

    return svg(draw, (5.6, 3.6))


def spread(audit: Audit) -> str:
    """How near the pooled estimate of a record comes, over all records (li2012, Figure 3)."""

    def draw(axis: Any) -> None:
        if audit.spread is None:
            raise ValueError("there is no spread of errors to draw")
        edges = np.array(audit.spread.edges)
        other = axis.twinx()
        for shares, colour, name in (
            (audit.spread.independent, ORANGE, "had the noise been independent"),
            (audit.spread.ours, BLUE, "these copies"),
        ):
            axis.stairs(np.array(shares) * 100, edges, color=colour, fill=True, alpha=0.25)
            axis.stairs(np.array(shares) * 100, edges, color=colour, linewidth=1.4, label=name)
            other.plot(edges[1:], np.cumsum(shares) * 100, color=colour, linestyle=":", linewidth=1.4)
        axis.set_xlabel("error of a record, in standard deviations of its columns")
        axis.set_ylabel("records (%)")
        other.set_ylabel("cumulative (%), dotted")
        other.set_ylim(0, 105)
        axis.legend(frameon=False, loc="center right", fontsize=9)

    return svg(draw, (5.6, 3.6))


def bars(audit: Audit, measure: str) -> str:
    """Every attack, on the best copy alone, on all, and on independent ones."""
    best = max(range(len(audit.copies)), key=lambda i: audit.copies[i].fidelity)
    groups = [
        (f"{audit.alone[best].holder} alone", PALE, _means(audit.alone[best], measure)),
        ("all together", BLUE, _means(audit.pooled, measure)),
        ("had the noise been independent", ORANGE, _means(audit.independent, measure)),
    ]
    groups = [group for group in groups if group[2]]
    pooled = _means(audit.pooled, measure)
    names = sorted({name for _, _, means in groups for name in means}, key=lambda name: pooled.get(name, 9.0))
    error = measure == "error"
    top = 1.25 if error else 1.0

    def draw(axis: Any) -> None:
        for k, (label, colour, means) in enumerate(groups):
            places = [i + (k - 1) * 0.27 for i, name in enumerate(names) if name in means]
            values = [means[name] for name in names if name in means]
            drawn = axis.bar(places, np.minimum(values, top), 0.25, color=colour, label=label)
            axis.bar_label(drawn, [f"{value:.2f}" for value in values], fontsize=8, padding=1, rotation=90)
        axis.set_xticks(range(len(names)), names, **({"rotation": 25, "ha": "right"} if len(names) > 8 else {}))
        axis.set_ylabel("error left (share of variance,\nmean over columns)" if error else "categories guessed right")
        if error:
            axis.axhline(1, color=INK, linewidth=0.8, linestyle="--")
        axis.set_ylim(0, top * 1.12)
        axis.legend(frameon=False, loc="upper left", ncols=3, fontsize=9, bbox_to_anchor=(0, 1.12))

    return svg(draw, (9.6, 3.8) if len(names) > 4 else (6.4, 3.4))


def exposed(audit: Audit) -> str:
    """The records that stand out furthest."""

    def draw(axis: Any) -> None:
        shown = (audit.exposure.outliers if audit.exposure else ())[:12][::-1]
        axis.barh(range(len(shown)), [one.distance for one in shown], color=ORANGE, height=0.7)
        axis.set_yticks(range(len(shown)), [f"{one.record}, {one.column}" for one in shown])
        axis.set_xlabel("distance from the middle of the column, in noise deviations")

    return svg(draw, (7.2, 0.6 + 0.3 * min(len(audit.exposure.outliers if audit.exposure else ()), 12) + 0.4))


def danger(advised: Advised) -> str:
    """What known records, and samples of the population, undo of a turned copy (giannella2010, Figures 1 and 2)."""

    def draw(axis: Any) -> None:
        for j, (epsilon, colour) in enumerate(zip(EPSILONS, (BLUE, ORANGE), strict=True)):
            if advised.known is not None:
                counts = [one.known for one in advised.known.dangers]
                rho = [one.rho[j] for one in advised.known.dangers]
                share = [one.share[j] for one in advised.known.dangers]
                axis.plot(counts, rho, "--", color=colour, label=f"ρ of the most endangered record, ε = {epsilon:g}")
                axis.plot(counts, share, "o-", color=colour, markersize=3.5, label=f"share of records, ε = {epsilon:g}")
            else:
                sizes = [one.size for one in advised.samples]
                share = [one.share[j] for one in advised.samples]
                axis.semilogx(sizes, share, "s-", color=colour, label=f"share of records, ε = {epsilon:g}")
        axis.set_xlabel("number of known records" if advised.known else "size of a known sample")
        axis.set_ylabel("found within ε of their size")
        axis.set_ylim(-0.03, 1.05)
        if advised.known is not None:
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.axvline(advised.withstand, color=PALE, linewidth=1.2, linestyle=":", label="a copy must withstand")
        axis.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)

    return svg(draw, (6.4, 4.2))


def _means(trial: AttackRun, measure: str) -> dict[str, float]:
    """The mean of a measure over all columns, by attack."""
    out = {}
    for one in trial.scores:
        if measure == "error":
            values = [number.error.attack.value for number in one.numbers]
        else:
            values = [category.success.attack.value for category in one.categories]
        if values:
            out[one.attack] = float(np.nanmean(values))
    return out
