"""huang2005, Figure 3, Experiment 3: reconstruction error against the non-principal eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._huang_data import SETTINGS, experiment3, simulate, sweep
from sfumato.experiments._plotting import legend_above, lines


class Figure3(Experiment):
    """The reconstruction error against the eigenvalues of the components that PCA discards."""

    title = "huang2005, Fig. 3: increase the eigenvalues of the non-principal components"
    description = "100 attributes, 20 eigenvalues of 400 and 80 of s."
    data = "synthetic normal records, section 7.1"
    chosen_settings = SETTINGS

    def run(self, job: Job) -> pa.Table:
        """Attack with every reconstruction scheme at every setting."""
        rows = 10_000
        small = job.track(job.size((1, 3, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50), (1, 10, 30, 50)))
        return to_table(sweep(small, lambda s, r: simulate(experiment3(s), rows, repeat=r), job.size(3, 1)))

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot one line per scheme."""
        axis = figure.subplots()
        lines(axis, table, "x", "rmse", "scheme", "sd")
        axis.set_xlabel("eigenvalue s of the 80 non-principal components")
        axis.set_ylabel("root mean square error")
        legend_above(axis, 5)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that the errors rise, those of SF and PCA-DR above UDR, and that BE-DR converges to UDR."""
        by = {name: select(table, "rmse", scheme=name) for name in ("UDR", "SF", "PCA-DR", "BE-DR")}
        s = select(table, "x", scheme="UDR")
        rises = {name: float(by[name][-1] - by[name][0]) for name in ("SF", "PCA-DR", "BE-DR")}
        worse = all((np.diff(by[name]) > -0.03).all() for name in rises) and min(rises.values()) > 1
        crossed = {name: s[by[name] > by["UDR"]] for name in ("SF", "PCA-DR")}
        change = by["UDR"][-1] / by["UDR"][0] - 1
        gap = by["UDR"] - by["BE-DR"]
        where = "section 7.4, Fig. 3"
        return [
            claim(
                "when the eigenvalues become larger, the accuracy of SF, PCA-DR and BE-DR all become worse",
                where,
                "errors rise by more than 1 in total, and never fall by 0.03",
                ", ".join(f"{n} {v[0]:.2f} to {v[-1]:.2f}" for n, v in by.items()),
                worse,
            ),
            claim(
                "after certain points the errors of SF and PCA-DR are even higher than UDR",
                where,
                "true of both",
                ", ".join(f"{n} from s = {v[0]}" if len(v) else f"{n} never" for n, v in crossed.items()),
                all(len(v) for v in crossed.values()),
            ),
            claim(
                "changing the eigenvalues of the non-principal components does not affect UDR",
                where,
                "changes by less than 1 %",
                f"{change:+.1%}",
                bool(abs(change) < 0.01),
                "H8",
            ),
            claim(
                "when the eigenvalues on the non-principal components are small, SF and PCA-DR are close",
                "section 7.2",
                "within 15 % at s = 1",
                f"SF {by['SF'][0]:.2f}, PCA-DR {by['PCA-DR'][0]:.2f}",
                bool(by["SF"][0] / by["PCA-DR"][0] < 1.15),
            ),
            claim(
                "BE-DR converges to the performance of UDR when the correlations of data are low",
                where,
                "the gap shrinks at every step to less than a quarter, and BE-DR stays below",
                f"gap {gap[0]:.2f} to {gap[-1]:.2f}",
                bool((np.diff(gap) < 0).all() and 0 < gap[-1] < gap[0] / 4),
            ),
        ]
