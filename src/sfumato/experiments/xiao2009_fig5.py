"""xiao2009, Figure 5: posterior distributions with and without collusion, for the most dissimilar pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import chi2

from sfumato.experiments import Claim, Experiment, Job, _uniform_copies, claim, select, to_table
from sfumato.experiments._plotting import bars_with_expected, legend_above


class Figure5(Experiment):
    """Both sides of equation 14: the posterior given all three copies, and given Charlie's alone."""

    title = "xiao2009, Fig. 5: posterior of X after and before collusion, worst case"
    description = (
        "Alice (30 %), Bob (10 %) and Charlie (50 %), in this order; each value is released three "
        "times by the product's own keyed perturbation, and the frequencies F[x, ya, yb, yc] are counted. "
        "10⁹ values per distribution (the paper: 10¹⁰). Only combinations that occur at least 1,000 "
        "times are compared."
    )
    data = "Adult (IPUMS)"
    figsize = (7.6, 5.2)

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _uniform_copies.data_source()

    def run(self, job: Job) -> pa.Table:
        """Count the frequencies, and find the most dissimilar pair of posteriors."""
        out = []
        for name, distribution in _uniform_copies.distributions().items():
            tuples = job.size(1_000_000_000, 2_000_000)
            counts = _uniform_copies.count_releases(distribution, tuples, job.seed, job.advance, joint=True)
            out += _worst(name, counts, job.size(1000, 50))
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot four panels."""
        for axis, name, letter in zip(figure.subplots(2, 2).flat, _uniform_copies.NAMES, "abcd", strict=True):
            x, observed, expected = (select(table, column, distribution=name) for column in ("x", "together", "alone"))
            bars_with_expected(
                axis, x, observed, expected, ("f(x | ya, yb, yc), all three", "f(x | yc), Charlie alone")
            )
            ya, yb, yc = (select(table, column, distribution=name)[0] for column in ("ya", "yb", "yc"))
            axis.set_title(f"({letter}) {name}: ya = {ya}, yb = {yb}, yc = {yc}", fontsize=8.5, loc="right")
            axis.set_xlabel("x")
            axis.set_ylabel("probability")
        legend_above(figure.axes[0], 2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Test whether the posteriors agree within sampling error."""
        out = []
        for name, letter in zip(_uniform_copies.NAMES, "abcd", strict=True):
            least_p, tests, count = (
                select(table, column, distribution=name)[0] for column in ("least_p", "tests", "count")
            )
            p = float(min(least_p * tests, 1))
            distance = float(
                np.linalg.norm(select(table, "together", distribution=name) - select(table, "alone", distribution=name))
            )
            out.append(
                claim(
                    f"({letter}) {name}: both sides of equation 14 agree with each other very well",
                    "section 7, Fig. 5",
                    "Pearson's test does not reject any combination (p > 0.001 after Bonferroni correction)",
                    f"L2 distance {distance:.4f}, in {count:,} occurrences; p = {p:.3f} over {tests:,} combinations",
                    p > 0.001,
                )
            )
        return out


def _worst(name: str, counts: Any, least: int) -> list[dict[str, Any]]:
    """The combination whose frequencies differ most from those expected from Charlie's copy alone."""
    alone = counts.sum(axis=(1, 2))
    alone = alone / alone.sum(axis=0)
    totals = counts.sum(axis=0)
    distance, least_p = np.zeros(totals.shape), 1.0
    for ya in range(len(alone)):  # one slice at a time, to save memory
        frequent, count = totals[ya] >= least, counts[:, ya]
        expected = totals[ya] * alone[:, None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            distance[ya] = np.where(frequent, np.sqrt(((count / totals[ya] - alone[:, None, :]) ** 2).sum(axis=0)), 0.0)
            least_p = min(least_p, float(_p_values(count, expected)[frequent].min(initial=1.0)))
    worst = np.unravel_index(distance.argmax(), distance.shape)
    together = counts[(slice(None), *worst)] / totals[worst]
    shared = {
        "distribution": name,
        "ya": int(worst[0]),
        "yb": int(worst[1]),
        "yc": int(worst[2]),
        "count": int(totals[worst]),
        "least_p": least_p,
        "tests": int((totals >= least).sum()),
    }
    return [
        {**shared, "x": x, "together": float(together[x]), "alone": float(alone[x, worst[2]])}
        for x in range(len(alone))
    ]


def _p_values(count: Any, expected: Any) -> Any:
    """The p-value of Pearson's test for each combination; values expected fewer than 25 times form one class."""
    frequent = expected >= 25
    rest = np.where(frequent, 0.0, expected).sum(axis=0)
    gap = np.where(frequent, 0.0, count - expected).sum(axis=0)
    statistic = np.where(frequent, (count - expected) ** 2 / expected, 0.0).sum(axis=0)
    statistic += np.where(rest >= 25, gap**2 / np.maximum(rest, 1e-9), 0.0)
    return chi2.sf(statistic, np.maximum(frequent.sum(axis=0) + (rest >= 25) - 1, 1))
