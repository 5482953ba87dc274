"""xiao2009, Figure 8a: the number of values that the paper's algorithm stores per tuple."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, claim, select, to_table
from sfumato.experiments._paper_algorithms import MultiPert
from sfumato.experiments._plotting import legend_above, lines

ORDERS = ("random", "ascending", "descending")
SIZE = 50


class Figure8a(Experiment):
    """The size of history(t), which Sfumato recomputes instead of storing."""

    title = "xiao2009, Fig. 8a: average size of history(t) against the number m of recipients"
    description = (
        "10,000 retention probabilities uniform in [0.001, 0.5], in three orders of arrival; the "
        "number of changes of value along a tuple's path at the issued probabilities, which is what "
        "multi-pert stores. Sfumato stores none."
    )
    data = "tuples with a domain of 50 values; the figure does not depend on their values"
    seed = 8

    def run(self, job: Job) -> pa.Table:
        """Simulate the paths of many tuples."""
        rng = job.rng()
        issued = rng.uniform(0.001, 0.5, 10_000)
        arrivals = {"random": issued, "ascending": np.sort(issued), "descending": np.sort(issued)[::-1]}
        tuples, out = job.size(4000, 400), []
        events = np.cumprod(rng.random((tuples, 40)), axis=1)
        values = np.concatenate([np.zeros((tuples, 1), int), rng.integers(0, SIZE, (tuples, 40))], axis=1)
        for order in job.track(ORDERS):
            for m in (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000, 3000, 10_000):
                probabilities = np.sort(arrivals[order][:m])[::-1]
                sizes = [_history_size(probabilities, events[t], values[t]) for t in range(tuples)]
                bound = 1 + np.log(probabilities[0] / probabilities[-1])
                out.append({"order": order, "m": m, "stored": float(np.mean(sizes)), "bound": float(bound)})
        algorithm = MultiPert(rng, np.zeros(job.size(2000, 300), np.int64), SIZE)
        for p in issued[:30]:
            algorithm.release(float(p))
        printed = np.mean([len(history) for history in algorithm.history])
        probabilities = np.sort(issued[:30])[::-1]
        path = np.mean([_history_size(probabilities, events[t], values[t]) for t in range(tuples)])
        out.append({"order": "printed algorithm, random", "m": 30, "stored": float(printed), "bound": float(path)})
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot three lines and the bound."""
        axis = figure.subplots()
        simulated = table.filter([order in ORDERS for order in table.column("order").to_pylist()])
        lines(axis, simulated, "m", "stored", "order")
        axis.axhline(1 + np.log(500), color="#9aa7b2", linestyle="--", linewidth=1, label="bound, 1 + ln(0.5/0.001)")
        axis.set_xscale("log")
        axis.set_xlabel("number m of recipients so far")
        axis.set_ylabel("values stored per tuple (mean)")
        axis.set_ylim(0, 8)
        legend_above(axis, 4)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check the bound, and the order of the arrival orders."""
        most = float(max(select(table, "stored", order=order).max() for order in ORDERS))
        within = all((select(table, "stored", order=o) <= select(table, "bound", order=o) * 1.03).all() for o in ORDERS)
        few = {order: float(select(table, "stored", order=order, m=100)[0]) for order in ORDERS}
        printed, path = (
            select(table, "stored", order="printed algorithm, random")[0],
            select(table, "bound", order="printed algorithm, random")[0],
        )
        return [
            claim(
                "the size of history(t) is bounded by a constant (here, 7) for all arrival orders",
                "section 7, Fig. 8a",
                "means at most 7, within 2 %",
                f"at most {most:.2f}",
                most <= 7 * 1.02,
            ),
            claim(
                "the bound can be tightened to 1 + ln(pmax/pmin)",
                "section 7",
                "means at most 3 % above it, at every m",
                "true everywhere" if within else "not everywhere",
                within,
            ),
            claim(
                "random (descending) demands the most (least) space for small m",
                "section 7",
                "at m = 100",
                ", ".join(f"{o} {v:.2f}" for o, v in few.items()),
                max(few, key=lambda o: few[o]) == "random" and min(few, key=lambda o: few[o]) == "descending",
            ),
            claim(
                "history(t) holds the values that further requests depend on",
                "section 6",
                "they are the values of our path: the printed algorithm stores as many after 30 requests, within 8 %",
                f"{printed:.2f} by the printed algorithm, {path:.2f} along the path",
                bool(abs(printed / path - 1) < 0.08),
            ),
        ]


def _history_size(probabilities: Any, events: Any, values: Any) -> int:
    """The number of runs of equal values at the issued probabilities, from the largest to the smallest."""
    released = values[np.searchsorted(-events, -probabilities, side="right")]
    return 1 + int((released[1:] != released[:-1]).sum())
