"""A large partitioned dataset for benchmarks, written one file at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf


def write_dataset(folder: Path, rows: int, columns: int, files: int) -> Path:
    """Write a dataset of normally distributed numbers with ascending ids."""
    folder.mkdir(parents=True)
    rng, rows_per_file = np.random.default_rng(1), -(-rows // files)
    for i in range(files):
        first = i * rows_per_file
        with pq.ParquetWriter(folder / f"{i:04}.parquet", schema(columns)) as writer:
            for start in range(first, min(first + rows_per_file, rows), 1_000_000):
                count = min(1_000_000, min(first + rows_per_file, rows) - start)
                numbers = {f"c{k}": rng.normal(size=count) for k in range(columns)}
                writer.write_table(pa.table({"id": np.arange(start, start + count), **numbers}))
    return folder


def schema(columns: int) -> pa.Schema:
    return pa.schema([("id", pa.int64()), *((f"c{k}", pa.float64()) for k in range(columns))])


def policy(columns: int) -> sf.Policy:
    """A policy that perturbs all numeric columns jointly, with one declared level."""
    roles = "".join(f'c{k} = "gaussian"\n' for k in range(columns))
    return sf.Policy.loads(f'dataset = "lake"\n[levels]\na = 0.5\n[columns]\nid = "id"\n{roles}')
