"""giannella2010, Figure 2: the known input attack on Letter Recognition data, by the number of known inputs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments._known_inputs import by_known, draw_known
from sfumato.experiments._plotting import slope
from sfumato.experiments._rotation_attacks import known_inputs, letters


class Figure2(Experiment):
    """Records linked, time, and the breach probability."""

    title = "giannella2010, Fig. 2: known input attack on Letter Recognition data, ε = 0.15"
    about = (
        "18,668 distinct tuples of 16 attributes. |I| is the size of the largest set that is surely "
        "linked (the backbone, which may be larger than the paper's); ρ(ε) that of the most "
        "endangered other tuple. Bars: one standard deviation over ten attacks."
    )
    data = "Letter Recognition (UCI), 18,668 distinct tuples x 16"
    size = (7.8, 3.4)

    def run(self, job: Job) -> pa.Table:
        """Ten attacks for each number of known inputs."""
        data = letters()
        counts = job.steps(job.size((1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16), (2, 4, 8, 16)))
        return rows_of(known_inputs(data, counts, job.size(10, 2), job, [0.15]))

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Three panels."""
        draw_known(figure, table)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Nearly perfect linking; four known inputs are enough."""
        known, linked, rho, seconds = by_known(table)
        where = "section IV-E, Fig. 2"
        wrong = int(sum(cells(table, "wrong")))
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
                f"{slope(known, seconds):.2f}",
                slope(known, seconds) < 1,
            ),
            claim(
                "a privacy breach with four known inputs in less than 30 seconds",
                "section IV-E",
                "less",
                f"{float(seconds[known == 4][0]):.3f} s",
                bool(seconds[known == 4][0] < 30),
            ),
            claim(
                "less than 45 s with 16 known inputs",
                "section IV-E",
                "less",
                f"{seconds.max():.3f} s at most",
                bool(seconds.max() < 45),
            ),
        ]
