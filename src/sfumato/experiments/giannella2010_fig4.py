"""giannella2010, Figure 4: the time to link known inputs, against the number of tuples."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks.evidence.arrays import random_orthogonal
from sfumato.attacks.linkage.inner_products import ReleasedRows, link
from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._paper_algorithms import algorithm_iv_a3
from sfumato.experiments._plotting import legend, lines, straightness
from sfumato.experiments._rotation_attacks import distinct_letters, gaussian_records

PAPER, OURS = "Algorithm IV-A.3, corrected (G2)", "ours"
ALGORITHMS: dict[str, Callable[[Any, Any], object]] = {
    PAPER: algorithm_iv_a3,
    OURS: lambda known, rows: link(known, ReleasedRows(rows, 1e-9)),
}
PANELS = ("Gaussian, a = 50", "Letter Recognition, a = 10")


class Figure4(Experiment):
    """The run time of linking against the number of tuples."""

    title = "giannella2010, Fig. 4: time to link the known inputs against the number of tuples"
    description = (
        "Gaussian data of 100 attributes with 50 known inputs, Letter Recognition with 10; the mean "
        "of ten attacks each."
    )
    data = "synthetic, footnote 18; Letter Recognition (UCI)"
    figsize = (7.6, 3.4)
    measures_time = True

    def run(self, job: Job) -> pa.Table:
        """Time the linking in random subsets of growing size."""
        datasets = {PANELS[0]: (gaussian_records(job.size(100_000, 20_000)), 50), PANELS[1]: (distinct_letters(), 10)}
        out = []
        for share in job.track(np.linspace(0.1, 1, job.size(10, 4))):
            for name, (data, known) in datasets.items():
                # a random subset, as in the file: unique() has sorted the rows
                subset = data[job.rng(5).permutation(len(data))[: int(share * len(data))]]
                rotated = subset @ random_orthogonal(job.rng(6), subset.shape[1]).T
                times: dict[str, list[float]] = {algorithm: [] for algorithm in ALGORITHMS}
                for run in range(job.size(10, 3)):
                    inputs = job.rng(7, run).choice(len(subset), known, replace=False)
                    for algorithm, solve in ALGORITHMS.items():
                        start = time.perf_counter()
                        solve(subset[inputs], rotated)
                        times[algorithm].append(time.perf_counter() - start)
                out += [
                    {
                        "panel": name,
                        "algorithm": algorithm,
                        "tuples": len(subset),
                        "seconds": float(np.mean(taken)),
                        "sd": float(np.std(taken)),
                    }
                    for algorithm, taken in times.items()
                ]
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two panels."""
        for axis, name in zip(figure.subplots(1, 2), PANELS, strict=True):
            lines(axis, table, "tuples", "seconds", "algorithm", "sd", panel=name)
            axis.set_title(name, fontsize=9.5, loc="right")
            axis.set_xlabel("number of tuples")
            axis.set_ylabel("seconds")
            axis.set_ylim(bottom=0)
            legend(axis, loc="upper left")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that the run time is linear in the number of tuples."""
        out = []
        for name in PANELS:
            tuples, seconds, ours = (
                select(table, column, panel=name, algorithm=algorithm)
                for column, algorithm in (("tuples", PAPER), ("seconds", PAPER), ("seconds", OURS))
            )
            straight = straightness(tuples, seconds)
            out.append(
                claim(
                    f"{name}: the average computation time exhibits a clear linear trend in the number of tuples",
                    "section IV-E, Fig. 4",
                    "a rising straight line explains 90 % of the variance of the paper's algorithm",
                    f"{straight:.0%}, {seconds.max():.3f} s at most; our algorithm takes {ours.max():.3f} s at most",
                    straight > 0.9,
                )
            )
        return out
