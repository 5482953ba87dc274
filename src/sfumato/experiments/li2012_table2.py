"""li2012, Table 2: the time complexity of the three algorithms, measured, and that of Sfumato."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _census, claim, distinct, select, to_table
from sfumato.experiments._census import OURS
from sfumato.experiments._paper_algorithms import algorithm_1_factored, algorithm_2, algorithm_3
from sfumato.experiments._plotting import legend_above, lines, power_exponent
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
    """The run time of M copies by each algorithm."""

    title = "li2012, Table 2: time of the three algorithms against the number of copies M"
    description = (
        "Algorithm 1 needs all levels at once, Algorithm 2 takes them in order, Algorithm 3 and "
        "Sfumato in any order. Few tuples, so that the part that depends on M alone is visible; "
        "Algorithm 3 generates half of the copies when the other half exist."
    )
    data = "CENSUS"
    measures_time = True

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _census.data_source()

    def run(self, job: Job) -> pa.Table:
        """Time each algorithm."""
        table = _census.people(job.size(500, 200))
        values = np.column_stack([table.column(i).to_numpy() for i in range(2)])
        k_x, rng, out = np.cov(values.T), job.rng(), []
        scheme = _census.scheme(table, [0.25, 0.5, 1.0], OURS)
        key = job.key()
        for count in job.track(job.size((8, 16, 32, 64, 128, 256, 512), (8, 32, 128))):
            noises = np.sort(rng.uniform(0.25, 1, count))
            half = count // 2
            old = algorithm_2(rng, len(values), noises[:half], k_x)

            algorithms = {
                ONE: partial(algorithm_1_factored, rng, len(values), noises, k_x),
                TWO: partial(algorithm_2, rng, len(values), noises, k_x),
                THREE: partial(algorithm_3, rng, old, noises[:half], noises[half:], k_x),
                OWN: partial(_release_all, scheme, table, noises, key),
            }
            for name, generate in algorithms.items():
                generate()
                start = time.perf_counter()
                generate()
                out.append({"algorithm": name, "M": count, "seconds": time.perf_counter() - start})
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot run times on logarithmic axes."""
        axis = figure.subplots()
        lines(axis, table, "M", "seconds", "algorithm")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("number of copies M")
        axis.set_ylabel("seconds for all M copies")
        legend_above(axis, 2)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check the exponents of M."""
        exponents = {}
        for name in distinct(table, "algorithm"):
            m, seconds = select(table, "M", algorithm=name), select(table, "seconds", algorithm=name)
            exponents[name] = power_exponent(m[-3:], seconds[-3:])
        last = {name: float(select(table, "seconds", algorithm=name)[-1]) for name in exponents}
        return [
            claim(
                "Algorithm 1 is O(N³ + MN²): linear in M",
                "Theorem 6",
                "exponent at most 1.3, with the factorisation of its proof (G.2)",
                f"{exponents[ONE]:.2f}",
                exponents[ONE] < 1.3,
            ),
            claim(
                "Algorithm 2 is O(N³ + MN²): linear in M",
                "Theorem 7",
                "exponent at most 1.3",
                f"{exponents[TWO]:.2f}",
                exponents[TWO] < 1.3,
            ),
            claim(
                "Algorithm 3 is O(M³ + N³)",
                "Theorem 8",
                "grows faster than linearly: exponent above 1.3, at most 3.3",
                f"{exponents[THREE]:.2f}",
                1.3 < exponents[THREE] < 3.3,
            ),
            claim(
                "Algorithms 1 and 2 have less time complexity than Algorithm 3",
                "section 5.4",
                "less time at the largest M, although Algorithm 3 generates only half of the copies there",
                ", ".join(f"{name} {seconds:.3f} s" for name, seconds in last.items()),
                max(last[ONE], last[TWO]) < last[THREE],
            ),
        ]


def _release_all(scheme: TableScheme, table: pa.Table, noises: Any, key: Key) -> None:
    """Release one copy per noise variance."""
    for noise in noises:
        scheme.release(table, Level(1 / (1 + float(noise))), key, threads=1)
