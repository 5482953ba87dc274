"""Releases from file to file: time against pyarrow alone, and memory as the number of rows grows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from measure import Line, at_most, compare

POLICY = 'dataset = "b"\n[levels]\na = 0.5\n[columns]\n' + "".join(f'c{i} = "gaussian"\n' for i in range(4))

_CHILD = r"""
import re, sys
from pathlib import Path
import sfumato as sf
scheme = sf.Policy.load(sys.argv[1]).fit(sys.argv[2])
sf.release_file(scheme, sys.argv[2], sys.argv[3], "a", sf.Key.from_bytes(bytes(32)))
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def _table(path: Path, rows: int) -> None:
    rng = np.random.default_rng(1)
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(4)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 1_000_000):
            count = min(1_000_000, rows - start)
            writer.write_table(pa.table({f"c{i}": rng.normal(size=count) for i in range(4)}))


def speed() -> Iterator[Line]:
    """10,000,000 x 4 Parquet, fit and release, against reading and writing the same file."""
    yield from _speed(10_000_000)


def quick() -> Iterator[Line]:
    """The same for fewer rows."""
    yield from _speed(2_000_000)


def _speed(rows: int) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "in.parquet"), Path(folder, "out.parquet")
        _table(source, rows)
        policy, key = sf.Policy.loads('order = "keep"\n' + POLICY), sf.Key.from_bytes(bytes(32))
        scheme, shuffled = policy.fit(source), sf.Policy.loads(POLICY).fit(source)

        def read_and_write() -> None:
            pq.write_table(pq.read_table(source), out)

        name = f"Parquet to Parquet, {rows:,} x 4, all cores"
        pair = compare(lambda: sf.release_file(shuffled, source, out, "a", key), read_and_write, rounds=5)
        yield at_most(f"{name}, with a fitted scheme, rows in a secret order", pair, "pyarrow read and write", 2)
        pair = compare(lambda: sf.release_file(scheme, source, out, "a", key), read_and_write, rounds=5)
        yield at_most(f"{name}, with a fitted scheme, in the order of the table", pair, "pyarrow read and write", 1.15)
        pair = compare(lambda: sf.release_file(policy.fit(source), source, out, "a", key), read_and_write, rounds=5)
        yield at_most(f"{name}, including the fit, in the order of the table", pair, "pyarrow read and write", 2)


def memory() -> Iterator[Line]:
    """Peak resident memory of a process, at 40,000,000 rows against 4,000,000."""
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder, "p.toml")
        policy.write_text(POLICY)
        peaks = []
        for rows in (4_000_000, 40_000_000):
            source = Path(folder, f"{rows}.parquet")
            _table(source, rows)
            command = [sys.executable, "-c", _CHILD, str(policy), str(source), str(Path(folder, "out.parquet"))]
            peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            source.unlink()
        small, large = peaks
        yield Line(
            "peak memory, 40,000,000 x 4",
            large,
            small,
            "4,000,000 x 4",
            "at most 1.1 times",
            large <= 1.1 * small,
            "MiB",
        )
