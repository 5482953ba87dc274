"""A cost model of a release: fitted to small runs, checked on a large one, and extrapolated to 10^12 cells.

`python benchmarks/cost.py` writes docs/cost-model.md, which docs/scale.md includes.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from scipy.optimize import nnls

import lake
import sfumato as sf
from sfumato.engines.local import Local
from sfumato.keys.path import ancestry
from sfumato.release.files import release_file
from sfumato.release.partitioned import release_folder

ROOT = Path(__file__).parents[1]
KEY = sf.Key.from_bytes(bytes(32))
CELLS = 4_000_000
CHECK_ROWS, CHECK_COLUMNS = 25_000_000, 4
PARTS = ("per row", "per cell", "per draw and cell", "per cell and jointly perturbed column")
FORMATS = ("parquet", "arrow", "csv")


@dataclass(frozen=True)
class Run:
    """The measurement of one release from file to file."""

    rows: int
    columns: int
    draws: int
    cpu: float
    """CPU seconds of all threads."""

    @property
    def parts(self) -> list[float]:
        cells = self.rows * self.columns
        return [self.rows, cells, cells * self.draws, cells * self.columns]


def measured(columns: int, level: float | str, form: str = "parquet", cells: int = CELLS) -> tuple[Run, float, float]:
    """A measured run, and the bytes per cell that were read and written."""
    rows = cells // columns
    rng = np.random.default_rng(columns)
    numbers = {f"c{k}": rng.normal(size=rows) for k in range(columns)}
    table = pa.table({"id": np.arange(rows), **numbers})
    scheme = lake.policy(columns).fit(table)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, f"in.{form}"), Path(folder, f"out.{form}")
        _write(table, source, form)
        cpu = _cpu(lambda: release_file(scheme, source, out, level, KEY, threads=1))
        read, written = (path.stat().st_size / rows / columns for path in (source, out))
    draws = len(ancestry([scheme.tree.locate(scheme.policy.ladder.level(level)).node]))
    return Run(rows, columns, draws, cpu), read, written


def _write(table: pa.Table, path: Path, form: str) -> None:
    if form == "csv":
        pa.csv.write_csv(table, path)
    elif form == "arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    else:
        pa.parquet.write_table(table, path)


def _cpu(work: Callable[[], object], rounds: int = 4) -> float:
    """The least CPU seconds of some runs, after one to warm up."""
    work()
    best = np.inf
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_SELF)
        work()
        after = resource.getrusage(resource.RUSAGE_SELF)
        best = min(best, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return float(best)


def model() -> tuple[np.ndarray, list[Run]]:
    """Non-negative seconds per part, by least squares of the relative errors of all runs."""
    runs = [measured(columns, level)[0] for columns in (1, 2, 4, 8, 16) for level in ("a", 0.7, 0.123456)]
    relative = np.array([[part / run.cpu for part in run.parts] for run in runs])
    found, _ = nnls(relative, np.ones(len(runs)))
    return found, runs


def check(found: np.ndarray) -> tuple[float, float]:
    """Predicted and measured CPU seconds for 10^8 cells in 32 files, 25 times as many as in any fitted run."""
    with tempfile.TemporaryDirectory() as folder:
        source = lake.write_dataset(Path(folder, "in"), CHECK_ROWS, CHECK_COLUMNS, 32)
        scheme = lake.policy(CHECK_COLUMNS).fit(source)

        def release() -> None:
            shutil.rmtree(Path(folder, "out"), ignore_errors=True)
            release_folder(scheme, source, Path(folder, "out"), "a", KEY, engine=Local(1))

        cpu = _cpu(release, rounds=2)
    run = Run(CHECK_ROWS, CHECK_COLUMNS, 1, cpu)
    return float(np.dot(found, run.parts)), cpu


def shares(order: str) -> tuple[float, dict[str, float]]:
    """CPU seconds of releasing 40,000,000 cells from one file to another on two threads: in all, and of single threads.

    Threads of a pool can be more; one reads and hands out batches, and one writes, which limits what more cores bring.
    """
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "in.parquet"), Path(folder, "out.parquet")
        pa.parquet.write_table(pa.table({f"c{i}": rng.normal(size=10_000_000) for i in range(4)}), source)
        roles = "".join(f'c{i} = "gaussian"\n' for i in range(4))
        policy = sf.Policy.loads(f'dataset = "b"\norder = "{order}"\n[levels]\na = 0.5\n[columns]\n{roles}')
        scheme = policy.fit(source)
        release_file(scheme, source, out, "a", KEY, threads=2)
        seen: dict[str, float] = {}
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.005):
                for thread in threading.enumerate():
                    stat = Path(f"/proc/self/task/{thread.native_id}/stat")
                    if stat.exists() and not thread.name.startswith("ThreadPool"):
                        fields = stat.read_text().rpartition(")")[2].split()
                        seen[thread.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        watcher = threading.Thread(target=watch, name="watcher")
        watcher.start()
        first = time.thread_time()
        before = time.process_time()
        release_file(scheme, source, out, "a", KEY, threads=2)
        total = time.process_time() - before
        done.set()
        watcher.join()
    serial = {name: used for name, used in seen.items() if name not in ("watcher", "MainThread")}
    return total, {"writing": seen["MainThread"] - first, "reading": max(serial.values(), default=0.0)}


def page() -> Iterator[str]:
    yield from _parts()
    yield ""
    yield "| order of rows | CPU s in all | of the thread that reads | of the thread that writes | cores that help |"
    yield "|---|---:|---:|---:|---:|"
    for order in ("keep", "secret"):
        total, single = shares(order)
        cells = [f"{value:.2f}" for value in (total, single["reading"], single["writing"])]
        yield f"| {order} | {' | '.join(cells)} | {total / max(single.values()):.1f} |"


def _parts() -> Iterator[str]:
    found, runs = model()
    yield "| part | nanoseconds |"
    yield "|---|---:|"
    yield from (f"| {name} | {1e9 * value:.2f} |" for name, value in zip(PARTS, found, strict=True))
    worst = max(abs(float(np.dot(found, run.parts)) / run.cpu - 1) for run in runs)
    yield ""
    yield (
        f"Fitted to {len(runs)} releases of {CELLS:,} cells from Parquet to Parquet (1 to 16 columns, 1 to "
        f"{max(run.draws for run in runs)} draws per cell) on one thread; the largest relative error is {worst:.0%}."
    )
    predicted, cpu = check(found)
    yield ""
    yield (
        f"Checked on 100,000,000 cells (25,000,000 x 4 in 32 files): predicted {predicted:.1f} CPU seconds, measured "
        f"{cpu:.1f}, a ratio of {predicted / cpu:.2f}."
    )
    yield ""
    yield "| format | CPU ns per cell (4 columns, 1 draw) | bytes read per cell | bytes written per cell |"
    yield "|---|---:|---:|---:|"
    for form in FORMATS:
        run, read, written = measured(4, "a", form)
        yield f"| {form} | {1e9 * run.cpu / CELLS:.1f} | {read:.1f} | {written:.1f} |"
        if form == "parquet":
            cpu_per_cell, bytes_per_cell = cpu / 1e8, read + written
    yield ""
    yield "| cells | CPU hours | read and written | minutes on 100 cores | on 1,000 cores |"
    yield "|---:|---:|---:|---:|---:|"
    for power in (9, 10, 11, 12):
        hours, terabytes = cpu_per_cell * 10**power / 3600, bytes_per_cell * 10**power / 1e12
        yield f"| 10^{power} | {hours:,.3g} | {terabytes:,.3g} TB | {hours * 0.6:,.2g} | {hours * 0.06:,.2g} |"


if __name__ == "__main__":
    lines = list(page())
    print("\n".join(lines))
    (ROOT / "docs/cost-model.md").write_text("\n".join(lines) + "\n")
