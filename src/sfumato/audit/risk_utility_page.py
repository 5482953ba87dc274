"""Risk-utility map as a page: one curve per mechanism, and the levels of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato import pages
from sfumato.audit.risk_utility import RiskUtilityPoint
from sfumato.pages.svg import BLUE, ORANGE, svg

HEAD = ("mechanism", "fidelity", "column at the highest risk", "best attack", "recovered", "predictions kept", "means")


def rows(points: Sequence[RiskUtilityPoint]) -> list[tuple[str, ...]]:
    """The points as a table."""
    return [
        (
            point.mechanism,
            f"{point.fidelity:g}",
            point.column,
            point.attack,
            f"{point.recovered:.0%}",
            f"{point.preserved:.0%}",
            f"within {point.utility.largest_mean_error:.1%}",
        )
        for point in points
    ]


def page(dataset: str, points: Sequence[RiskUtilityPoint], levels: Sequence[float]) -> str:
    """The map with its figure and table."""
    table = pages.table(HEAD, rows(points), texts=4)
    body = f"<figure>{figure(points, levels)}</figure><p>{meaning(levels)}</p>{table}"
    worst = max(points, key=lambda point: point.recovered)
    return pages.page(
        title=f"Risk and utility of {dataset}",
        verdict=f"{worst.column} sets the limit: {worst.attack} recovers most of it.",
        body=body,
        footer="Made on a sample of the table, with the strongest attacks that know no record; the audit tries all.",
    )


def meaning(levels: Sequence[float]) -> str:
    """How to read the map."""
    declared = ", ".join(f"{level:g}" for level in levels)
    return (
        "Each point is a level. To the right, the best attack recovers more of the column at the highest risk; further "
        "up, models that are trained on the copy as it stands predict more of what models of the original do. Vertical "
        f"lines show today's levels: {declared}. Means are within a share of their column's standard deviation."
    )


def figure(points: Sequence[RiskUtilityPoint], levels: Sequence[float]) -> str:
    """The map as a picture."""

    def draw(axis: Any) -> None:
        for colour, name in zip((BLUE, ORANGE), dict.fromkeys(point.mechanism for point in points), strict=False):
            own = [point for point in points if point.mechanism == name]
            axis.plot([p.recovered for p in own], [p.preserved for p in own], "o-", color=colour, label=name)
            for point in own:
                at = (point.recovered, point.preserved)
                axis.annotate(f"{point.fidelity:g}", at, (4, 4), textcoords="offset points", fontsize=8)
        own = [point for point in points if point.mechanism == points[0].mechanism]
        for level in levels:
            nearest = min(own, key=lambda point: abs(point.fidelity - level))
            axis.axvline(nearest.recovered, color=BLUE, alpha=0.25, linewidth=6)
        axis.set_xlabel("risk: share of the worst column that the best attack recovers")
        axis.set_ylabel("utility: predictions kept")
        axis.set_xlim(-0.02, 1.02)
        axis.set_ylim(-0.02, 1.1)
        axis.legend(frameon=False, loc="lower right")

    return svg(draw, (7.2, 4.6))
