"""The service under load: throughput with 64 concurrent recipients, and the latency of small requests."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from measure import Line
from sfumato.release.copying import CopyStream
from sfumato.release.gate import Request, clear
from sfumato.tables.source import Source

RECIPIENTS, ROWS, SECONDS = 64, 100_000, 20.0

SMALL = {
    "/api/v1/me": "who am I",
    "/api/v1/me/grants": "my grants",
    "/api/v1/copies/table/manifest": "a manifest",
}

POLICY = """
dataset = "table"
[levels]
high = 0.8
low = 0.2
[columns]
a = "gaussian"
b = "gaussian"
c = "gaussian"
d = { role = "uniform", domain = { min = 0, max = 9 } }
"""

_CLIENTS = r"""
import json, socket, sys, threading, time
port, seconds, path, tokens = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
end, counts, errors = time.monotonic() + seconds, [], []
def fetch(token):
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode()
    buffer, done = bytearray(1 << 18), 0
    while time.monotonic() < end:
        with socket.create_connection(("127.0.0.1", port)) as wire:
            wire.sendall(request)
            head = wire.recv(4096)
            last = head
            while got := wire.recv_into(buffer):
                last = bytes(buffer[max(got - 16, 0):got])
            if b" 200 " not in head[:20] or b"PAR1" not in last:
                errors.append(head[:200].decode("latin1"))
        done += 1
    counts.append(done)
threads = [threading.Thread(target=fetch, args=[token]) for token in tokens]
start = time.monotonic()
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps({"copies": sum(counts), "seconds": time.monotonic() - start, "errors": errors[:3]}))
"""


def load() -> Iterator[Line]:
    """Copies per second against the release core alone, latency under load against idle latency, and memory."""
    with tempfile.TemporaryDirectory() as folder:
        vault, table = _vault(Path(folder))
        tokens = [vault.token(f"r{i}")["token"] for i in range(RECIPIENTS)]
        core = _core(vault, table)
        with _service(vault) as (process, port):
            path = "/api/v1/copies/table"
            _clients(port, 10.0, path, tokens)  # warm-up: every release is recorded and cached
            idle = _small(port, tokens[0], 6.0)
            before = sum(map(_memory, process_tree(process)))
            with ThreadPoolExecutor(2) as pool:
                loading = pool.submit(_clients, port, SECONDS, path, tokens)
                time.sleep(1.0)
                busy = pool.submit(_small, port, tokens[0], SECONDS - 3).result()
                found = loading.result()
            after = sum(map(_memory, process_tree(process)))
        if found["errors"]:
            raise RuntimeError(found["errors"])
    rate = found["copies"] / found["seconds"]
    name = f"copies of {ROWS:,} x 4 over HTTP, {RECIPIENTS} recipients at once, clients on the same cores"
    yield Line(name, rate, core, "the release core alone", "at least 0.6", rate >= 0.6 * core, "/s")
    for small, what in SMALL.items():
        slow, usual = float(np.percentile(busy[small], 99)), float(np.median(idle[small]))
        name = f"a small request under load ({what}), 99th percentile"
        yield Line(name, slow, usual, "the median when idle", "at most 10", slow <= 10 * usual)
    name = "memory of the service after the load"
    yield Line(name, after, before, "before", "at most 1.1", after <= 1.1 * before, "MB")


def _vault(folder: Path) -> tuple[sf.Vault, pa.Table]:
    rng = np.random.default_rng(1)
    table = pa.table({**{name: rng.normal(size=ROWS) for name in "abc"}, "d": rng.integers(0, 10, ROWS)})
    vault = sf.Vault.create(folder / "vault")
    vault.add(sf.Policy.loads(POLICY), table)
    for i in range(RECIPIENTS):
        vault.recipient(f"r{i}")
        vault.grant(f"r{i}", "table", 0.3 + 0.5 * i / RECIPIENTS)
    return vault, table


def _core(vault: sf.Vault, table: pa.Table) -> float:
    """Copies per second of the same table by the release core, as Parquet, on all cores, without a service."""
    scheme, source = vault.dataset("table").scheme, Source.of(table)
    key = sf.Key.from_bytes(bytes(32))

    def make(i: int) -> int:
        level = sf.Level(0.3 + 0.5 * (i % RECIPIENTS) / RECIPIENTS)
        return sum(map(len, CopyStream(clear(Request.of(scheme, source, key), [level], key), "parquet", threads=1)))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(make, range(4)))
        start = time.perf_counter()
        list(pool.map(make, range(2 * RECIPIENTS)))
        return 2 * RECIPIENTS / (time.perf_counter() - start)


class _service:  # noqa: N801 - used like a function
    def __init__(self, vault: sf.Vault) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        command = [sys.executable, "-m", "sfumato", "serve", vault.location, "--port", str(self.port)]
        self.process = subprocess.Popen([*command, "--insecure", "--rate", "100000000"], stderr=subprocess.DEVNULL)

    def __enter__(self) -> tuple[int, int]:
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                time.sleep(0.05)
        return self.process.pid, self.port

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def _clients(port: int, seconds: float, path: str, tokens: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-c", _CLIENTS, str(port), str(seconds), path, json.dumps(tokens)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def _small(port: int, token: str, seconds: float) -> dict[str, list[float]]:
    """The latencies of small requests, sent one after the other with pauses on one connection."""
    took: dict[str, list[float]] = {path: [] for path in SMALL}
    end = time.monotonic() + seconds
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as wire:
        while time.monotonic() < end:
            for path, times in took.items():
                start = time.perf_counter()
                wire.request("GET", path, headers={"Authorization": f"Bearer {token}"})
                answer = wire.getresponse()
                answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"a small request failed with {answer.status}")
                times.append(time.perf_counter() - start)
                time.sleep(0.01)
    return took


def _memory(process: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def process_tree(process: int) -> list[int]:
    """The ids of a process and of all its descendants."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(one for child in found for one in process_tree(int(child)))]
