"""xiao2009, Figure 8b: the time of one more copy when many were given."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _data, cells, claim, rows_of
from sfumato.experiments._plotting import legend, lines
from sfumato.experiments.xiao2009_fig8a import ORDERS
from sfumato.levels import Level
from sfumato.policy.document import Policy

POLICY = (
    'dataset = "d"\n[levels]\nmost = 0.5\nleast = 0.001\n[columns]\nsalary = '
    '{ role = "uniform", domain = { min = 0, max = 49 } }'
)


class Figure8b(Experiment):
    """Nothing is stored, so that nothing grows."""

    title = "xiao2009, Fig. 8b: time to compute the m-th copy"
    about = (
        "The 10,000 retention probabilities of Fig. 8a in three orders; the time of the copies "
        "around the m-th request, on one "
        "thread, of 600,000 tuples, with its manifest. Nothing is kept of earlier copies, so that "
        "they need not be made."
    )
    data = "Adult (IPUMS)"
    seed = 8

    def source(self) -> str:
        """The stand-in."""
        return _data.working()[1]

    def run(self, job: Job) -> pa.Table:
        """Time copies."""
        table = pa.table({"salary": _data.salaries()[: job.size(600_000, 50_000)]})
        issued = job.rng().uniform(0.001, 0.5, 10_000)
        arrivals = {"random": issued, "ascending": np.sort(issued), "descending": np.sort(issued)[::-1]}
        scheme, key, out = Policy.loads(POLICY).fit(table), job.key(), []
        scheme.release(table, Level(0.3), key, threads=1)
        for order in ORDERS:
            for m in job.steps((1, 10, 100, 1000, 3000, 6000, 9990), 3):
                around = arrivals[order][m - 1 : m - 1 + job.size(10, 3)]
                took = []
                for kept in around:
                    began = time.perf_counter()
                    scheme.release(table, Level(float(kept)), key, threads=1)
                    took.append(time.perf_counter() - began)
                out.append(
                    {"order": order, "m": m, "seconds": float(np.median(took)), "retention": float(around.mean())}
                )
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Three lines."""
        axis = figure.subplots()
        lines(axis, table, "m", "seconds", "order")
        axis.axhline(0.5, color="#9aa7b2", linestyle="--", linewidth=1, label="the paper's limit, 0.5 s")
        axis.set_xscale("log")
        axis.set_ylim(0, 0.6)
        axis.set_xlabel("number m of the request")
        axis.set_ylabel("seconds")
        legend(axis, 2, loc="upper left")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Fast, whatever was given before."""
        most = float(max(table.column("seconds").to_pylist()))
        random = cells(table, "seconds", order="random")
        ratio = float(np.median(random[-3:]) / np.median(random[:3]))
        return [
            claim(
                "it computes an anonymized dataset in less than half a second in all cases",
                "section 7, Fig. 8b",
                "below 0.5 s, on a machine of another age",
                f"at most {most:.3f} s",
                most < 0.5,
            ),
            claim(
                "a new version takes O(n + log m) expected time",
                "section 1.2",
                "random order: the last requests take no longer than the first, within a half",
                f"{ratio:.2f} times",
                ratio < 1.5,
            ),
        ]
