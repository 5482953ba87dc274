"""Scaling: time and memory by number of rows and threads, and clusters against the local engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
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
from sfumato.release.partitioned import release_folder

KEY = sf.Key.from_bytes(bytes(32))

_CHILD = r"""
import re, sys, time
from pathlib import Path
import sfumato as sf
from sfumato.release.partitioned import release_folder
policy, source, out = sys.argv[1:]
sf.Policy.load(policy).fit(source)  # warm-up: compiles the kernels
start = time.perf_counter()
scheme = sf.Policy.load(policy).fit(source)
release_folder(scheme, source, out, "a", sf.Key.from_bytes(bytes(32)))
print(time.perf_counter() - start)
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def rows(counts: Sequence[int] = (10**5, 10**6, 10**7, 10**8)) -> Iterator[Line]:
    """Time per cell and peak memory of the process, for partitioned datasets of two columns."""
    found = {count: _measured(count) for count in counts}
    reference, most = counts[-2], counts[-1]
    for count, (time, _) in found.items():
        yield Line(
            f"nanoseconds per cell, {count:,} rows of 2 columns and an id, partitioned dataset to partitioned dataset, "
            "including the fit, all cores",
            time / count / 2 * 1e9,
            found[reference][0] / reference / 2 * 1e9,
            f"{reference:,} rows",
            "at most 1.2 times" if count == most else "(for comparison)",
            count < most or time / count <= 1.2 * found[reference][0] / reference,
            "ns",
        )
    large = found[most][1]
    yield Line(f"peak memory, {2 * most:,} cells", large, 1024, "the limit", "at most 1 GiB", large <= 1024, "MiB")
    small = counts[0]
    yield Line(
        f"peak memory, {2 * most:,} cells, against {2 * small:,}",
        large,
        found[small][1],
        f"{2 * small:,} cells",
        "(for comparison)",
        True,
        "MiB",
    )


def _measured(count: int) -> tuple[float, float]:
    """Seconds and peak mebibytes of a process that releases a number of rows."""
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder, "policy.toml")
        policy.write_text(lake.policy(2).dumps())
        source = lake.write_dataset(Path(folder, "in"), count, 2, max(count // 3_125_000, 4))
        command = [sys.executable, "-c", _CHILD, str(policy), str(source), str(Path(folder, "out"))]
        time, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return float(time), float(peak)


def threads(count: int = 10_000_000) -> Iterator[Line]:
    """A dataset of four columns, on two threads against one."""
    with tempfile.TemporaryDirectory() as folder:
        source = lake.write_dataset(Path(folder, "in"), count, 4, 8)
        scheme = lake.policy(4).fit(source)
        times = [_best(scheme, source, Path(folder, "out"), partial(Local, cores)) for cores in (1, 2)]
    yield Line(f"{4 * count:,} cells, two threads", times[1], times[0], "one thread", "(for comparison)", True)


def one_file(count: int = 25_000_000, kinds: Sequence[str] = ("Dask", "Spark")) -> Iterator[Line]:
    """One Parquet file of four columns, shared out by its row groups, on two workers against two threads."""
    with tempfile.TemporaryDirectory() as folder:
        source = lake.write_dataset(Path(folder, "in"), count, 4, 1)
        [file] = source.rglob("*.parquet")
        scheme = lake.policy(4).fit(file)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        here = _best(scheme, file, Path(folder, "out"), partial(Local, 2))
        for name in kinds:
            start, engine, _ = KINDS[name]
            with start(Path(folder, name), 2) as cluster:
                there = _best(scheme, file, Path(folder, "out"), partial(engine, cluster.address, None))
            name_of_line = f"{4 * count:,} cells in one file, {name}, workers: 2"
            yield at_most(name_of_line, (there, here), "local, threads: 2", 1.3)


Kind = tuple[Callable[[Path, int], AbstractContextManager[Cluster]], Callable[[str, None], Engine], float]
KINDS: dict[str, Kind] = {"Dask": (dask_cluster, Dask.at, 1.3), "Spark": (spark_cluster, Spark.at, 2.0)}


def clusters(
    count: int = 25_000_000, sizes: Sequence[int] = (1, 2), kinds: Sequence[str] = tuple(KINDS)
) -> Iterator[Line]:
    """A dataset of four columns in 32 files, by running clusters, against as many threads of one process."""
    with tempfile.TemporaryDirectory() as folder:
        source = lake.write_dataset(Path(folder, "in"), count, 4, 32)
        scheme = lake.policy(4).fit(source)
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        for cores in sizes:
            here = _best(scheme, source, Path(folder, "out"), partial(Local, cores))
            for name in kinds:
                start, engine, bound = KINDS[name]
                with start(Path(folder, f"{name}{cores}"), cores) as cluster:
                    there = _best(scheme, source, Path(folder, "out"), partial(engine, cluster.address, None))
                name_of_line = f"{4 * count:,} cells, 32 files, {name}, workers: {cores}"
                yield at_most(name_of_line, (there, here), f"local, threads: {cores}", bound)


def _best(scheme: sf.TableScheme, source: Path, out: Path, engine: Callable[[], Engine], rounds: int = 3) -> float:
    """The best time of several runs; the first one also starts Python on the workers."""
    with engine() as where:
        times = []
        for _ in range(rounds):
            shutil.rmtree(out, ignore_errors=True)
            times.append(seconds(lambda: release_folder(scheme, source, out, "a", KEY, engine=where)))
    return min(times)
