"""giannella2010, Figure 9: the PCA attack by the size α of the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments._known_samples import OURS, PAPER
from sfumato.experiments._plotting import legend, lines
from sfumato.experiments._rotation_attacks import DIAGONAL, breaches, normal

ATTACKS: dict[str, dict[str, Any]] = {PAPER: {"method": "energy"}, OURS: {"components": 1}}


class Figure9(Experiment):
    """A law that mirrors onto itself misleads the attack."""

    title = "giannella2010, Fig. 9: PCA attack by the size α of the mean (ε = 0.05, 2 %)"
    about = "Mean α(1, 1, 1), variances 0.1, 2 and 40. Mean over 100 runs; bars: the standard error."
    data = "synthetic Gaussian, section V-D, 10,000 tuples"

    def run(self, job: Job) -> pa.Table:
        """Attack, for each setting."""
        out = []
        for at in job.steps(job.size((0, 0.1, 0.25, 0.5, 1, 2, 4, 7, 10), (0, 2))):
            draw = normal(np.full(3, float(at)), DIAGONAL)
            for name, options in ATTACKS.items():
                [found] = breaches(draw, job.size(100, 25), 10_000, 200, [0.05], job, int(100 * at), **options)
                out.append({"attack": name, "x": at, **found})
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Two lines."""
        axis = figure.subplots()
        lines(axis, table, "x", "rate", "attack", "error")
        axis.set_xlabel("α, the size of the mean")
        axis.set_ylabel("share of tuples breached")
        axis.set_ylim(-0.03, 1.08)
        legend(axis, loc="lower right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """From chance to certainty."""
        x, rate = cells(table, "x", attack=PAPER), cells(table, "rate", attack=PAPER)
        return [
            claim(
                "as the mean approaches zero, the probability of a breach drops to zero",
                "section V-D, Fig. 9",
                "below 0.02 at α = 0 (signs become coins there, and 1/8 of the runs find them all)",
                f"{rate[0]:.2f} at α = 0",
                bool(rate[0] < 0.02),
                "G13",
            ),
            claim(
                "as the mean runs away from zero, the probability increases very fast",
                "section V-D, Fig. 9",
                "above 0.9 from α = 2 on",
                f"{rate[x >= 2].min():.2f} at least",
                bool(rate[x >= 2].min() > 0.9),
            ),
        ]
