"""Comparison with other libraries, each in its own virtual environment: noise, randomised response, and attacks."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from measure import Line, seconds

HOME = Path(__file__).parents[1] / ".bench"
ROWS = 1_000_000
KEY = sf.Key.from_bytes(bytes(32))

_BEST = """
import json, time
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    work()
    best = min(best, time.perf_counter() - start)
print(json.dumps(best))
"""

NOISE = {
    "diffprivlib": (
        ["diffprivlib", "scikit-learn<1.9"],
        20_000,
        """
from diffprivlib.mechanisms import Gaussian
mechanism = Gaussian(epsilon=0.9, delta=1e-5, sensitivity=1.0)
values = [float(i) for i in range(COUNT)]
def work():
    for value in values:
        mechanism.randomise(value)
""",
    ),
    "opendp": (
        ["opendp"],
        20_000,
        """
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
mechanism = dp.m.make_gaussian(*space, scale=1.0)
values = [float(i) for i in range(COUNT)]
def work():
    mechanism(values)
""",
    ),
    "tmlt.core": (
        ["tmlt.core"],
        500,
        """
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.measurements.noise_mechanisms import AddGaussianNoise
mechanism = AddGaussianNoise(NumpyFloatDomain(), sigma_squared=1)
def work():
    for i in range(COUNT):
        mechanism(float(i))
""",
    ),
}

REPLACEMENT = {
    "multi-freq-ldpy": (
        ["multi-freq-ldpy"],
        100_000,
        """
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
def work():
    for i in range(COUNT):
        GRR_Client(i % 10, 10, 1.0)
""",
    ),
    "pure-ldp": (
        ["pure-ldp", "scikit-learn", "statsmodels"],
        50_000,
        """
from pure_ldp.frequency_oracles.direct_encoding import DEClient
client = DEClient(epsilon=1.0, d=10)
def work():
    for i in range(COUNT):
        client.privatise(i % 10 + 1)
""",
    ),
}

_INFERENCE = """
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator
original, copy = pd.read_parquet("ORIGINAL"), pd.read_parquet("COPY")
def work():
    InferenceEvaluator(
        ori=original, syn=copy, control=original.tail(2000), n_attacks=1000, secret="c6",
        aux_cols=[f"c{i}" for i in range(6)],
    ).evaluate()
"""


def gaussian() -> Iterator[Line]:
    """Values per second of one call to each library; ours uses all cores, and is measured on one thread too.

    The table has eight columns, and its rows stay in their order, as those of the others do.
    """
    names = [f"x{i}" for i in range(8)]
    table = pa.table(dict(zip(names, np.random.default_rng(1).normal(size=(8, ROWS)), strict=True)))
    roles = "".join(f'{name} = "gaussian"\n' for name in names)
    head = 'dataset = "b"\norder = "keep"\n[levels]\na = 0.8\nb = 0.5\nc = 0.2\n[columns]\n'
    scheme = sf.Policy.loads(head + roles).fit(table)
    ours = {threads: _ours(scheme, table, threads) for threads in (None, 1)}
    for name, (packages, count, script) in NOISE.items():
        rate = count / _best(name, packages, script.replace("COUNT", str(count)))
        met = ours[None] >= 500 * rate
        what = f"gaussian noise, values per second, against {name}"
        yield Line(f"{what}, all cores", ours[None], rate, name, "at least 500 times", met, "/s")
        yield Line(f"{what}, one thread", ours[1], rate, name, "(for comparison)", True, "/s")


def replacement() -> Iterator[Line]:
    """Categories replaced per second, with a domain of ten."""
    table = pa.table({"x": np.random.default_rng(1).integers(0, 10, ROWS)})
    role = '{ role = "uniform", domain = { min = 0, max = 9 } }'
    scheme = sf.Policy.loads(f'dataset = "b"\norder = "keep"\n[levels]\na = 0.5\n[columns]\nx = {role}').fit(table)
    ours = _ours(scheme, table, 1)
    for name, (packages, count, script) in REPLACEMENT.items():
        rate = count / _best(name, packages, script.replace("COUNT", str(count)))
        name_of_line = f"categories replaced per second, one thread, against {name}"
        yield Line(name_of_line, ours, rate, name, "at least 10 times", ours >= 10 * rate, "/s")


def attack() -> Iterator[Line]:
    """The time of an attack on one copy of 20,000 x 7, and of its score."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20_000, 3)) @ rng.normal(size=(3, 7)) + 0.3 * rng.normal(size=(20_000, 7))
    table = pa.table({f"c{i}": x[:, i] for i in range(7)})
    roles = "".join(f'c{i} = "gaussian"\n' for i in range(7))
    scheme = sf.Policy.loads(f'dataset = "b"\norder = "keep"\n[levels]\na = 0.5\n[columns]\n{roles}').fit(table)
    copy = scheme.release(table, "a", KEY)
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "original.parquet"), Path(folder, "copy.parquet")
        for path, rows in zip(paths, (table, copy), strict=True):
            pq.write_table(rows.replace_schema_metadata(None), path)
        script = _INFERENCE.replace("ORIGINAL", str(paths[0])).replace("COPY", str(paths[1]))
        theirs = _best("anonymeter", ["anonymeter"], script)
    sf.score(sf.attack("llse", [copy]), table)
    ours = min(seconds(lambda: sf.score(sf.attack("llse", [copy]), table)) for _ in range(3))
    name = "attack and score a copy of 20,000 x 7 (ours: llse on all; theirs: 1,000 estimates of one column)"
    yield Line(name, ours, theirs, "anonymeter, inference", "at most 1 times", ours <= theirs)


def _ours(scheme: sf.TableScheme, table: pa.Table, threads: int | None) -> float:
    scheme.release(table, "a", KEY, threads=threads)
    fastest = min(seconds(lambda: scheme.release(table, "a", KEY, threads=threads)) for _ in range(9))
    return float(ROWS * table.num_columns / fastest)


def _best(name: str, packages: list[str], script: str) -> float:
    """The best time of the function `work` that the script defines."""
    home = HOME / name
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        (home / "ready").touch()
    command = [str(python), "-W", "ignore", "-c", script + _BEST]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    best: float = json.loads(out.stdout.splitlines()[-1])
    return best
