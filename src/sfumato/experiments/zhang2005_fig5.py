"""zhang2005, Figure 5: the system disclosure level k* against the number of tuples received."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._plotting import legend_above, lines
from sfumato.experiments._votes import protocol

RUNS = {
    "µ = 15 %, 16 real rows first": (0.15, True),
    "µ = 15 %, 16 random rows first": (0.15, False),
    "µ = 2.5 %, 16 real rows first": (0.025, True),
    "µ = 2.5 %, 16 random rows first": (0.025, False),
}


class Figure5(Experiment):
    """The number of directions k* that the system requests, as rows arrive."""

    title = "zhang2005, Fig. 5: system disclosure level k* against tuples received"
    description = (
        "The complete protocol, refreshed every five tuples, directions ordered by magnitude (E1); the "
        "mean over runs. The paper prints µ = 2.5 %."
    )
    data = "Congressional Voting Records 1984 (UCI), 435 x 16"
    seed = 5

    def run(self, job: Job) -> pa.Table:
        """Simulate many collections."""
        out = []
        for series, (error, real) in job.track(RUNS.items()):
            traces = [
                {rows: level for rows, level, *_ in protocol(job.rng(run), 16, 410, real=real, error=error)}
                for run in range(job.size(60, 12))
            ]
            for rows in traces[0]:
                levels = np.array([trace[rows] for trace in traces])
                out.append(
                    {"series": series, "received": rows, "k": float(levels.mean()), "few": float((levels <= 2).mean())}
                )
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot four lines."""
        axis = figure.subplots()
        lines(axis, to_table(r for i, r in enumerate(table.to_pylist()) if i % 4 == 0), "received", "k", "series")
        axis.set_xlabel("tuples received |T*|")
        axis.set_ylabel("system disclosure level k*")
        axis.set_ylim(bottom=0)
        legend_above(axis, 2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check how fast k* falls, with real and with random bootstrap rows."""
        real, random, strict = (list(RUNS)[i] for i in (0, 1, 2))
        few = {name: float(select(table, "few", series=name, received=56)[0]) for name in (real, random)}
        last = {name: float(select(table, "k", series=name)[-1]) for name in (real, random)}
        k = select(table, "k", series=strict)
        soon = float(select(table, "k", series=real, received=101)[0])
        where = "section 6, Fig. 5"
        return [
            claim(
                "when µ = 15 %, k* decreases to 2 after 50 tuples are received",
                where,
                "with directions ordered by magnitude and real rows first, k* <= 2 in 85 % of the runs (printed "
                "order: k* = 1)",
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
                "µ = 15 %: after 400 tuples, k* with random rows is at most 0.5 above that with real ones",
                f"{last[real]:.1f} with real rows, {last[random]:.1f} with random ones; k* <= 2 after 50 tuples in "
                f"{few[real]:.0%} and {few[random]:.0%} of the runs",
                last[random] <= last[real] + 0.5,
                "E13",
            ),
            claim(
                "even when the error is strictly bounded (µ = 2.5 %), k* still decreases fairly quickly",
                where,
                "it falls to half of its first value within 400 tuples",
                f"{k[0]:.1f} at first, {k.max():.1f} at most, {k[-1]:.1f} after "
                f"{int(select(table, 'received', series=strict)[-1])} tuples",
                bool(k[-1] <= k[0] / 2),
                "E21",
            ),
        ]
