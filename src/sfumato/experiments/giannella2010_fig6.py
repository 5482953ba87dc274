"""giannella2010, Figure 6: the known-sample (PCA) attack on Letter Recognition data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _data, claim
from sfumato.experiments._known_samples import (
    DESCRIPTION,
    OURS,
    PAPER,
    TREND_CRITERION,
    breaches_by_ratio,
    plot_by_ratio,
    rates_and_trend,
)
from sfumato.experiments._rotation_attacks import split_sampler

EPSILONS = (0.05, 0.1, 0.15)
ATTACKS: dict[str, dict[str, Any]] = {PAPER: {"method": "energy"}, OURS: {}}


class Figure6(Experiment):
    """The breach rate against the size of the known sample."""

    title = "giannella2010, Fig. 6: PCA attack on Letter Recognition data (first 6 attributes)"
    description = DESCRIPTION.format(runs=20, own="division of the table")
    data = "Letter Recognition (UCI), 20,000 x 6, half of it attacked"
    figsize = (7.8, 3.8)

    def run(self, job: Job) -> pa.Table:
        """Attack with known samples of several sizes."""
        ratios = job.size((0.005, 0.01, 0.02, 0.05, 0.1, 0.2), (0.01, 0.1))
        return breaches_by_ratio(
            split_sampler(_data.letter()[:, :6]),
            job.size(10_000, 2000),
            ratios,
            job.size(20, 2),
            EPSILONS,
            job,
            ATTACKS,
        )

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two panels."""
        plot_by_ratio(figure, table)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that the breach rate rises with the sample size."""
        rate, rises = rates_and_trend(table, PAPER, 0.15)
        ours, _ = rates_and_trend(table, OURS, 0.15)
        return [
            claim(
                "the larger the sample size, the better the quality of data recovery",
                "section V-C, Fig. 6",
                f"rising at ε = 0.15: {TREND_CRITERION}",
                f"{rate[0]:.2f} to {rate[-1]:.2f} (maximum-likelihood rotation {ours[0]:.2f} to {ours[-1]:.2f})",
                rises,
            ),
        ]
