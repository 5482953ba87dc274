"""zhang2005, Figure 5: the system disclosure level k* against the number of tuples received."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments._plotting import above, lines
from sfumato.experiments._votes import protocol

RUNS = {
    "µ = 15 %, 16 real rows first": (0.15, True),
    "µ = 15 %, 16 random rows first": (0.15, False),
    "µ = 2.5 %, 16 real rows first": (0.025, True),
    "µ = 2.5 %, 16 random rows first": (0.025, False),
}


class Figure5(Experiment):
    """How many directions are asked for as rows come in."""

    title = "zhang2005, Fig. 5: system disclosure level k* against tuples received"
    about = (
        "The whole protocol, refreshed every five tuples, directions by magnitude (E1); the mean "
        "over runs. The paper prints µ = 2.5 %."
    )
    data = "Congressional Voting Records 1984 (UCI), 435 x 16"
    seed = 5

    def run(self, job: Job) -> pa.Table:
        """Many collections."""
        out = []
        for series, (error, real) in job.steps(RUNS.items()):
            traces = [
                {rows: needs for rows, needs, *_ in protocol(job.rng(run), 16, 410, real=real, error=error)}
                for run in range(job.size(60, 12))
            ]
            for rows in traces[0]:
                found = np.array([trace[rows] for trace in traces])
                out.append(
                    {"series": series, "received": rows, "k": float(found.mean()), "few": float((found <= 2).mean())}
                )
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Four lines."""
        axis = figure.subplots()
        lines(axis, rows_of(r for i, r in enumerate(table.to_pylist()) if i % 4 == 0), "received", "k", "series")
        axis.set_xlabel("tuples received |T*|")
        axis.set_ylabel("system disclosure level k*")
        axis.set_ylim(bottom=0)
        above(axis, 2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Two after fifty; decreasing."""
        real, random, strict = (list(RUNS)[i] for i in (0, 1, 2))
        few = {name: float(cells(table, "few", series=name, received=56)[0]) for name in (real, random)}
        k = cells(table, "k", series=strict)
        soon = float(cells(table, "k", series=real, received=101)[0])
        where = "section 6, Fig. 5"
        return [
            claim(
                "when µ = 15 %, k* decreases to 2 after 50 tuples are received",
                where,
                "with directions by magnitude and real rows first, k* <= 2 in 85 % of the runs (printed order: k* = 1)",
                f"{few[real]:.0%} of the runs",
                few[real] >= 0.85,
                "E1",
            ),
            claim(
                "in most cases, k* decreases to be very small fairly soon",
                where,
                "µ = 15 %, real rows first: on average at most 2.5 after 100 tuples",
                f"{soon:.1f}",
                soon <= 2.5,
                "E1",
            ),
            claim(
                "bootstrap tuples may be real or randomly generated",
                "section 4.1",
                "k* <= 2 in 85 % of the runs after 50 tuples with random ones too",
                f"{few[random]:.0%} of the runs",
                few[random] >= 0.85,
                "E13",
            ),
            claim(
                "even when the error is strictly bounded (µ = 2.5 %), k* still decreases fairly quickly",
                where,
                "it halves within 400 tuples from its first value",
                f"{k[0]:.1f} at first, {k.max():.1f} at most, {k[-1]:.1f} after "
                f"{int(cells(table, 'received', series=strict)[-1])} tuples",
                bool(k[-1] <= k[0] / 2),
                "E21",
            ),
        ]
