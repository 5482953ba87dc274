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
    """Values a second, ours on one thread."""
    table = pa.table({"x": np.random.default_rng(1).normal(size=ROWS)})
    scheme = sf.Policy.loads('dataset = "b"\n[levels]\na = 0.8\nb = 0.5\nc = 0.2\n[columns]\nx = "gaussian"').fit(table)
    key = sf.Key.from_bytes(bytes(32))
    scheme.release(table, "a", key, threads=1)
    ours = ROWS / min(seconds(lambda: scheme.release(table, "a", key, threads=1)) for _ in range(9))
    for name, (packages, script) in PEERS.items():
        rate = _rate(name, packages, script.replace("COUNT", str(VALUES)))
        yield Line(
            "gaussian noise, values a second, one thread",
            ours,
            rate,
            name,
            "at least 500 times",
            ours >= 500 * rate,
            "/s",
        )


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
