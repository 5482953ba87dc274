"""A small table for vaults, its policy, and later versions of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from tests.schema import DATA_KEYS, tables_of

import sfumato as sf
from sfumato.vault.store import FolderStore

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


def vault_files(vault: sf.Vault) -> Path:
    """The folder in which a vault stores its files."""
    assert isinstance(vault.store.files, FolderStore)
    return vault.store.files.root


def wrapped_keys(vault: sf.Vault) -> dict[str, str]:
    """The wrapped data keys of a vault by what they encrypt."""
    with tables_of(vault.ledger.database) as connection:
        return {row.scope: row.wrapped for row in connection.execute(sa.select(DATA_KEYS))}
