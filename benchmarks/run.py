"""All benchmarks in one run: `make bench`. Writes docs/benchmarks.md and benchmarks/results.json.

`python benchmarks/run.py vaults` measures the rows of one file again and keeps the others.
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

import audits
import files
import kernels
import limits
import mining
import peers
import scale
import serving
import turning
import vaults
from measure import Line

ROOT = Path(__file__).parents[1]
ALL = [
    kernels.gaussian,
    kernels.uniform,
    kernels.many_levels,
    kernels.algorithm_3,
    limits.floors,
    peers.gaussian,
    peers.replacement,
    peers.attack,
    files.speed,
    files.memory,
    scale.rows,
    scale.threads,
    scale.clusters,
    vaults.answers,
    audits.whole,
    audits.joint,
    turning.gaussian,
    turning.letter,
    mining.speed,
    mining.memory,
    serving.load,
]

PAGE = """\
# Benchmarks

Written by `make bench`. Each row is measured in one run on one machine, ours and the rival's in turn; the ratio is
ours over the rival's, except in the rows of values a second, where more is better. The rivals' NumPy generator is fast
and insecure; ours is keyed, can be asked for any cell in any order, and gives the noise of all levels on one path.
OpenDP samples from an exact discrete law, which ours does not (it rounds to a lattice); these rows say what a user of a
table waits for, not that the algorithms do the same work.

Machine: {machine}, {cores} cores, Python {python}, NumPy {numpy}, pyarrow {pyarrow}.

| what | ours | rival | against | ratio | target | met |
|---|---:|---:|---|---:|---|---|
{rows}

NumPy (1) is `x + rng.standard_normal(x.shape) @ L.T` on one thread; NumPy (2) is
`np.where(rng.random(n) < p, x, rng.integers(0, s, n))`. Ours is on one thread too, unless the row says otherwise, and
includes the copy's digest and manifest.

Algorithm 3 must keep the noise of every earlier copy and solves a system that grows with their number; ours keeps
nothing, and a copy costs what it costs. The rows from 30 to 1,000 levels show the crossing.

The rows of the vault ask one of 1,000 datasets, 10,000 recipients and 1,000,000 ledger entries what a small one is
asked: it takes no longer. The rows of the audit try every attack on one table, and the joint attack on thirty copies,
which reads no copy that a better one contains. The last rows undo [turned copies](rotation.md) on one core; the papers'
times are of 2010.
"""


def main() -> None:
    chosen = sys.argv[1:]
    lines = _kept() if chosen else {}
    for benchmark in ALL:
        if not chosen or benchmark.__module__ in chosen:
            for line in benchmark():
                lines[line.what, line.against] = line
                print(_row(line), flush=True)
    facts = {
        "machine": f"{platform.machine()} {_model()}".strip(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }
    (ROOT / "docs/benchmarks.md").write_text(PAGE.format(rows="\n".join(map(_row, lines.values())), **facts))
    results = [{**dataclasses.asdict(line), "ratio": line.ratio} for line in lines.values()]
    (ROOT / "benchmarks/results.json").write_text(json.dumps({"machine": facts, "lines": results}, indent=1) + "\n")
    sys.exit(0 if all(line.met for line in lines.values()) else "some targets were missed")


def _kept() -> dict[tuple[str, str], Line]:
    """The rows of the last run."""
    held = json.loads((ROOT / "benchmarks/results.json").read_text())["lines"]
    rows = [Line(**{name: value for name, value in row.items() if name != "ratio"}) for row in held]
    return {(row.what, row.against): row for row in rows}


def _row(line: Line) -> str:
    ours, rival = (_number(value, line.unit) for value in (line.ours, line.rival))
    cells = [line.what, ours, rival, line.against, f"{line.ratio:.2f}", line.target, "yes" if line.met else "**no**"]
    return f"| {' | '.join(cells)} |"


def _number(value: float, unit: str) -> str:
    return f"{value:.3f} s" if unit == "s" else f"{value:,.0f} {unit}".replace(" /s", "/s")


def _model() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if info.exists() and names else ""


if __name__ == "__main__":
    main()
