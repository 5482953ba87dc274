"""xiao2009, Figure 6: each copy alone is the output of uniform perturbation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import chi2

from sfumato.experiments import Claim, Experiment, Job, _uniform_copies, claim, select, to_table
from sfumato.experiments._plotting import bars_with_expected, legend_above


class Figure6(Experiment):
    """The distribution of a released value against equation 16, for the largest deviation."""

    title = "xiao2009, Fig. 6: a released value against uniform perturbation, worst case"
    description = (
        "Releases as in Figure 5, with fresh values, 10⁸ per distribution; of all originals that "
        "occur at least 1,000 times, the recipient and the original value with the largest L2 error."
    )
    data = "Adult (IPUMS)"
    figsize = (7.6, 5.2)
    seed = 2

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _uniform_copies.data_source()

    def run(self, job: Job) -> pa.Table:
        """Count the frequencies, and find the largest deviation."""
        out = []
        for name, distribution in _uniform_copies.distributions().items():
            tuples = job.size(100_000_000, 1_000_000)
            counts = _uniform_copies.count_releases(distribution, tuples, job.seed, job.advance, joint=False)
            out += _worst(name, counts)
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot four panels."""
        for axis, name, letter in zip(figure.subplots(2, 2).flat, _uniform_copies.NAMES, "abcd", strict=True):
            y, observed, expected = (select(table, column, distribution=name) for column in ("y", "observed", "theory"))
            bars_with_expected(axis, y, observed, expected, ("observed", "equation 16"))
            who, x = (select(table, column, distribution=name)[0] for column in ("who", "x"))
            axis.set_title(f"({letter}) {name}: i = {who}, x = {x}", fontsize=8.5, loc="right")
            axis.set_yscale("log")
            axis.yaxis.set_minor_formatter(lambda _value, _position: "")
            axis.set_xlabel("y")
            axis.set_ylabel("Pr[Y = y | X = x]")
        legend_above(figure.axes[0], 2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Test whether the frequencies agree with equation 16 within sampling error."""
        out = []
        for name, letter in zip(_uniform_copies.NAMES, "abcd", strict=True):
            statistic, freedom, tests, count = (
                select(table, column, distribution=name)[0] for column in ("statistic", "freedom", "tests", "count")
            )
            p = float(min(chi2.sf(statistic, freedom) * tests, 1))
            gap = float(
                np.linalg.norm(
                    select(table, "observed", distribution=name) - select(table, "theory", distribution=name)
                )
            )
            out.append(
                claim(
                    f"({letter}) {name}: the empirical values perfectly match the theoretical ones",
                    "section 7, Fig. 6",
                    "Pearson's test does not reject any distribution (p > 0.001 after Bonferroni correction)",
                    f"L2 error {gap:.5f}, from {count:,} values; p = {p:.3f} over {tests} distributions",
                    p > 0.001,
                )
            )
        return out


def _worst(name: str, counts: Any) -> list[dict[str, Any]]:
    """The recipient and the original value whose released values deviate most from equation 16."""
    size = counts.shape[1]
    retention = np.array(list(_uniform_copies.RETENTIONS.values()))[:, None, None]
    theory = retention * np.eye(size) + (1 - retention) / size
    totals = counts.sum(axis=2, keepdims=True)
    frequent = totals[:, :, 0] >= 1000
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(frequent, ((counts - totals * theory) ** 2 / (totals * theory)).sum(axis=2), 0.0)
        error = np.where(frequent, np.sqrt(((counts / totals - theory) ** 2).sum(axis=2)), 0.0)
    who, x = (int(i) for i in np.unravel_index(error.argmax(), error.shape))
    shared = {
        "distribution": name,
        "who": "abc"[who],
        "x": x,
        "count": int(totals[who, x, 0]),
        "statistic": float(statistic.max()),
        "freedom": size - 1,
        "tests": int(frequent.sum()),
    }
    return [
        {**shared, "y": y, "observed": float(counts[who, x, y] / totals[who, x, 0]), "theory": float(theory[who, x, y])}
        for y in range(size)
    ]
