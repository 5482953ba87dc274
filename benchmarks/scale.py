"""Beyond one file and one machine: rows against time and memory, threads, and clusters against the local engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from tests.clusters import Cluster, dask_cluster, spark_cluster

import lake
import sfumato as sf
from measure import Line, at_most, seconds
from sfumato.engines import Engine
from sfumato.engines.dask import Dask
from sfumato.engines.local import Local
from sfumato.engines.spark import Spark
from sfumato.release.folders import release_folder

KEY = sf.Key.from_bytes(bytes(32))

_CHILD = r"""
import re, sys, time
from pathlib import Path
import sfumato as sf
from sfumato.release.folders import release_folder
policy, source, out = sys.argv[1:]
sf.Policy.load(policy).fit(source)  # compiles what is not yet compiled
start = time.perf_counter()
scheme = sf.Policy.load(policy).fit(source)
release_folder(scheme, source, out, "a", sf.Key.from_bytes(bytes(32)))
print(time.perf_counter() - start)
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def rows() -> Iterator[Line]:
    """10^5 to 10^8 rows of two columns, folder to folder: time a cell and peak memory of the whole process."""
    found: dict[int, tuple[float, float]] = {}
    for count in (10**5, 10**6, 10**7, 10**8):
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder, "policy.toml")
            said.write_text(lake.policy(2).dumps())
            source = lake.lay(Path(folder, "in"), count, 2, max(count // 3_125_000, 4))
            command = [sys.executable, "-c", _CHILD, str(said), str(source), str(Path(folder, "out"))]
            done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            found[count] = float(done[0]), float(done[1])
    for count, (time, _) in found.items():
        yield Line(
            f"nanoseconds a cell, {count:,} rows of 2 columns and an id, folder to folder with the fit, all cores",
            time / count / 2 * 1e9,
            found[10**7][0] / 10**7 / 2 * 1e9,
            "10,000,000 rows",
            "at most 1.2 times" if count > 10**7 else "(for comparison)",
            count <= 10**7 or time / count <= 1.2 * found[10**7][0] / 10**7,
            "ns",
        )
    small, large = found[10**6][1], found[10**8][1]
    yield Line("peak memory, 200,000,000 cells", large, 1024, "the limit", "at most 1 GiB", large <= 1024, "MiB")
    yield Line("the same", large, small, "2,000,000 cells", "(for comparison)", True, "MiB")


def threads() -> Iterator[Line]:
    """40,000,000 cells on one thread and on two."""
    with tempfile.TemporaryDirectory() as folder:
        source = lake.lay(Path(folder, "in"), 10_000_000, 4, 8)
        scheme = lake.policy(4).fit(source)
        times = {count: _best(scheme, source, Path(folder, "out"), partial(Local, count)) for count in (1, 2)}
    yield Line("40,000,000 cells, two threads", times[2], times[1], "one thread", "(for comparison)", True)


def clusters() -> Iterator[Line]:
    """100,000,000 cells from files to files, by clusters that run already, against as many threads of one process."""
    with tempfile.TemporaryDirectory() as folder:
        source = lake.lay(Path(folder, "in"), 25_000_000, 4, 32)
        scheme = lake.policy(4).fit(source)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        for cores in (1, 2):
            here = _best(scheme, source, Path(folder, "out"), partial(Local, cores))
            kinds: dict[str, tuple[Callable[..., AbstractContextManager[Cluster]], Callable[..., Engine], float]] = {
                "Dask": (dask_cluster, Dask.at, 1.3),
                "Spark": (spark_cluster, Spark.at, 2.0),
            }
            for name, (start, engine, bound) in kinds.items():
                with start(Path(folder, f"{name}{cores}"), cores) as cluster:
                    there = _best(scheme, source, Path(folder, "out"), partial(engine, cluster.address, None))
                workers = "1 worker" if cores == 1 else f"{cores} workers"
                what = f"100,000,000 cells, 32 files, {name}, {workers}"
                yield at_most(what, (there, here), f"local, {cores} threads" if cores > 1 else "local, 1 thread", bound)


def _best(scheme: sf.TableScheme, source: Path, out: Path, engine: Callable[[], Engine], rounds: int = 3) -> float:
    """The best of some runs, of which the first also starts Python on the workers."""
    with engine() as where:
        times = []
        for _ in range(rounds):
            shutil.rmtree(out, ignore_errors=True)
            times.append(seconds(lambda: release_folder(scheme, source, out, "a", KEY, engine=where)))
    return min(times)
