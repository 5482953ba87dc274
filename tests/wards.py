"""A small table for vaults, its policy, and later versions of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf

ROWS = 300

POLICY = """
dataset = "ward"
[levels]
internal = 0.8
partner = 0.5
public = 0.2
[columns]
id = "id"
region = "keep"
age = "gaussian"
income = "gaussian"
diagnosis = { role = "uniform", domain = ["flu", "cold", "gout"] }
"""


def policy(name: str = "ward") -> sf.Policy:
    return sf.Policy.loads(POLICY.replace('"ward"', f'"{name}"'))


def table(rows: int = ROWS, seed: int = 3) -> pa.Table:
    draw = np.random.default_rng(seed)
    base = draw.normal(size=(rows, 2))
    return pa.table(
        {
            "id": np.arange(rows) + 1000,
            "region": np.array(["north", "south"])[np.arange(rows) % 2],
            "age": 45 + 18 * base[:, 0],
            "income": 30_000 + 9_000 * (base[:, 0] + base[:, 1]),
            "diagnosis": np.array(["flu", "cold", "gout"])[draw.integers(0, 3, rows)],
        }
    )


def changed(before: pa.Table, column: str, rows: slice, by: object) -> pa.Table:
    """The table with some cells of a column changed."""
    values = np.array(before.column(column).to_numpy(zero_copy_only=False))
    values[rows] = values[rows] + by if isinstance(by, float) else by
    return before.set_column(before.column_names.index(column), column, pa.array(values))
