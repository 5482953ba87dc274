"""li2012, Table 2: the three algorithms compared, by what they take."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _census, cells, claim, distinct, rows_of
from sfumato.experiments import _paper_algorithms as _literal
from sfumato.experiments._census import OURS
from sfumato.experiments._plotting import above, lines, slope
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.scheme import TableScheme

ONE, TWO, THREE, OWN = (
    "Algorithm 1 (parallel)",
    "Algorithm 2 (sequential)",
    "Algorithm 3 (on demand)",
    "Sfumato (on demand)",
)


class Table2(Experiment):
    """Time for all M copies, and which order of requests each allows."""

    title = "li2012, Table 2: time of the three algorithms against the number of copies M"
    about = (
        "Algorithm 1 needs all levels at once, Algorithm 2 takes them in order, Algorithm 3 and "
        "Sfumato in any order. Few tuples, "
        "so that what depends on M alone shows; Algorithm 3 makes half of the copies when the other half exist."
    )
    data = "CENSUS"

    def source(self) -> str:
        """The stand-in."""
        return _census.source()

    def run(self, job: Job) -> pa.Table:
        """Time each."""
        table = _census.people(job.size(500, 200))
        values = np.column_stack([table.column(i).to_numpy() for i in range(2)])
        k_x, rng, out = np.cov(values.T), job.rng(), []
        scheme = _census.scheme(table, [0.25, 0.5, 1.0], OURS)
        key = job.key()
        for count in job.steps(job.size((8, 16, 32, 64, 128, 256, 512), (8, 32, 128))):
            noises = np.sort(rng.uniform(0.25, 1, count))
            half = count // 2
            old = _literal.algorithm_2(rng, len(values), noises[:half], k_x)

            works = {
                ONE: partial(_literal.algorithm_1_factored, rng, len(values), noises, k_x),
                TWO: partial(_literal.algorithm_2, rng, len(values), noises, k_x),
                THREE: partial(_literal.algorithm_3, rng, old, noises[:half], noises[half:], k_x),
                OWN: partial(_released, scheme, table, noises, key),
            }
            for name, work in works.items():
                work()
                began = time.perf_counter()
                work()
                out.append({"algorithm": name, "M": count, "seconds": time.perf_counter() - began})
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """On logarithmic axes."""
        axis = figure.subplots()
        lines(axis, table, "M", "seconds", "algorithm")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("number of copies M")
        axis.set_ylabel("seconds for all of them")
        above(axis, 2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Exponents in M."""
        found = {}
        for name in distinct(table, "algorithm"):
            m, seconds = cells(table, "M", algorithm=name), cells(table, "seconds", algorithm=name)
            found[name] = slope(m[-3:], seconds[-3:])
        last = {name: float(cells(table, "seconds", algorithm=name)[-1]) for name in found}
        return [
            claim(
                "Algorithm 1 is O(N³ + MN²): linear in M",
                "Theorem 6",
                "exponent at most 1.3, drawn by the factors of its proof (G.2)",
                f"{found[ONE]:.2f}",
                found[ONE] < 1.3,
            ),
            claim(
                "Algorithm 2 is O(N³ + MN²): linear in M",
                "Theorem 7",
                "exponent at most 1.3",
                f"{found[TWO]:.2f}",
                found[TWO] < 1.3,
            ),
            claim(
                "Algorithm 3 is O(M³ + N³)",
                "Theorem 8",
                "grows faster than linearly: exponent above 1.3, at most 3.3",
                f"{found[THREE]:.2f}",
                1.3 < found[THREE] < 3.3,
            ),
            claim(
                "Algorithms 1 and 2 have less time complexity than Algorithm 3",
                "section 5.4",
                "less time at the largest M, though Algorithm 3 makes only half of the copies there",
                ", ".join(f"{name} {seconds:.3f} s" for name, seconds in last.items()),
                max(last[ONE], last[TWO]) < last[THREE],
            ),
        ]


def _released(scheme: TableScheme, table: pa.Table, noises: Any, key: Key) -> None:
    for noise in noises:
        scheme.release(table, Level(1 / (1 + float(noise))), key, threads=1)
