"""Beyond the papers: what a copy costs, against the number of levels."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.experiments import Claim, Experiment, Job, _census, cells, claim, rows_of
from sfumato.experiments._census import OURS
from sfumato.experiments._plotting import lines
from sfumato.levels import Level

DECLARED, DEMAND, NTH = "a declared level of k", "a level on demand, 8 digits", "the m-th level asked for"


class Cost(Experiment):
    """Logarithmic in the ladder, constant in the copies given."""

    title = "Beyond: time of one copy against declared levels, and against copies given before"
    about = (
        "A copy of 100,000 x 2 numbers on one thread, the median of several. Left by the number k of "
        "levels in the ladder, right by how many other levels were asked for before."
    )
    data = "CENSUS"
    size = (7.6, 3.6)

    def source(self) -> str:
        """The stand-in."""
        return _census.source()

    def run(self, job: Job) -> pa.Table:
        """Time copies."""
        table, out, key, repeats = _census.people(100_000), [], job.key(), job.size(15, 7)

        def took(scheme: Any, level: Level) -> float:
            times = []
            for _ in range(repeats + 1):
                began = time.perf_counter()
                scheme.release(table, level, key, threads=1)
                times.append(time.perf_counter() - began)
            return float(np.median(times[1:]))

        for count in job.steps(job.size((1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), (1, 4, 32, 256))):
            noises = np.linspace(0.25, 1, count) if count > 1 else np.array([0.5])
            scheme = _census.scheme(table, noises, OURS)
            middle = float(np.sort(noises)[count // 2])
            out.append({"series": DECLARED, "count": count, "seconds": took(scheme, Level(1 / (1 + middle)))})
        scheme = _census.scheme(table, [0.25, 0.5, 1.0], OURS)
        out += [
            {"series": DEMAND, "count": n, "seconds": took(scheme, Level(1 / 1.613))} for n in (1, job.size(1024, 256))
        ]
        asked = job.rng().uniform(0.26, 0.99, job.size(1000, 100))
        at, marks = 0, job.size((1, 10, 100, 1000), (1, 10, 100))
        probes = [
            Level(1 / 1.371),
            Level(1 / 1.613),
            Level(1 / 1.877),
        ]  # the same at every mark: levels differ in digits
        for count in marks:
            for noise in asked[at:count]:
                scheme.release(table.slice(0, 100), Level(1 / (1 + noise)), key, threads=1)
            at = count
            out.append(
                {"series": NTH, "count": count, "seconds": float(np.mean([took(scheme, level) for level in probes]))}
            )
        return rows_of(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Two panels."""
        left, right = figure.subplots(1, 2, sharey=True)
        for name, axis in ((DECLARED, left), (DEMAND, left), (NTH, right)):
            lines(axis, rows_of(r for r in table.to_pylist() if r["series"] == name), "count", "seconds", "series")
        left.lines[-1].set(color="#d55e00", linestyle="--", marker="")
        for axis, label in ((left, "declared levels k"), (right, "levels asked for so far, m")):
            axis.set_xscale("log", base=2 if axis is left else 10)
            axis.set_xlabel(label)
            axis.set_ylim(bottom=0)
            axis.legend(frameon=False, fontsize=8, loc="lower right")
        left.set_ylabel("seconds for one copy")

    def claims(self, table: pa.Table) -> list[Claim]:
        """At most 1+⌈log2 k⌉ draws; no growth with m."""
        k, seconds = cells(table, "count", series=DECLARED), cells(table, "seconds", series=DECLARED)
        grows = float(seconds[-1] / seconds[0])
        most = 1 + float(np.ceil(np.log2(k[-1])))
        nth = cells(table, "seconds", series=NTH)
        ratio = float(nth[-1] / nth[0])
        return [
            claim(
                "a declared level costs at most 1 + ⌈log2 k⌉ draws a cell",
                "docs/guarantee.md",
                f"k = {int(k[-1])} at most half of {most:.0f} times as long as k = 1",
                f"{grows:.2f} times",
                grows < most / 2,
            ),
            claim(
                "a copy costs the same, however many were given",
                "docs/benchmarks.md",
                "the last within 1.5 times the first",
                f"{ratio:.2f} times",
                ratio < 1.5,
            ),
        ]
