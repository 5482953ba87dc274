"""giannella2010, Figure 6: the known sample (PCA) attack on Letter Recognition data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _data, claim
from sfumato.experiments._known_samples import ABOUT, OURS, PAPER, against_ratio, draw_ratio, rising
from sfumato.experiments._rotation_attacks import parted

EPSILONS = (0.05, 0.1, 0.15)
ATTACKS: dict[str, dict[str, Any]] = {PAPER: {"method": "energy"}, OURS: {}}


class Figure6(Experiment):
    """The breach rate against the size of the sample."""

    title = "giannella2010, Fig. 6: PCA attack on Letter Recognition data (first 6 attributes)"
    about = ABOUT.format(runs=20, own="division of the table")
    data = "Letter Recognition (UCI), 20,000 x 6, half of it attacked"
    size = (7.8, 3.8)

    def run(self, job: Job) -> pa.Table:
        """Attack with samples of several sizes."""
        ratios = job.size((0.005, 0.01, 0.02, 0.05, 0.1, 0.2), (0.01, 0.1))
        return against_ratio(
            parted(_data.letter()[:, :6]), job.size(10_000, 2000), ratios, job.size(20, 2), EPSILONS, job, ATTACKS
        )

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Two panels."""
        draw_ratio(figure, table)

    def claims(self, table: pa.Table) -> list[Claim]:
        """More sample, more breaches."""
        rate, grows = rising(table, PAPER, 0.15)
        ours, _ = rising(table, OURS, 0.15)
        return [
            claim(
                "the larger the sample size, the better the quality of data recovery",
                "section V-C, Fig. 6",
                "rising at ε = 0.15, but for steps within chance (2.5 standard errors of both ends, and 0.02)",
                f"{rate[0]:.2f} to {rate[-1]:.2f} (the likeliest turn {ours[0]:.2f} to {ours[-1]:.2f})",
                grows,
            ),
        ]
