"""Mining large copies: time against reading them, and memory as the number of rows grows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.tree import DecisionTreeClassifier

import sfumato as sf
from measure import Line, at_most, compare, seconds
from sfumato.mining import DecisionTree, Density, Frequencies, ask

POLICY = """
dataset = "b"
[levels]
a = 0.5
[columns]
x = "gaussian"
w = { role = "uniform", domain = { min = 0, max = 49 } }
"""

_CHILD = r"""
import re, sys
from pathlib import Path
from sfumato.mining import Frequencies, Moments, ask
Moments().fit(sys.argv[1])
Frequencies().fit(sys.argv[1])
ask(sys.argv[1], "select w, count(*), avg(x) from copy group by w")
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def _copy(folder: str, rows: int) -> Path:
    """A copy with a number of rows, written in parts."""
    rng = np.random.default_rng(1)
    source, target = Path(folder, f"{rows}.source.parquet"), Path(folder, f"{rows}.parquet")
    schema = pa.schema([("x", pa.float64()), ("w", pa.int64())])
    with pq.ParquetWriter(source, schema) as writer:
        for start in range(0, rows, 1_000_000):
            count = min(1_000_000, rows - start)
            writer.write_table(pa.table({"x": rng.gamma(4, 1, count), "w": rng.integers(0, 50, count)}, schema))
    sf.release_file(sf.Policy.loads(POLICY).fit(source), source, target, "a", sf.Key.from_bytes(bytes(32)))
    source.unlink()
    return target


def speed() -> Iterator[Line]:
    """The density of 10,000,000 values in 200 bins, and frequencies against reading the column."""
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy(folder, 10_000_000)
        took = min(seconds(lambda: Density(columns=["x"], bins=200).fit(copy)) for _ in range(3))
        name = "density of 10,000,000 values in 200 bins, read from Parquet, with its confidence band, all cores"
        yield Line(name, took, 3.0, "the limit", "at most 3 s", took <= 3)

        def read() -> None:
            with pq.ParquetFile(copy) as file:
                for _ in file.iter_batches(batch_size=1 << 16, columns=["w"]):
                    pass

        pair = compare(lambda: Frequencies().fit(copy), read, rounds=3)
        yield at_most("frequencies of 10,000,000 cells of 50 values", pair, "reading the column in batches", 1.5)


def trees() -> Iterator[Line]:
    """A decision tree from a copy, against scikit-learn's from the original."""
    for rows, columns in ((303, 4), (100_000, 10)):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(rows, columns))
        y = np.where(x[:, 0] + 0.5 * x[:, 1] ** 2 + 0.5 * rng.normal(size=rows) > 0.3, "yes", "no")
        table = pa.table({**{f"x{i}": x[:, i] for i in range(columns)}, "y": y})
        roles = "".join(f'x{i} = "gaussian"\n' for i in range(columns))
        policy = sf.Policy.loads(f'dataset = "b"\n[levels]\na = 0.8\n[columns]\n{roles}y = "keep"')
        copy = policy.fit(table).release(table, "a", sf.Key.from_bytes(bytes(32)))
        learn, plain = partial(DecisionTree().fit, copy, "y"), partial(DecisionTreeClassifier().fit, x, y)
        pair = compare(learn, plain, rounds=3)
        ours, _ = pair
        name = f"decision tree from a copy of {rows:,} x {columns}"
        if rows > 1000:
            yield at_most(name, pair, "scikit-learn on the original", 20)
        else:
            yield Line(name, ours, 0.5, "the limit", "at most 0.5 s", ours <= 0.5)


def questions() -> Iterator[Line]:
    """SQL on a copy of 10,000,000 rows, against DuckDB on a file with the same rows."""
    question = "select w, count(*) as n, avg(x) as m from copy group by w"
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy(folder, 10_000_000)
        plain = question.replace("from copy", f"from '{copy}'")
        pair = compare(lambda: ask(copy, question), lambda: duckdb.sql(plain).fetchall(), rounds=3)
        yield at_most("groups with counts and averages in SQL, 10,000,000 rows", pair, "DuckDB on the original", 3)


def memory() -> Iterator[Line]:
    """Peak resident memory of moments, frequencies and a query, at 20,000,000 rows against 2,000,000."""
    with tempfile.TemporaryDirectory() as folder:
        peaks = []
        for rows in (2_000_000, 20_000_000):
            command = [sys.executable, "-c", _CHILD, str(_copy(folder, rows))]
            peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        small, large = peaks
        name, met = "peak memory of mining 20,000,000 rows", large <= 1.2 * small
        yield Line(name, large, small, "2,000,000 rows", "at most 1.2 times", met, "MiB")
