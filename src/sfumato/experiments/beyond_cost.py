"""Beyond the papers: the time of one copy against the number of levels, declared and on demand."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _census, claim, select, to_table
from sfumato.experiments._census import OURS
from sfumato.experiments._plotting import lines
from sfumato.levels import Level

DECLARED, DEMAND, NTH = "a declared level of k", "a level on demand, 8 digits", "the m-th level requested"


class Cost(Experiment):
    """The time of one copy: logarithmic in the number of declared levels, constant in the copies released."""

    title = "Beyond: time of one copy against declared levels, and against copies released before"
    description = (
        "A copy of 100,000 x 2 numbers on one thread, the median of several. Left by the number k of "
        "levels in the ladder, right by the number of other levels requested before."
    )
    data = "CENSUS"
    figsize = (7.6, 3.6)
    measures_time = True

    def data_source(self) -> str:
        """The substitute for the paper's table."""
        return _census.data_source()

    def run(self, job: Job) -> pa.Table:
        """Time copies at declared levels, on demand, and after many other requests."""
        table, out, key, repeats = _census.people(100_000), [], job.key(), job.size(15, 7)

        def seconds(scheme: Any, level: Level) -> float:
            times = []
            for _ in range(repeats + 1):
                start = time.perf_counter()
                scheme.release(table, level, key, threads=1)
                times.append(time.perf_counter() - start)
            return float(np.median(times[1:]))

        for count in job.track(job.size((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), (1, 4, 32, 256))):
            noises = np.linspace(0.25, 1, count) if count > 1 else np.array([0.5])
            scheme = _census.scheme(table, noises, OURS)
            middle = float(np.sort(noises)[count // 2])
            out.append({"series": DECLARED, "count": count, "seconds": seconds(scheme, Level(1 / (1 + middle)))})
        scheme = _census.scheme(table, [0.25, 0.5, 1.0], OURS)
        out += [
            {"series": DEMAND, "count": n, "seconds": seconds(scheme, Level(1 / 1.613))}
            for n in (1, job.size(1024, 256))
        ]
        requests = job.rng().uniform(0.26, 0.99, job.size(1000, 100))
        # the same levels are timed each time, since the time of a level depends on its binary digits
        probes = [Level(1 / 1.371), Level(1 / 1.613), Level(1 / 1.877)]
        done = 0
        for count in job.size((1, 10, 100, 1000), (1, 10, 100)):
            for noise in requests[done:count]:
                scheme.release(table.slice(0, 100), Level(1 / (1 + noise)), key, threads=1)
            done = count
            out.append(
                {"series": NTH, "count": count, "seconds": float(np.mean([seconds(scheme, level) for level in probes]))}
            )
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot two panels."""
        left, right = figure.subplots(1, 2, sharey=True)
        for name, axis in ((DECLARED, left), (DEMAND, left), (NTH, right)):
            lines(axis, to_table(r for r in table.to_pylist() if r["series"] == name), "count", "seconds", "series")
        left.lines[-1].set(color="#d55e00", linestyle="--", marker="")
        for axis, label in ((left, "declared levels k"), (right, "levels requested so far, m")):
            axis.set_xscale("log", base=2 if axis is left else 10)
            axis.set_xlabel(label)
            axis.set_ylim(bottom=0)
            axis.legend(frameon=False, fontsize=8, loc="lower right")
        left.set_ylabel("seconds for one copy")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check the number of draws per value, and that the time does not grow with m."""
        k, seconds = select(table, "count", series=DECLARED), select(table, "seconds", series=DECLARED)
        growth = float(seconds[-1] / seconds[0])
        most = 1 + float(np.ceil(np.log2(k[-1])))
        nth = select(table, "seconds", series=NTH)
        ratio = float(nth[-1] / nth[0])
        return [
            claim(
                "a declared level costs at most 1 + ⌈log2 k⌉ draws per value",
                "docs/guarantee.md",
                f"k = {int(k[-1])} at most half of {most:.0f} times as long as k = 1",
                f"{growth:.2f} times",
                growth < most / 2,
            ),
            claim(
                "a copy takes the same time, however many were released before",
                "docs/benchmarks.md",
                "the last within 1.5 times the first",
                f"{ratio:.2f} times",
                ratio < 1.5,
            ),
        ]
