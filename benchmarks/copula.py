"""Margin-preserving copies: time per value, memory of the fit, and utility beside synthetic data of the same risk."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from threadpoolctl import threadpool_limits

import sfumato as sf
from measure import Line, at_most, compare
from sfumato.experiments import beyond_dial as dial
from sfumato.experiments._data import adult_table

KEY = sf.Key.from_bytes(bytes(range(32)))
PLAIN = "gaussian"


def copies() -> Iterator[Line]:
    """Copies of 1,000,000 x 8 numbers at a declared level, on one thread, in the order of the table."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1_000_000, 8)) @ np.tril(rng.normal(size=(8, 8))).T
    whole = np.round(3 * x / x.std(axis=0))
    for name, values in (("doubles", np.exp(x / x.std(axis=0))), ("whole numbers of some 25 values", whole)):
        table = pa.table({f"c{i}": np.ascontiguousarray(values[:, i]) for i in range(8)})
        schemes = [_policy(role, 8).fit(table) for role in ("copula", "gaussian")]
        ours, plain = (partial(scheme.release, table, "b", KEY, threads=1) for scheme in schemes)
        with threadpool_limits(1):
            pair = compare(ours, plain, rounds=8)
        yield at_most(f"copula copy 1,000,000 x 8, {name}", pair, PLAIN, 3)


_FITS = """
import re, sys, sfumato as sf
sf.Policy.load(sys.argv[1]).fit(sys.argv[2])
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)  # that of this program alone
"""


def fit() -> Iterator[Line]:
    """The memory of a fit to 10,000,000 x 10 values of all kinds."""
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        policy, table = Path(folder) / "policy.toml", Path(folder) / "table.parquet"
        policy.write_text(_policy("copula", 10).dumps())
        for rows in (10_000_000, 1_000_000):
            _write(table, rows)
            command = [sys.executable, "-c", _FITS, str(policy), str(table)]
            peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    line = at_most("memory of a copula fit, 10,000,000 x 10", (peaks[0], peaks[1]), "1,000,000 x 10", 1.3)
    yield Line(line.name, line.ours, line.baseline, line.baseline_name, line.target, line.met, "MiB")


def _write(path: Path, rows: int) -> None:
    """Four skewed columns, four of whole numbers, one of doubles, and one of categories."""
    rng, writer = np.random.default_rng(1), None
    root = np.tril(rng.normal(size=(10, 10)))
    root /= np.linalg.norm(root, axis=1)[:, None]
    for start in range(0, rows, 1_000_000):
        x = rng.normal(size=(min(1_000_000, rows - start), 10)) @ root.T
        columns = [*np.exp(x[:, :4]).T, *np.round(10 * x[:, 4:8]).T, x[:, 8]]
        columns.append(np.array(list("abcdefgh"))[np.digitize(x[:, 9], [-1.5, -1, -0.5, 0, 0.5, 1, 1.5])])
        table = pa.table({f"c{i}": np.ascontiguousarray(column) for i, column in enumerate(columns)})
        writer = writer or pa.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def utility() -> Iterator[Line]:
    """Copies at fidelity 0.01 beside data shuffling and a Gaussian copula synthesizer, on Adult: less is better."""
    table = adult_table()
    copy = dial._scheme("copula", table).release(table, dial.SYNTHETIC, KEY)
    ours = dict(dial._measured(table, copy, 100))
    for name in dial.RIVALS:
        rival = dict(dial._measured(table, dial._rival(name, table, np.random.default_rng(1)), 100))
        pairs = {
            "1 - AUC of an ordinary model trained on": (1 - ours["auc"], 1 - rival["auc"]),
            "largest change of a rank correlation in": (ours["spearman"], rival["spearman"]),
        }
        for what, pair in pairs.items():
            where = f"a copy of Adult at fidelity {dial.SYNTHETIC:g}, against {name}"
            line = at_most(f"{what} {where}", pair, name, 1)
            yield Line(line.name, line.ours, line.baseline, line.baseline_name, line.target, line.met, "")


def _policy(role: str, columns: int) -> sf.Policy:
    names = "".join(f'c{i} = "{role}"\n' for i in range(columns))
    return sf.Policy.loads(f'dataset = "b"\norder = "keep"\n[levels]\na = 0.8\nb = 0.5\nc = 0.2\n[columns]\n{names}')
