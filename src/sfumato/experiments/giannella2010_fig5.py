"""giannella2010, Figure 5: the known sample (PCA) attack on three-dimensional Gaussian data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim
from sfumato.experiments._known_samples import ABOUT, OURS, PAPER, against_ratio, draw_ratio, rising
from sfumato.experiments._rotation_attacks import COVARIANCE, MEAN, normal

EPSILONS = (0.02, 0.05, 0.1)
ATTACKS: dict[str, dict[str, Any]] = {PAPER: {"method": "energy"}, OURS: {"components": 1}}


class Figure5(Experiment):
    """The breach rate against the size of the sample."""

    title = "giannella2010, Fig. 5: PCA attack on three-dimensional Gaussian data"
    about = ABOUT.format(runs=60, own="data")
    data = "synthetic Gaussian, section V-C, 10,000 tuples"
    size = (7.8, 3.8)

    def run(self, job: Job) -> pa.Table:
        """Attack with samples of several sizes."""
        ratios = job.size((0.005, 0.01, 0.02, 0.05, 0.1, 0.2), (0.005, 0.02, 0.1))
        return against_ratio(
            normal(MEAN, COVARIANCE), job.size(10_000, 4000), ratios, job.size(60, 8), EPSILONS, job, ATTACKS
        )

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Two panels."""
        draw_ratio(figure, table)

    def claims(self, table: pa.Table) -> list[Claim]:
        """More sample, more breaches."""
        found = {e: rising(table, PAPER, e) for e in EPSILONS}
        return [
            claim(
                "when the relative error bound is fixed, the probability of a breach increases as the sample "
                "size increases",
                "section V-C, Fig. 5",
                "rising at every ε, but for steps within chance (2.5 standard errors of both ends, and 0.02)",
                "; ".join(f"ε = {e}: {rate[0]:.2f} to {rate[-1]:.2f}" for e, (rate, _) in found.items()),
                all(grows for _, grows in found.values()),
            ),
        ]
