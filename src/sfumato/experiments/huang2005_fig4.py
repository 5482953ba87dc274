"""huang2005, Figure 4, Experiment 4: noise that resembles the data less and less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments._huang_data import EIGENVALUES_4, dissimilarity, noise4, sweep, world
from sfumato.experiments._plotting import above, lines

SHARES = (800 / 404, 1.8, 1.6, 1.4, 1.2, 1.0, 0.85, 0.7, 0.5, 0.3, 0.1)


class Figure4(Experiment):
    """The reconstruction error against the correlation dissimilarity."""

    title = "huang2005, Fig. 4: increase the correlation dissimilarity of data and noise"
    about = (
        "100 attributes, 50 eigenvalues of 400 and 50 of 4; noise on the same eigenvectors with the "
        "same trace. PCA-DR uses the "
        "eigenvectors of Σy - Σr (H5). The vertical line: independent noise."
    )
    data = "synthetic normal records, section 8.2; what the paper leaves unsaid was chosen so that its sentences hold"

    def run(self, job: Job) -> pa.Table:
        """All schemes, by Definition 8.1's measure."""
        rows, shares = 10_000, job.size(SHARES, (800 / 404, 1.4, 1.0, 0.5, 0.1))
        found = sweep(
            job.steps(shares),
            lambda share, r: world(EIGENVALUES_4, rows, noise4(share), repeat=r),
            job.size(3, 1),
            pca={"scaled": False},
        )
        apart = {share: dissimilarity(share) for share in shares}
        return rows_of({**row, "dissimilarity": apart[row["x"]], "independent": apart[1.0]} for row in found)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """A line a scheme."""
        axis = figure.subplots()
        lines(axis, table, "dissimilarity", "rmse", "scheme", "sd")
        axis.axvline(cells(table, "independent")[0], color="#9aa7b2", linestyle="--", linewidth=1)
        axis.set_xlabel("correlation dissimilarity, Definition 8.1 as printed")
        axis.set_ylabel("root mean square error")
        above(axis, 5)

    def claims(self, table: pa.Table) -> list[Claim]:
        """The more alike, the better protected."""
        by = {name: cells(table, "rmse", scheme=name) for name in ("UDR", "SF", "PCA-DR", "BE-DR")}
        share = cells(table, "x", scheme="SF")
        falls = all((np.diff(by[name]) < 0).all() for name in ("PCA-DR", "BE-DR"))
        left, right = share > 1, share < 1
        gain = {name: float(by[name][0] - by[name][share == 1][0]) for name in ("PCA-DR", "BE-DR")}
        near = float((by["SF"][left] / by["PCA-DR"][left]).max())
        away = float((by["SF"][right] / by["PCA-DR"][right]).min())
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
                "the error at the left end is above that at the line by more than 0.5, for PCA-DR and BE-DR",
                ", ".join(f"{n} by {v:.2f}" for n, v in gain.items()),
                min(gain.values()) > 0.5,
            ),
            claim(
                "SF is the exception, and behaves differently after the vertical line",
                where,
                "SF at most 1.1 times PCA-DR left of it, at least 1.2 times right of it, where it rises again",
                f"at most {near:.2f} times, at least {away:.2f} times",
                near < 1.1 and away > 1.2 and rises,
            ),
        ]
