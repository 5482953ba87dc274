"""xiao2009, Figure 8a: how many values the paper's algorithm must keep for each tuple."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, cells, claim, rows_of
from sfumato.experiments import _paper_algorithms as _literal
from sfumato.experiments._plotting import legend, lines

ORDERS = ("random", "ascending", "descending")
SIZE = 50


class Figure8a(Experiment):
    """The size of history(t), which Sfumato makes again instead of keeping."""

    title = "xiao2009, Fig. 8a: average size of history(t) against the number m of recipients"
    about = (
        "10,000 retention probabilities uniform in [0.001, 0.5], in three orders of arrival; the "
        "number of different values along a "
        "tuple's path at the probabilities that were issued, which is what multi-pert keeps. Sfumato keeps none."
    )
    data = "tuples with a domain of 50 values; the figure does not depend on their values"
    seed = 8

    def run(self, job: Job) -> pa.Table:
        """Walk along the paths of many tuples."""
        rng = job.rng()
        issued = rng.uniform(0.001, 0.5, 10_000)
        arrivals = {"random": issued, "ascending": np.sort(issued), "descending": np.sort(issued)[::-1]}
        tuples, out = job.size(4000, 400), []
        events = np.cumprod(rng.random((tuples, 40)), axis=1)
        values = np.concatenate([np.zeros((tuples, 1), int), rng.integers(0, SIZE, (tuples, 40))], axis=1)
        for order in job.steps(ORDERS):
            for m in (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000, 3000, 10_000):
                given = np.sort(arrivals[order][:m])[::-1]
                sizes = [_kept(given, events[t], values[t]) for t in range(tuples)]
                bound = 1 + np.log(given[0] / given[-1])
                out.append({"order": order, "m": m, "kept": float(np.mean(sizes)), "bound": float(bound)})
        literal = _literal.MultiPert(rng, np.zeros(job.size(2000, 300), np.int64), SIZE)
        for p in issued[:30]:
            literal.release(float(p))
        found = np.mean([len(history) for history in literal.history])
        given = np.sort(issued[:30])[::-1]
        path = np.mean([_kept(given, events[t], values[t]) for t in range(tuples)])
        out.append({"order": "literal, random", "m": 30, "kept": float(found), "bound": float(path)})
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Three lines under the bound."""
        axis = figure.subplots()
        shown = table.filter([order in ORDERS for order in table.column("order").to_pylist()])
        lines(axis, shown, "m", "kept", "order")
        axis.axhline(1 + np.log(500), color="#9aa7b2", linestyle="--", linewidth=1, label="bound, 1 + ln(0.5/0.001)")
        axis.set_xscale("log")
        axis.set_xlabel("number m of recipients so far")
        axis.set_ylabel("values kept a tuple (mean)")
        axis.set_ylim(0, 8)
        legend(axis, 2, loc="upper left")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Bounded; random grows fastest, descending slowest at first."""
        most = float(max(cells(table, "kept", order=order).max() for order in ORDERS))
        within = all((cells(table, "kept", order=o) <= cells(table, "bound", order=o) * 1.03).all() for o in ORDERS)
        few = {order: float(cells(table, "kept", order=order, m=100)[0]) for order in ORDERS}
        literal, path = (
            cells(table, "kept", order="literal, random")[0],
            cells(table, "bound", order="literal, random")[0],
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
                "so it is" if within else "not everywhere",
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
                "it is our path: the literal algorithm keeps as many values after 30 requests, within 8 %",
                f"{literal:.2f} literally, {path:.2f} along the path",
                bool(abs(literal / path - 1) < 0.08),
            ),
        ]


def _kept(given: Any, events: Any, values: Any) -> int:
    """Different neighbours among the values at the issued probabilities, from the largest down."""
    shown = values[np.searchsorted(-events, -given, side="right")]
    return 1 + int((shown[1:] != shown[:-1]).sum())
