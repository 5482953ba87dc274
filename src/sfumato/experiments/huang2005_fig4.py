"""huang2005, Figure 4, Experiment 4: reconstruction error against the dissimilarity of data and noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._huang_data import EIGENVALUES_4, SETTINGS, dissimilarity, noise4, simulate, sweep
from sfumato.experiments._plotting import legend_above, lines

SHARES = (800 / 404, 1.8, 1.6, 1.4, 1.2, 1.0, 0.85, 0.7, 0.5, 0.3, 0.1)


class Figure4(Experiment):
    """The reconstruction error against the correlation dissimilarity of data and noise."""

    title = "huang2005, Fig. 4: increase the correlation dissimilarity of data and noise"
    description = (
        "100 attributes, 50 eigenvalues of 400 and 50 of 4; noise on the same eigenvectors with the "
        "same trace. PCA-DR uses the eigenvectors of Σy - Σr (H5). The vertical line: independent noise."
    )
    data = "synthetic normal records, section 8.2"
    chosen_settings = SETTINGS

    def run(self, job: Job) -> pa.Table:
        """Attack with every scheme at every dissimilarity (Definition 8.1)."""
        rows, shares = 10_000, job.size(SHARES, (800 / 404, 1.4, 1.0, 0.5, 0.1))
        errors = sweep(
            job.track(shares),
            lambda share, r: simulate(EIGENVALUES_4, rows, noise4(share), repeat=r),
            job.size(3, 1),
            pca={"scaled": False},
        )
        measure = {share: dissimilarity(share) for share in shares}
        return to_table({**row, "dissimilarity": measure[row["x"]], "independent": measure[1.0]} for row in errors)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot one line per scheme."""
        axis = figure.subplots()
        lines(axis, table, "dissimilarity", "rmse", "scheme", "sd")
        axis.axvline(select(table, "independent")[0], color="#9aa7b2", linestyle="--", linewidth=1)
        axis.set_xlabel("correlation dissimilarity, Definition 8.1 as printed")
        axis.set_ylabel("root mean square error")
        legend_above(axis, 5)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that noise protects better the more it resembles the data."""
        by = {name: select(table, "rmse", scheme=name) for name in ("UDR", "SF", "PCA-DR", "BE-DR")}
        share = select(table, "x", scheme="SF")
        falls = all((np.diff(by[name]) < 0).all() for name in ("PCA-DR", "BE-DR"))
        left, right = share > 1, share < 1
        gain = {name: float(by[name][0] - by[name][share == 1][0]) for name in ("PCA-DR", "BE-DR")}
        below = float((by["SF"][left] / by["PCA-DR"][left]).max())
        above = float((by["SF"][right] / by["PCA-DR"][right]).min())
        rises = bool(by["SF"][-1] > by["SF"][share == 1][0])
        where = "section 8.2, Fig. 4"
        return [
            claim(
                "when the correlations of the noise are almost the same as the data's, reconstruction has the highest "
                "error; as dissimilarity increases, privacy becomes worse",
                where,
                "PCA-DR and BE-DR strictly falling, with the eigenvectors of Σy - Σr",
                ", ".join(f"{n} {by[n][0]:.2f} to {by[n][-1]:.2f}" for n in ("PCA-DR", "BE-DR")),
                falls,
                "H5",
            ),
            claim(
                "the curves left of the line show how much privacy correlated noise gains over independent noise",
                where,
                "the error at the left end exceeds that at the line by more than 0.5, for PCA-DR and BE-DR",
                ", ".join(f"{n} by {v:.2f}" for n, v in gain.items()),
                min(gain.values()) > 0.5,
            ),
            claim(
                "SF is the exception, and behaves differently after the vertical line",
                where,
                "SF at most 1.1 times PCA-DR left of it, at least 1.2 times right of it, where it rises again",
                f"at most {below:.2f} times, at least {above:.2f} times",
                below < 1.1 and above > 1.2 and rises,
            ),
        ]
