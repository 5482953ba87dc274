"""xiao2009, Figure 8b: the time to compute the m-th copy."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _data, claim, select, to_table
from sfumato.experiments._plotting import legend, lines
from sfumato.experiments.xiao2009_fig8a import ORDERS
from sfumato.levels import Level
from sfumato.release.policy import Policy

POLICY = (
    'dataset = "d"\norder = "keep"\n[levels]\nmost = 0.5\nleast = 0.001\n[columns]\nsalary = '
    '{ role = "uniform", domain = { min = 0, max = 49 } }'
)


class Figure8b(Experiment):
    """The run time of one copy against the number of copies released before."""

    title = "xiao2009, Fig. 8b: time to compute the m-th copy"
    description = (
        "The 10,000 retention probabilities of Fig. 8a in three orders; the time of the copies "
        "around the m-th request, of 600,000 tuples with their manifest, on one thread. Nothing is stored "
        "about earlier copies, so they need not be computed."
    )
    data = "Adult (IPUMS)"
    seed = 8
    measures_time = True

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _data.working_adults()[1]

    def run(self, job: Job) -> pa.Table:
        """Time copies in each order of arrival."""
        table = pa.table({"salary": _data.salaries()[: job.size(600_000, 50_000)]})
        issued = job.rng().uniform(0.001, 0.5, 10_000)
        arrivals = {"random": issued, "ascending": np.sort(issued), "descending": np.sort(issued)[::-1]}
        scheme, key, out = Policy.loads(POLICY).fit(table), job.key(), []
        scheme.release(table, Level(0.3), key, threads=1)
        for order in ORDERS:
            for m in job.track((1, 10, 100, 1000, 3000, 6000, 9990), 3):
                around = arrivals[order][m - 1 : m - 1 + job.size(10, 3)]
                times = []
                for retention in around:
                    start = time.perf_counter()
                    scheme.release(table, Level(float(retention)), key, threads=1)
                    times.append(time.perf_counter() - start)
                out.append(
                    {"order": order, "m": m, "seconds": float(np.median(times)), "retention": float(around.mean())}
                )
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot three lines and the paper's limit."""
        axis = figure.subplots()
        lines(axis, table, "m", "seconds", "order")
        axis.axhline(0.5, color="#9aa7b2", linestyle="--", linewidth=1, label="the paper's limit, 0.5 s")
        axis.set_xscale("log")
        axis.set_ylim(0, 0.6)
        axis.set_xlabel("number m of the request")
        axis.set_ylabel("seconds")
        legend(axis, 2, loc="upper left")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that a copy takes little time, however many were released before."""
        most = float(max(table.column("seconds").to_pylist()))
        random = select(table, "seconds", order="random")
        ratio = float(np.median(random[-3:]) / np.median(random[:3]))
        return [
            claim(
                "it computes an anonymized dataset in less than half a second in all cases",
                "section 7, Fig. 8b",
                "below 0.5 s, on a newer machine",
                f"at most {most:.3f} s",
                most < 0.5,
            ),
            claim(
                "a new version takes O(n + log m) expected time",
                "section 1.2",
                "random order: the last requests take at most 1.5 times as long as the first",
                f"{ratio:.2f} times",
                ratio < 1.5,
            ),
        ]
