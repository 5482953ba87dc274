"""giannella2010, Figure 4: the time of linking against the number of tuples."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks.linkage.inner_products import Rotated, link
from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments import _array_evidence as lab
from sfumato.experiments._plotting import slope
from sfumato.experiments._rotation_attacks import gaussian, letters
from sfumato.pages.svg import BLUE

PANELS = ("Gaussian, a = 50", "Letter Recognition, a = 10")


class Figure4(Experiment):
    """Linear, and short."""

    title = "giannella2010, Fig. 4: time to link the known inputs against the number of tuples"
    about = (
        "Gaussian data of 100 attributes with 50 known inputs, Letter Recognition with 10; the mean "
        "of ten attacks each."
    )
    data = "synthetic, footnote 18; Letter Recognition (UCI)"
    size = (7.6, 3.4)

    def run(self, job: Job) -> pa.Table:
        """Time the linking of growing prefixes."""
        whole = {PANELS[0]: (gaussian(job.size(100_000, 20_000)), 50), PANELS[1]: (letters(), 10)}
        out = []
        for share in job.steps(np.linspace(0.1, 1, job.size(10, 4))):
            for name, (data, known) in whole.items():
                # unique() sorts: take a random part, as the file's order is one
                some = data[job.rng(5).permutation(len(data))[: int(share * len(data))]]
                turned = some @ lab.orthogonal(job.rng(6), some.shape[1]).T
                took = []
                for run in range(job.size(10, 3)):
                    places = job.rng(7, run).choice(len(some), known, replace=False)
                    began = time.perf_counter()
                    link(some[places], Rotated(turned, 1e-9))
                    took.append(time.perf_counter() - began)
                out.append(
                    {"panel": name, "tuples": len(some), "seconds": float(np.mean(took)), "sd": float(np.std(took))}
                )
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Two panels."""
        for axis, name in zip(figure.subplots(1, 2), PANELS, strict=True):
            where = {"panel": name}
            axis.errorbar(
                cells(table, "tuples", **where),
                cells(table, "seconds", **where),
                cells(table, "sd", **where),
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
        """Straight lines or not."""
        out = []
        for name in PANELS:
            tuples, seconds = cells(table, "tuples", panel=name), cells(table, "seconds", panel=name)
            exponent = slope(tuples, seconds)
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
