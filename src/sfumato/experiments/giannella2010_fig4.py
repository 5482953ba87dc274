"""giannella2010, Figure 4: the time to link known inputs, against the number of tuples."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks.evidence.arrays import random_orthogonal
from sfumato.attacks.linkage.inner_products import ReleasedRows, link
from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._plotting import power_exponent
from sfumato.experiments._rotation_attacks import distinct_letters, gaussian_records
from sfumato.pages.svg import BLUE

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
                times = []
                for run in range(job.size(10, 3)):
                    inputs = job.rng(7, run).choice(len(subset), known, replace=False)
                    start = time.perf_counter()
                    link(subset[inputs], ReleasedRows(rotated, 1e-9))
                    times.append(time.perf_counter() - start)
                out.append(
                    {"panel": name, "tuples": len(subset), "seconds": float(np.mean(times)), "sd": float(np.std(times))}
                )
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two panels."""
        for axis, name in zip(figure.subplots(1, 2), PANELS, strict=True):
            where = {"panel": name}
            axis.errorbar(
                select(table, "tuples", **where),
                select(table, "seconds", **where),
                select(table, "sd", **where),
                color=BLUE,
                marker="o",
                markersize=4,
                capsize=2,
            )
            axis.set_title(name, fontsize=9.5, loc="right")
            axis.set_xlabel("number of tuples")
            axis.set_ylabel("seconds")
            axis.set_ylim(bottom=0)
            axis.grid(alpha=0.25)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that the run time is linear in the number of tuples."""
        out = []
        for name in PANELS:
            tuples, seconds = select(table, "tuples", panel=name), select(table, "seconds", panel=name)
            exponent = power_exponent(tuples, seconds)
            out.append(
                claim(
                    f"{name}: the average computation time exhibits a clear linear trend in the number of tuples",
                    "section IV-E, Fig. 4",
                    "exponent between 0.7 and 1.3",
                    f"{exponent:.2f}, with our algorithm, which takes {seconds.max():.3f} s at most",
                    0.7 < exponent < 1.3,
                )
            )
        return out
