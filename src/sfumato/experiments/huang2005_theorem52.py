"""huang2005, Theorem 5.2: the mean square error of PCA-based reconstruction and the part due to noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks.evidence.arrays import rmse
from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._huang_data import NOISE, experiment3, simulate
from sfumato.experiments._plotting import legend_above, lines


class Theorem52(Experiment):
    """The error of PCA-DR: a noise part of σ²p/m, and the variance of the discarded components."""

    title = "huang2005, Theorem 5.2: error of PCA-DR by the components p it keeps"
    description = (
        "100 attributes, 20 eigenvalues of 400 and 80 of 5, noise of variance 25; the projected noise "
        "alone, and the total error of the reconstruction."
    )
    data = "synthetic normal records"

    def run(self, job: Job) -> pa.Table:
        """Project the noise alone, and reconstruct."""
        simulation = simulate(experiment3(5.0), 20_000)
        observed = simulation.evidence.numbers[0].values
        axes = np.linalg.eigh(np.cov(observed.T))[1][:, ::-1]
        out = []
        for p in job.track((5, 10, 20, 30, 50, 70, 100)):
            q = axes[:, :p]
            noise = float((((observed - simulation.original) @ q) ** 2).sum(axis=1).mean() / 100)
            total = rmse("pca", simulation.evidence, simulation.original, components=p, scaled=False) ** 2
            lost = (400.0 * max(20 - p, 0) + 5.0 * (80 - max(p - 20, 0))) / 100
            for what, ours, theory in (
                ("noise retained", noise, NOISE * p / 100),
                ("total error", total, NOISE * p / 100 + lost),
            ):
                out.append({"what": what, "p": p, "ours": ours, "theory": theory})
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot measured points, and the theory as dashed lines."""
        axis = figure.subplots()
        lines(axis, table, "p", "ours", "what")
        for what, formula in (("noise retained", "σ²p/m"), ("total error", "σ²p/m + Σλ/m, i > p")):
            axis.plot(
                select(table, "p", what=what),
                select(table, "theory", what=what),
                "--",
                color="#22303c",
                linewidth=1,
                label=formula,
            )
        axis.set_yscale("log")
        axis.set_xlabel("principal components p retained, of m = 100")
        axis.set_ylabel("mean square error")
        legend_above(axis, 4)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check the printed formula for the noise and the corrected one for the total error."""
        off = {
            what: float(np.abs(select(table, "ours", what=what) / select(table, "theory", what=what) - 1).max())
            for what in ("noise retained", "total error")
        }
        ratio = float(
            (select(table, "ours", what="total error") / (NOISE * select(table, "p", what="total error") / 100)).max()
        )
        return [
            claim(
                "the noise that PCA-DR keeps has variance σ²p/m",
                "section 5.3, Theorem 5.2",
                "within 5 %",
                f"off by {off['noise retained']:.1%} at most",
                off["noise retained"] < 0.05,
            ),
            claim(
                "the reconstruction has two sources of error: noise that is kept and data that are discarded",
                "section 5.3, eq. 7",
                "σ²p/m + Σλᵢ/m over i > p, within 5 %",
                f"off by {off['total error']:.1%} at most; the noise part alone is up to {ratio:.0f} times smaller",
                off["total error"] < 0.05,
            ),
        ]
