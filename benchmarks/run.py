"""Run all benchmarks (`make bench`), and write docs/benchmarks.md, and results.json and history.jsonl beside this file.

`python benchmarks/run.py vaults scale.threads` repeats some, and keeps the other results of machines like this;
`python benchmarks/run.py --quick` (`make bench-quick`) measures the most important ones in two minutes and only prints.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
import stages
import startup
import streams
import vaults
from measure import Line, machine, unrest

ROOT = Path(__file__).parents[1]
ALL = [
    kernels.gaussian,
    kernels.shuffled,
    kernels.uniform,
    kernels.threads,
    stages.stages,
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
    scale.one_file,
    scale.clusters,
    vaults.answers,
    vaults.pages,
    vaults.encrypted_reads,
    appends.appends,
    streams.streams,
    startup.commands,
    startup.releases,
    audits.full_audit,
    audits.joint,
    rotation.gaussian,
    rotation.letter,
    mining.speed,
    mining.trees,
    mining.questions,
    mining.memory,
    serving.load,
]
QUICK = [kernels.gaussian, kernels.uniform, kernels.threads, files.quick, startup.commands, startup.releases]

RESULTS, HISTORY = ROOT / "benchmarks/results.json", ROOT / "benchmarks/history.jsonl"

PAGE = """\
# Benchmarks

Written by `make bench`. Each row is measured in one run on one machine, alternating between Sfumato and the
baseline; times are medians. The ratio is Sfumato's value over the baseline's, with the interval of the ratios of single
runs; less is better, except in rows of values per second. The NumPy generator of the baselines is fast and not
cryptographically secure; Sfumato's is keyed, has random access to any cell, and gives correlated noise for all levels.
OpenDP samples from an exact discrete distribution, which Sfumato does not (it rounds to a lattice): these rows compare
the time to perturb a table, not equal algorithms.

Machine: {machine}, {cores} cores, instructions for {features}; Python {python}, NumPy {numpy}, pyarrow {pyarrow},
Sfumato {sfumato}. How restless it was: the same work took up to {unrest:.2f} times its least time (90 % quantile).

| benchmark | Sfumato | CPU | baseline | baseline is | ratio | interval | target | met |
|---|---:|---:|---:|---|---:|---:|---|---|
{rows}

## Where targets hold

Ratios on each kind of machine that results are kept of, and whether the target is met there. Processors without
instructions for AES use OpenSSL and arrays instead of compiled loops.

{kinds}

## What the rows mean

NumPy (1) is `x + rng.standard_normal(x.shape) @ L.T` on one thread; NumPy (2) is
`np.where(rng.random(n) < p, x, rng.integers(0, s, n))`. Sfumato runs on one thread too, unless the row says otherwise,
and its time includes the digest and the manifest of the copy.

The rows of cycles say what a gaussian copy spends its time on, in cycles of the processor's nominal rate: each stage
of the compiled loop with those before it, for one cell, beside all that NumPy does for one.

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
    if chosen == ["--quick"]:
        for benchmark in QUICK:
            for line in benchmark():
                print(_row(line), flush=True)
        return
    facts, restless = _facts(), unrest()
    kept = json.loads(RESULTS.read_text())
    label = " ".join([platform.machine(), *facts["features"]])
    lines = _lines(kept.get(label, {"lines": []})["lines"]) if chosen else {}
    for benchmark in ALL:
        names = {benchmark.__module__, f"{benchmark.__module__}.{benchmark.__name__}"}
        if not chosen or names & set(chosen):
            new: dict[str, Line] = {}
            for line in benchmark():
                if line.name in new:
                    raise ValueError(f"each row must have a name of its own, and two are called {line.name!r}")
                new[line.name] = line
                print(_row(line), flush=True)
            lines |= new
            facts["unrest"] = max(restless, unrest())
            _keep(lines, facts, kept, label)  # a later one may fail, or be stopped
    with HISTORY.open("a") as file:
        today = dt.datetime.now(dt.UTC).date().isoformat()
        ratios = {line.name: round(line.ratio, 4) for line in lines.values()}
        file.write(json.dumps({"date": today, "machine": label, "unrest": facts["unrest"], "ratios": ratios}) + "\n")
    sys.exit(0 if all(line.met for line in lines.values()) else "some targets were missed")


def _keep(lines: dict[str, Line], facts: dict[str, Any], kept: dict[str, Any], label: str) -> None:
    """Write the results so far, and the page, with this kind of machine first."""
    rows = [{**dataclasses.asdict(line), "ratio": line.ratio} for line in lines.values()]
    new = {label: {"machine": facts, "lines": rows}} | {name: run for name, run in kept.items() if name != label}
    RESULTS.write_text(json.dumps(new, indent=1) + "\n")
    (ROOT / "docs/benchmarks.md").write_text(page(list(lines.values()), facts, new))


def page(lines: list[Line], facts: dict[str, Any], kept: dict[str, Any]) -> str:
    """The text of docs/benchmarks.md."""
    shown = {**facts, "features": ", ".join(facts["features"]) or "none of AES, SHA and AVX"}
    return PAGE.format(rows="\n".join(map(_row, lines)), kinds="\n".join(_kinds(lines, kept)), **shown)


def _kinds(lines: list[Line], kept: dict[str, Any]) -> Iterator[str]:
    """A table of the rows with targets by kinds of machine."""
    runs = {label: _lines(run["lines"]) for label, run in kept.items()}
    yield "| benchmark | target | " + " | ".join(runs) + " |"
    yield "|---|---|" + "---:|" * len(runs)
    for line in lines:
        found = [run.get(line.name) for run in runs.values()]
        cells = ["" if one is None else f"{one.ratio:.2f}{'' if one.met else ' (**no**)'}" for one in found]
        if not line.target.startswith("("):
            yield f"| {line.name} | {line.target} | {' | '.join(cells)} |"


def _facts() -> dict[str, Any]:
    return {
        **machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "sfumato": importlib.metadata.version("sfumato"),
    }


def _lines(rows: list[dict[str, Any]]) -> dict[str, Line]:
    """Earlier results."""
    lines = [Line(**{name: value for name, value in row.items() if name != "ratio"}) for row in rows]
    return {line.name: line for line in lines}


def _row(line: Line) -> str:
    ours, baseline = (_number(value, line.unit) for value in (line.ours, line.baseline))
    cpu = "" if line.cpu is None else _number(line.cpu, "s")
    interval = "" if line.low is None or line.high is None else f"{line.low:.2f} to {line.high:.2f}"
    met = "yes" if line.met else "**no**"
    cells = [line.name, ours, cpu, baseline, line.baseline_name, f"{line.ratio:.2f}", interval, line.target, met]
    return f"| {' | '.join(cells)} |"


def _number(value: float, unit: str) -> str:
    if unit == "s" and value < 0.01:
        return f"{value * 1e6:,.0f} µs" if value < 0.001 else f"{value * 1e3:.2f} ms"
    return f"{value:.3f} {unit}".strip() if unit in ("s", "") else f"{value:,.0f} {unit}".replace(" /s", "/s")


if __name__ == "__main__":
    main()
