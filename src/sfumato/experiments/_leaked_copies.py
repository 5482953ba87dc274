"""A table whose copies are traced, recipients of one level, and what a thief may do to a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.policy.document import Policy
from sfumato.vault import Vault

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


def vault_of(folder: str, table: pa.Table, recipients: int) -> Vault:
    """A vault in which so many recipients hold the level `partner` of one traced dataset."""
    vault = Vault.create(f"{folder}/vault")
    vault.add(Policy.loads(POLICY), table, traced=True)
    for number in range(recipients):
        vault.recipient(f"r{number}")
        vault.grant(f"r{number}", "clinic", "partner")
        vault.release(f"r{number}", "clinic")
    return vault


def two_digits(values: Any) -> Any:
    """Rounded to two significant digits."""
    size = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(values), 1e-9))) - 1)
    return np.round(values / size) * size
