"""The time and memory of a full audit, and the time of a joint attack on many copies against reading them."""

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

_CHILD = r"""
import re, sys, time
from pathlib import Path
import pyarrow.parquet as pq
from sfumato.audit.audit import audit
table, *copies = [pq.read_table(path) for path in sys.argv[1:]]
start = time.perf_counter()
found = audit(table, {str(i): copy for i, copy in enumerate(copies)})
assert found.state.name != "UNSOUND" and len(found.all_copies.scores) > 10
print(time.perf_counter() - start)
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def _numbers(rows: int) -> pa.Table:
    """A correlated, skewed table of ten columns."""
    rng = np.random.default_rng(1)
    values = rng.gamma(2, size=(rows, 10)) @ (rng.normal(size=(10, 10)) + 2 * np.eye(10))
    return pa.table({f"c{i}": values[:, i] for i in range(10)})


def _mixed(rows: int) -> pa.Table:
    """Twelve numbers, six categories of up to forty values, and two public columns."""
    rng = np.random.default_rng(2)
    values = rng.gamma(2, size=(rows, 20)) @ (rng.normal(size=(20, 20)) + 2 * np.eye(20))
    columns: dict[str, object] = {f"c{i}": values[:, i] for i in range(12)}
    ranks = np.argsort(np.argsort(values[:, 12:], axis=0), axis=0) / rows
    for i, size in enumerate((2, 3, 5, 8, 12, 40, 4, 30)):
        columns[f"k{i}"] = np.array([f"v{code:02}" for code in range(size)])[(ranks[:, i] * size).astype(int)]
    return pa.table(columns)


def _copies(folder: str, table: pa.Table, count: int) -> tuple[Path, list[Path]]:
    """Copies of a table at several levels."""
    levels = np.linspace(0.8, 0.2, count)
    ladder = "".join(f"l{i} = {level:.6f}\n" for i, level in enumerate(levels))
    roles = {name: "gaussian" if name[0] == "c" else "uniform" for name in table.column_names} | {
        "k6": "keep",
        "k7": "keep",
    }
    columns = "".join(f'{name} = "{roles[name]}"\n' for name in table.column_names)
    scheme = sf.Policy.loads(f'dataset = "b"\n[levels]\n{ladder}[columns]\n{columns}').fit(table)
    paths = [Path(folder, f"{i}.parquet") for i in range(count)]
    for i, path in enumerate(paths):
        sf.release_file(scheme, table, path, f"l{i}", sf.Key.from_bytes(bytes(32)))
    original = Path(folder, "original.parquet")
    pq.write_table(scheme.arranged(table, sf.Key.from_bytes(bytes(32))), original)
    return original, paths


def full_audit() -> Iterator[Line]:
    """Every attack and measure on five copies of 100,000 x 20, in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        original, paths = _copies(folder, _mixed(100_000), 5)
        command = [sys.executable, "-c", _CHILD, str(original), *map(str, paths)]
        took, peak = map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    yield Line("full audit, 100,000 x 20, 5 copies", took, 60.0, "the limit", "at most 60 s", took <= 60)
    yield Line("peak memory of the full audit", peak, 2048.0, "the limit", "at most 2 GiB", peak <= 2048, "MiB")


def joint() -> Iterator[Line]:
    """The best linear estimate from thirty copies of 1,000,000 x 10, against reading the copies."""
    with tempfile.TemporaryDirectory() as folder:
        original, paths = _copies(folder, _numbers(1_000_000), 30)
        table = pq.read_table(original)

        def read() -> None:
            for path in paths:
                for _ in pq.ParquetFile(path).iter_batches(batch_size=1 << 16):
                    pass

        pair = compare(lambda: sf.attack("llse", paths, statistics=table), read, rounds=3)
    yield at_most("llse on 30 copies of 1,000,000 x 10", pair, "reading the copies", 1.5)
