"""huang2005, Theorem 5.2: how much noise PCA-based reconstruction lets through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments import _array_evidence as lab
from sfumato.experiments._huang_data import NOISE, experiment3, world
from sfumato.experiments._plotting import above, lines


class Theorem52(Experiment):
    """The noise part is σ²p/m; the whole error has a discarded-signal part too."""

    title = "huang2005, Theorem 5.2: error of PCA-DR by the components p it keeps"
    about = (
        "100 attributes, 20 eigenvalues of 400 and 80 of 5, noise of variance 25; the noise alone, "
        "projected, and the whole reconstruction."
    )
    data = "synthetic normal records"

    def run(self, job: Job) -> pa.Table:
        """Project the noise, and reconstruct."""
        found = world(experiment3(5.0), 20_000)
        seen = found.evidence.numbers[0].values
        axes = np.linalg.eigh(np.cov(seen.T))[1][:, ::-1]
        out = []
        for p in job.steps((5, 10, 20, 30, 50, 70, 100)):
            q = axes[:, :p]
            noise = float((((seen - found.real) @ q) ** 2).sum(axis=1).mean() / 100)
            whole = lab.rmse("pca", found.evidence, found.real, components=p, scaled=False) ** 2
            lost = (400.0 * max(20 - p, 0) + 5.0 * (80 - max(p - 20, 0))) / 100
            for what, ours, theory in (
                ("noise that is kept", noise, NOISE * p / 100),
                ("whole error", whole, NOISE * p / 100 + lost),
            ):
                out.append({"what": what, "p": p, "ours": ours, "theory": theory})
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Measured points, theory dashed."""
        axis = figure.subplots()
        lines(axis, table, "p", "ours", "what")
        for what, formula in (("noise that is kept", "σ²p/m"), ("whole error", "σ²p/m + Σλ/m, i > p")):
            axis.plot(
                cells(table, "p", what=what),
                cells(table, "theory", what=what),
                "--",
                color="#22303c",
                linewidth=1,
                label=formula,
            )
        axis.set_yscale("log")
        axis.set_xlabel("principal components p that are kept, of m = 100")
        axis.set_ylabel("mean square error")
        above(axis, 4)

    def claims(self, table: pa.Table) -> list[Claim]:
        """As printed for the noise, corrected for the whole."""
        off = {
            what: float(np.abs(cells(table, "ours", what=what) / cells(table, "theory", what=what) - 1).max())
            for what in ("noise that is kept", "whole error")
        }
        short = float(
            (cells(table, "ours", what="whole error") / (NOISE * cells(table, "p", what="whole error") / 100)).max()
        )
        return [
            claim(
                "the noise that PCA-DR keeps has variance σ²p/m",
                "section 5.3, Theorem 5.2",
                "within 5 %",
                f"off by {off['noise that is kept']:.1%} at most",
                off["noise that is kept"] < 0.05,
            ),
            claim(
                "the reconstruction has two sources of error: noise that is kept and data that are discarded",
                "section 5.3, eq. 7",
                "σ²p/m + Σλᵢ/m over i > p, within 5 %",
                f"off by {off['whole error']:.1%} at most; the noise part alone is up to {short:.0f} times less",
                off["whole error"] < 0.05,
            ),
        ]
