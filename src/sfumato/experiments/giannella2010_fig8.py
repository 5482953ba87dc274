"""giannella2010, Figure 8: the PCA attack against the minimum eigen-ratio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._known_samples import OURS, PAPER
from sfumato.experiments._plotting import legend, lines
from sfumato.experiments._rotation_attacks import MEAN, known_sample_breaches, normal_sampler

ATTACKS: dict[str, dict[str, Any]] = {PAPER: {"method": "energy"}, OURS: {"components": 1}}
EQUAL = "PCA attack, all three variances 2"


class Figure8(Experiment):
    """The breach rate against the separation of the eigenvalues."""

    title = "giannella2010, Fig. 8: PCA attack by the minimum eigen-ratio (ε = 0.05, 2 %)"
    description = (
        "Mean (10, 10, 10), variances 0.1, 2 and b for b from 2 to 40. Mean over 100 runs; bars: the standard error."
    )
    data = "synthetic Gaussian, section V-D, 10,000 tuples"

    def run(self, job: Job) -> pa.Table:
        """Attack for each eigen-ratio."""
        out = []
        for ratio in job.track(job.size((1, 1.25, 1.5, 2, 3, 5, 10, 20), (1, 20))):
            sampler = normal_sampler(MEAN, np.diag([0.1, 2.0, 2.0 * ratio]))
            for name, options in ATTACKS.items():
                [rate] = known_sample_breaches(
                    sampler, job.size(100, 25), 10_000, 200, [0.05], job, int(100 * ratio), **options
                )
                out.append({"attack": name, "x": float(ratio), **rate})
        equal = normal_sampler(MEAN, 2.0 * np.eye(3))
        [rate] = known_sample_breaches(equal, job.size(100, 25), 10_000, 200, [0.05], job, 1, method="energy")
        return to_table([*out, {"attack": EQUAL, "x": 1.0, **rate}])

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two lines."""
        axis = figure.subplots()
        lines(
            axis, to_table(row for row in table.to_pylist() if row["attack"] in ATTACKS), "x", "rate", "attack", "error"
        )
        axis.set_xlabel("minimum eigen-ratio")
        axis.set_ylabel("share of tuples breached")
        axis.set_ylim(-0.03, 1.08)
        legend(axis, loc="lower right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that well-separated eigenvalues help the PCA attack, and equal ones stop it."""
        x, rate, ours = (
            select(table, "x", attack=PAPER),
            select(table, "rate", attack=PAPER),
            select(table, "rate", attack=OURS),
        )
        return [
            claim(
                "the higher the eigen-ratio, the better the performance of the attack",
                "section V-D, Fig. 8",
                "below 0.25 at ratio 1, above 0.9 at ratio 20, rising by steps of no less than -0.1",
                f"{rate[0]:.2f} at {x[0]}, {rate[-1]:.2f} at {x[-1]}",
                bool(rate[0] < 0.25 and rate[-1] > 0.9 and (np.diff(rate) > -0.1).all()),
            ),
            claim(
                "when all eigenvalues are the same, the PCA attack will fail",
                "section V-D",
                "below 0.25 with variances 2, 2 and 2",
                f"{select(table, 'rate', attack=EQUAL)[0]:.2f}",
                bool(select(table, "rate", attack=EQUAL)[0] < 0.25),
            ),
            claim(
                "the smaller the separation of the eigenvalues, the lower the quality of the attacker's estimate",
                "section VI",
                "with the paper's attack: at ratio 1 less than half of the rate at ratio 20",
                f"{rate[0]:.2f} and {rate[-1]:.2f}; a stronger attack than the paper's, the maximum-likelihood "
                f"rotation, reaches {ours[0]:.2f} at ratio 1, since the mean is not 0 (G18)",
                bool(rate[0] < rate[-1] / 2),
            ),
        ]
