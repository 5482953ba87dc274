"""Leaks: a table whose copies are traced, and what a thief may do to a copy before it is found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sfumato as sf

NUMBERS = ("age", "income", "systolic", "weight")

POLICY = """
dataset = "clinic"
[levels]
internal = 0.8
partner = 0.5
public = 0.2
[columns]
id = "id"
age = "gaussian"
income = "gaussian"
systolic = "gaussian"
weight = "gaussian"
"""


def patients(rows: int, rng: np.random.Generator) -> pa.Table:
    """Numbers as they are: correlated, skewed, and some far from zero, where two digits keep little."""
    base = rng.normal(size=(rows, 4)) @ np.array([[1, 0.3, 0.5, 0.2], [0, 1, 0, 0.1], [0, 0, 1, 0.4], [0, 0, 0, 1]])
    return pa.table(
        {
            "id": rng.permutation(10 * rows)[:rows],
            "age": 45 + 18 * base[:, 0],
            "income": 28_000 * np.exp(0.3 * base[:, 1]),
            "systolic": 128 + 15 * base[:, 2],
            "weight": 72 + 12 * base[:, 3],
        }
    )


def vault_of(folder: str, table: pa.Table, recipients: int) -> sf.Vault:
    """A vault in which so many recipients hold the level `partner` of one traced dataset."""
    vault = sf.Vault.create(f"{folder}/vault")
    vault.add(sf.Policy.loads(POLICY), table, traced=True)
    for number in range(recipients):
        vault.recipient(f"r{number}")
        vault.grant(f"r{number}", "clinic", "partner")
        vault.release(f"r{number}", "clinic")
    return vault


DAMAGES = ("dropped", "shuffled", "columns", "rounded", "altered")


def damaged(copy: pa.Table, damages: set[str], rng: np.random.Generator, *, ids: bool = True) -> pa.Table:
    """The copy after what a thief did: half of the rows dropped, a column removed, a tenth of the cells altered."""
    cells = {name: np.array(copy[name].to_numpy()) for name in NUMBERS}
    if "altered" in damages:
        for name, values in cells.items():
            hit = rng.random(len(values)) < 0.1
            cells[name] = np.where(hit, rng.permutation(values), values)
    if "rounded" in damages:
        cells = {name: two_digits(values) for name, values in cells.items()}
    if "columns" in damages:
        del cells[NUMBERS[rng.integers(4)]]
    rows = np.arange(copy.num_rows)
    rows = rng.permutation(rows) if "shuffled" in damages else rows
    rows = rows[rng.random(len(rows)) < 0.5] if "dropped" in damages else rows
    out = pa.table({"id": copy["id"], **cells} if ids else cells)
    return out.take(rows)


def two_digits(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Rounded to two significant digits."""
    size = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(values), 1e-9))) - 1)
    return np.round(values / size) * size
