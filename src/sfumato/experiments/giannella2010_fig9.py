"""giannella2010, Figure 9: the PCA attack against the size α of the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._known_samples import OURS, PAPER
from sfumato.experiments._plotting import legend, lines
from sfumato.experiments._rotation_attacks import DIAGONAL, known_sample_breaches, normal_sampler

ATTACKS: dict[str, dict[str, Any]] = {PAPER: {"method": "energy"}, OURS: {"components": 1}}


class Figure9(Experiment):
    """The breach rate against the mean: a distribution that is its own reflection defeats the attack."""

    title = "giannella2010, Fig. 9: PCA attack by the size α of the mean (ε = 0.05, 2 %)"
    description = "Mean α(1, 1, 1), variances 0.1, 2 and 40. Mean over 100 runs; bars: the standard error."
    data = "synthetic Gaussian, section V-D, 10,000 tuples"

    def run(self, job: Job) -> pa.Table:
        """Attack for each mean."""
        out = []
        for alpha in job.track(job.size((0, 0.1, 0.25, 0.5, 1, 2, 4, 7, 10), (0, 2))):
            sampler = normal_sampler(np.full(3, float(alpha)), DIAGONAL)
            for name, options in ATTACKS.items():
                [rate] = known_sample_breaches(
                    sampler, job.size(100, 25), 10_000, 200, [0.05], job, int(100 * alpha), **options
                )
                out.append({"attack": name, "x": alpha, **rate})
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two lines."""
        axis = figure.subplots()
        lines(axis, table, "x", "rate", "attack", "error")
        axis.set_xlabel("α, the size of the mean")
        axis.set_ylabel("share of tuples breached")
        axis.set_ylim(-0.03, 1.08)
        legend(axis, loc="lower right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check the breach rates at a mean of zero and far from it."""
        x, rate = select(table, "x", attack=PAPER), select(table, "rate", attack=PAPER)
        return [
            claim(
                "as the mean approaches zero, the probability of a breach drops to zero",
                "section V-D, Fig. 9",
                "below 0.02 at α = 0 (the three signs are coin flips there, and 1/8 of the runs get all of them right)",
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
