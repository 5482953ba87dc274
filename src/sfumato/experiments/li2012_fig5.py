"""li2012, Figure 5: run time of Algorithm 3, of independent noise and of Sfumato against the number of copies."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.experiments import Claim, Experiment, Job, _census, claim, distinct, select, to_table
from sfumato.experiments._census import OURS
from sfumato.experiments._paper_algorithms import algorithm_3
from sfumato.experiments._plotting import legend_above, lines, power_exponent
from sfumato.levels import Level

SHARES = {"M/4": 0.25, "M/2": 0.5, "3M/4": 0.75}
LITERAL, INDEPENDENT, RELEASE = "Algorithm 3 as printed", "independent noise", "Sfumato"


class Figure5(Experiment):
    """The run time of M - L copies when L copies exist."""

    title = "li2012, Fig. 5: runtime to generate M - L copies of 100,000 tuples"
    description = (
        "Income only, as in section 6.3; one thread. Algorithm 3 and independent noise are NumPy "
        "with a generator that is not cryptographically secure; Sfumato's copies are keyed and carry "
        "their manifests. The mean of ten runs (the paper: 100)."
    )
    data = "CENSUS"
    figsize = (7.6, 4.2)
    measures_time = True

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _census.data_source()

    def run(self, job: Job) -> pa.Table:
        """Time each method."""
        table = _census.people(job.size(100_000, 5000)).select(["Income"])
        repeats, out = job.size(10, 1), []
        for total in job.track(job.size((4, 8, 12, 16, 20, 24, 28, 30, 60, 120), (4, 8, 16, 30))):
            noises = np.sort(job.rng(total).uniform(0.25, 1, total))
            shuffled = job.rng(total, 1).permutation(noises)
            for share, of in SHARES.items():
                first = int(total * of)
                for series, generate in _methods(table, shuffled[:first], shuffled[first:], job).items():
                    out.append(
                        {
                            "L": share,
                            "series": series,
                            "M": total,
                            "copies": total - first,
                            "seconds": _mean_time(generate, repeats),
                        }
                    )
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot one panel per L, up to the paper's largest M; the table has more."""
        table = table.filter(pc.less_equal(table.column("M"), 30))
        for axis, share in zip(figure.subplots(1, 3, sharey=True), SHARES, strict=True):
            lines(axis, table, "M", "seconds", "series", L=share)
            axis.set_title(f"L = ⌊{share}⌋", fontsize=9.5, loc="right")
            axis.set_xlabel("total number of copies M")
        figure.axes[0].set_ylabel("seconds for M - L copies")
        legend_above(figure.axes[0], 3)

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that Algorithm 3 is fast, linear in M, and nearly as fast as independent noise."""
        seconds_at_30 = {s: select(table, "seconds", series=s, L="M/4", M=30)[0] for s in distinct(table, "series")}
        exponents, ratio = {}, []
        for share in SHARES:
            m, seconds = (select(table, column, L=share, series=LITERAL) for column in ("M", "seconds"))
            exponents[share] = power_exponent(m[m <= 30], seconds[m <= 30])
            ratio.append(float(np.median((seconds / select(table, "seconds", L=share, series=INDEPENDENT))[m <= 30])))
        return [
            claim(
                "generating 23 copies (M = 30, L = 7) takes 0.37 s",
                "section 6.3",
                "neither the printed algorithm nor ours takes longer, on a newer machine",
                ", ".join(f"{s} {v:.3f} s" for s, v in seconds_at_30.items()),
                max(seconds_at_30[LITERAL], seconds_at_30[RELEASE]) <= 0.37,
            ),
            claim(
                "the runtime of Algorithm 3 increases approximately linearly in M",
                "section 6.3",
                "exponent of M between 0.7 and 1.3 up to M = 30, for each L",
                ", ".join(f"L = {s}: {v:.2f}" for s, v in exponents.items()),
                all(0.7 < v < 1.3 for v in exponents.values()),
            ),
            claim(
                "the runtime difference between Algorithm 3 and independent noise is considerably small",
                "section 6.3",
                "at most 2 times, in the median over M up to 30, for each L",
                ", ".join(f"{value:.2f} times" for value in ratio),
                max(ratio) < 2,
            ),
        ]


def _methods(table: pa.Table, old: Any, new: Any, job: Job) -> dict[str, Callable[[], Any]]:
    """The functions to time, each of which generates the copies with the noise variances `new`."""
    rng = job.rng(7)
    income = table.column("Income").to_numpy()
    k_x = np.array([[income.var()]])
    known = algorithm_3(rng, np.zeros((len(income), 0)), old[:0], old, k_x) if len(old) else None
    scheme = _census.scheme(table, [0.25, 0.5, 1.0], OURS)
    key = job.key()

    def literal() -> Any:
        noise = algorithm_3(rng, known, old, new, k_x)
        return income[:, None, None] + noise

    def independent() -> Any:
        return [income + np.sqrt(noise) * income.std() * rng.standard_normal(len(income)) for noise in new]

    def ours() -> Any:
        levels = [Level(1 / (1 + float(noise))) for noise in new]
        return [scheme.release(table, level, key, threads=1) for level in levels]

    return {LITERAL: literal, INDEPENDENT: independent, RELEASE: ours}


def _mean_time(generate: Callable[[], Any], repeats: int) -> float:
    """The mean run time in seconds, after a first call that is not counted."""
    generate()
    start = time.perf_counter()
    for _ in range(repeats):
        generate()
    return (time.perf_counter() - start) / repeats
