"""A large table in many files for benchmarks, made a file at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf


def lay(folder: Path, rows: int, columns: int, files: int) -> Path:
    """So many rows of normal numbers, with ids that rise."""
    folder.mkdir(parents=True)
    rng, each = np.random.default_rng(1), -(-rows // files)
    for i in range(files):
        first = i * each
        with pq.ParquetWriter(folder / f"{i:04}.parquet", schema(columns)) as writer:
            for start in range(first, min(first + each, rows), 1_000_000):
                count = min(1_000_000, min(first + each, rows) - start)
                numbers = {f"c{k}": rng.normal(size=count) for k in range(columns)}
                writer.write_table(pa.table({"id": np.arange(start, start + count), **numbers}))
    return folder


def schema(columns: int) -> pa.Schema:
    return pa.schema([("id", pa.int64()), *((f"c{k}", pa.float64()) for k in range(columns))])


def policy(columns: int) -> sf.Policy:
    """Blurs all numbers together, at one declared level."""
    said = "".join(f'c{k} = "gaussian"\n' for k in range(columns))
    return sf.Policy.loads(f'dataset = "lake"\n[levels]\na = 0.5\n[columns]\nid = "id"\n{said}')
