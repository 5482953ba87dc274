"""giannella2010, Figure 5: the known-sample (PCA) attack on three-dimensional Gaussian data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim
from sfumato.experiments._known_samples import (
    DESCRIPTION,
    OURS,
    PAPER,
    TREND_CRITERION,
    breaches_by_ratio,
    plot_by_ratio,
    rates_and_trend,
)
from sfumato.experiments._rotation_attacks import COVARIANCE, MEAN, normal_sampler

EPSILONS = (0.02, 0.05, 0.1)
ATTACKS: dict[str, dict[str, Any]] = {PAPER: {"method": "energy"}, OURS: {"components": 1}}


class Figure5(Experiment):
    """The breach rate against the size of the known sample."""

    title = "giannella2010, Fig. 5: PCA attack on three-dimensional Gaussian data"
    description = DESCRIPTION.format(runs=60, own="data")
    data = "synthetic Gaussian, section V-C, 10,000 tuples"
    figsize = (7.8, 3.8)

    def run(self, job: Job) -> pa.Table:
        """Attack with known samples of several sizes."""
        ratios = job.size((0.005, 0.01, 0.02, 0.05, 0.1, 0.2), (0.005, 0.02, 0.1))
        return breaches_by_ratio(
            normal_sampler(MEAN, COVARIANCE), job.size(10_000, 4000), ratios, job.size(60, 8), EPSILONS, job, ATTACKS
        )

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two panels."""
        plot_by_ratio(figure, table)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that the breach rate rises with the sample size."""
        by_epsilon = {e: rates_and_trend(table, PAPER, e) for e in EPSILONS}
        return [
            claim(
                "when the relative error bound is fixed, the probability of a breach increases as the sample "
                "size increases",
                "section V-C, Fig. 5",
                f"rising at every ε: {TREND_CRITERION}",
                "; ".join(f"ε = {e}: {rate[0]:.2f} to {rate[-1]:.2f}" for e, (rate, _) in by_epsilon.items()),
                all(rises for _, rises in by_epsilon.values()),
            ),
        ]
