"""Real clusters for tests, as processes on this machine: Dask's scheduler and workers, Spark's master and workers."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.debian import installed
from tests.postgres import free_port
from tests.serving import process_tree

HOST = "127.0.0.1"


@dataclass
class Cluster:
    """Some processes, and what they wrote."""

    address: str
    folder: Path
    page: str
    """Of its dashboard."""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def kill_worker(self) -> None:
        """Kill one, with all that it started, at once."""
        for process in reversed(process_tree(self.workers.pop().pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def written(self) -> bytes:
        """All that its processes have left on the disk: logs, and whatever they put aside."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


class _Processes:
    """Started with their output in files; killed in the end, with all that they started."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._folder, self._settings = folder, {**os.environ, **settings}
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *command: str | Path) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                list(map(str, command)), stdout=log, stderr=log, env=self._settings, cwd=self._folder
            )
        self._running.append(process)
        return process

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def wait(self, name: str, ready: Callable[[str], bool], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not ready(self.log(name)):
            assert time.monotonic() < end, f"{name} did not begin:\n{self.log(name)[-3000:]}"
            time.sleep(0.05)

    def stop(self) -> None:
        for process in self._running:
            with contextlib.suppress(OSError):
                for one in reversed(process_tree(process.pid)):
                    os.kill(one, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def dask_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A scheduler and workers of one thread each."""
    folder.mkdir()
    run, port, page = _Processes(folder, {"OMP_NUM_THREADS": "1"}), free_port(), free_port()
    cluster = Cluster(f"tcp://{HOST}:{port}", folder, f"http://{HOST}:{page}")
    dask = Path(sys.executable).with_name("dask")
    try:
        addresses = ("--host", HOST, "--port", str(port), "--dashboard-address", f"{HOST}:{page}")
        run.start("scheduler", dask, "scheduler", *addresses)
        run.wait("scheduler", lambda log: "Scheduler at" in log)
        for i in range(workers):
            said = ("--host", HOST, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", folder)
            cluster.workers.append(run.start(f"worker{i}", dask, "worker", cluster.address, *said))
        for i in range(workers):
            run.wait(f"worker{i}", lambda log: "Registered to" in log)
        yield cluster
    finally:
        run.stop()


@contextlib.contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A standalone master and workers of one core each, without the scripts that a wheel does not have."""
    import pyspark

    installed(lambda: shutil.which("java"), "default-jre-headless")
    folder.mkdir()
    home, port, page = Path(pyspark.__file__).parent, free_port(), free_port()
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_LOCAL_DIRS": str(folder / "local")}
    run = _Processes(folder, settings | {"PYSPARK_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"})
    cluster = Cluster(f"spark://{HOST}:{port}", folder, f"http://{HOST}:{page}")
    java, deploy = home / "bin" / "spark-class", "org.apache.spark.deploy"
    try:
        where = ("--host", HOST, "--port", str(port), "--webui-port", str(page))
        run.start("master", java, f"{deploy}.master.Master", *where)
        run.wait("master", lambda log: "New state: ALIVE" in log)
        for i in range(workers):
            said = ("--host", HOST, "--cores", "1", "--memory", "1g", "--webui-port", str(free_port()))
            folders = ("--work-dir", folder / f"work{i}", cluster.address)
            cluster.workers.append(run.start(f"worker{i}", java, f"{deploy}.worker.Worker", *said, *folders))
        for i in range(workers):
            run.wait(f"worker{i}", lambda log: "Successfully registered" in log)
        yield cluster
    finally:
        run.stop()
