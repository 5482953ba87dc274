"""Run all benchmarks (`make bench`), and write docs/benchmarks.md and benchmarks/results.json.

`python benchmarks/run.py vaults` repeats the benchmarks of one file and keeps the other results.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import appends
import audits
import copula
import databases
import files
import kernels
import limits
import mining
import peers
import rotation
import scale
import serving
import streams
import vaults
from measure import Line

ROOT = Path(__file__).parents[1]
ALL = [
    kernels.gaussian,
    kernels.uniform,
    kernels.many_levels,
    kernels.algorithm_3,
    copula.copies,
    copula.fit,
    copula.utility,
    limits.lower_bounds,
    peers.gaussian,
    peers.replacement,
    peers.attack,
    files.speed,
    files.memory,
    databases.postgresql,
    scale.rows,
    scale.threads,
    scale.clusters,
    vaults.answers,
    vaults.encrypted_reads,
    appends.appends,
    streams.streams,
    audits.full_audit,
    audits.joint,
    rotation.gaussian,
    rotation.letter,
    mining.speed,
    mining.memory,
    serving.load,
]

PAGE = """\
# Benchmarks

Written by `make bench`. Each row is measured in one run on one machine, alternating between Sfumato and the baseline.
The ratio is Sfumato's value over the baseline's; less is better, except in rows of values per second. The NumPy
generator of the baselines is fast and not cryptographically secure; Sfumato's is keyed, has random access to any
cell, and gives correlated noise for all levels. OpenDP samples from an exact discrete distribution, which Sfumato
does not (it rounds to a lattice): these rows compare the time to perturb a table, not equal algorithms.

Machine: {machine}, {cores} cores, Python {python}, NumPy {numpy}, pyarrow {pyarrow}.

| benchmark | Sfumato | baseline | baseline is | ratio | target | met |
|---|---:|---:|---|---:|---|---|
{rows}

NumPy (1) is `x + rng.standard_normal(x.shape) @ L.T` on one thread; NumPy (2) is
`np.where(rng.random(n) < p, x, rng.integers(0, s, n))`. Sfumato runs on one thread too, unless the row says otherwise,
and its time includes the digest and the manifest of the copy.

Algorithm 3 stores the noise of every earlier copy and solves a linear system that grows with their number; Sfumato
stores no noise, and the cost of a copy does not depend on the number of earlier copies. The rows from 30 to 1,000
levels show the crossover.

The rows of the vault compare a vault of 1,000 datasets, 10,000 recipients and 250,000 ledger entries with a small
one. Another row reads an encrypted table of a vault, and the same Parquet file in plain. The rows of the audit run
every attack on one table, and the joint attack on thirty copies, which skips every copy that is dominated by a
better one. The rows of known records attack [rotated copies](rotation.md) on one core; the papers' times are from 2010.
"""


def main() -> None:
    chosen = sys.argv[1:]
    lines = _previous() if chosen else {}
    for benchmark in ALL:
        if not chosen or benchmark.__module__ in chosen:
            for line in benchmark():
                lines[line.name, line.baseline_name] = line
                print(_row(line), flush=True)
    facts = {
        "machine": f"{platform.machine()} {_cpu_model()}".strip(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }
    (ROOT / "docs/benchmarks.md").write_text(page(list(lines.values()), facts))
    results = [{**dataclasses.asdict(line), "ratio": line.ratio} for line in lines.values()]
    (ROOT / "benchmarks/results.json").write_text(json.dumps({"machine": facts, "lines": results}, indent=1) + "\n")
    sys.exit(0 if all(line.met for line in lines.values()) else "some targets were missed")


def page(lines: list[Line], facts: dict[str, object]) -> str:
    """The text of docs/benchmarks.md."""
    return PAGE.format(rows="\n".join(map(_row, lines)), **facts)


def _previous() -> dict[tuple[str, str], Line]:
    """The results of the previous run."""
    previous = json.loads((ROOT / "benchmarks/results.json").read_text())["lines"]
    rows = [Line(**{name: value for name, value in row.items() if name != "ratio"}) for row in previous]
    return {(row.name, row.baseline_name): row for row in rows}


def _row(line: Line) -> str:
    ours, baseline = (_number(value, line.unit) for value in (line.ours, line.baseline))
    met = "yes" if line.met else "**no**"
    cells = [line.name, ours, baseline, line.baseline_name, f"{line.ratio:.2f}", line.target, met]
    return f"| {' | '.join(cells)} |"


def _number(value: float, unit: str) -> str:
    return f"{value:.3f} {unit}".strip() if unit in ("s", "") else f"{value:,.0f} {unit}".replace(" /s", "/s")


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if info.exists() and names else ""


if __name__ == "__main__":
    main()
