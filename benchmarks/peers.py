"""Gaussian mechanisms of other libraries, each in a virtual environment of its own, in the same run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import sfumato as sf
from measure import Line, seconds

HOME = Path(__file__).parents[1] / ".bench"
ROWS = 1_000_000
VALUES = 20_000

PEERS = {
    "diffprivlib": (
        ["diffprivlib", "scikit-learn<1.9"],
        """
import json, time
from diffprivlib.mechanisms import Gaussian
mechanism = Gaussian(epsilon=0.9, delta=1e-5, sensitivity=1.0)
values = [float(i) for i in range(COUNT)]
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    for value in values:
        mechanism.randomise(value)
    best = min(best, time.perf_counter() - start)
print(json.dumps(COUNT / best))
""",
    ),
    "opendp": (
        ["opendp"],
        """
import json, time
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
mechanism = dp.m.make_gaussian(*space, scale=1.0)
values = [float(i) for i in range(COUNT)]
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    mechanism(values)
    best = min(best, time.perf_counter() - start)
print(json.dumps(COUNT / best))
""",
    ),
}


def gaussian() -> Iterator[Line]:
    """Values a second of one call, as each library is called: ours uses all cores, and is shown on one thread too."""
    table = pa.table({"x": np.random.default_rng(1).normal(size=ROWS)})
    scheme = sf.Policy.loads('dataset = "b"\n[levels]\na = 0.8\nb = 0.5\nc = 0.2\n[columns]\nx = "gaussian"').fit(table)
    for name, (packages, script) in PEERS.items():
        rate = _rate(name, packages, script.replace("COUNT", str(VALUES)))
        ours = {threads: _ours(scheme, table, threads) for threads in (None, 1)}
        what = "gaussian noise, values a second"
        met = ours[None] >= 500 * rate
        yield Line(f"{what}, all cores", ours[None], rate, name, "at least 500 times", met, "/s")
        yield Line(f"{what}, one thread", ours[1], rate, name, "(for comparison)", True, "/s")


def _ours(scheme: sf.TableScheme, table: pa.Table, threads: int | None) -> float:
    key = sf.Key.from_bytes(bytes(32))
    scheme.release(table, "a", key, threads=threads)
    return ROWS / min(seconds(lambda: scheme.release(table, "a", key, threads=threads)) for _ in range(9))


def _rate(name: str, packages: list[str], script: str) -> float:
    home = HOME / name
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        (home / "ready").touch()
    out = subprocess.run([str(python), "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    rate: float = json.loads(out.stdout.splitlines()[-1])
    return rate
