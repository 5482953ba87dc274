"""giannella2010, Figure 2: the known-input attack on Letter Recognition data, by the number of known inputs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._known_inputs import means_by_known, plot_by_known
from sfumato.experiments._plotting import power_exponent
from sfumato.experiments._rotation_attacks import distinct_letters, known_input_breaches


class Figure2(Experiment):
    """Linked records, run time and breach probability against the number of known inputs."""

    title = "giannella2010, Fig. 2: known-input attack on Letter Recognition data, ε = 0.15"
    description = (
        "18,668 distinct tuples of 16 attributes. |I| is the number of known inputs linked with "
        "certainty (the backbone, which may be larger than the paper's set); ρ(ε) is the largest "
        "breach probability of any other tuple. Bars: one standard deviation over ten attacks."
    )
    data = "Letter Recognition (UCI), 18,668 distinct tuples x 16"
    figsize = (7.8, 3.4)
    measures_time = True

    def run(self, job: Job) -> pa.Table:
        """Run ten attacks for each number of known inputs."""
        data = distinct_letters()
        counts = job.track(job.size((1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16), (2, 4, 8, 16)))
        return to_table(known_input_breaches(data, counts, job.size(10, 2), job, [0.15]))

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot three panels."""
        plot_by_known(figure, table)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that linking is nearly perfect, four known inputs suffice, and the run time is short."""
        known, linked, rho, seconds = means_by_known(table)
        where = "section IV-E, Fig. 2"
        wrong = int(sum(select(table, "wrong")))
        return [
            claim(
                "on real data the linking is nearly perfect",
                where,
                "|I|/a at least 0.9 on average for a >= 4, none wrong",
                f"{(linked / known)[known >= 4].mean():.3f}, {wrong} wrong",
                bool((linked / known)[known >= 4].mean() > 0.9) and not wrong,
            ),
            claim(
                "ρ(0.15) = 1 with a as small as 4",
                where,
                "above 0.99 for all a >= 4",
                f"{rho[known >= 4].min():.4f} at a = 4",
                bool(rho[known >= 4].min() > 0.99),
            ),
            claim(
                "the average computation time exhibits a slower than linear trend in the number of known inputs",
                where,
                "exponent of a below 1",
                f"{power_exponent(known, seconds):.2f}",
                power_exponent(known, seconds) < 1,
            ),
            claim(
                "a privacy breach with four known inputs in less than 30 seconds",
                "section IV-E",
                "less than 30 s",
                f"{float(seconds[known == 4][0]):.3f} s",
                bool(seconds[known == 4][0] < 30),
            ),
            claim(
                "less than 45 s with 16 known inputs",
                "section IV-E",
                "less than 45 s",
                f"{seconds.max():.3f} s at most",
                bool(seconds.max() < 45),
            ),
        ]
