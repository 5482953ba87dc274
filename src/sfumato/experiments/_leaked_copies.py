"""A vault with a traced dataset whose recipients hold copies of one level, and rounding that a leaker may apply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.release.policy import Policy
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
    """Synthetic patients: correlated and skewed columns, some far from zero, where rounding removes most noise."""
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


def vault_with_recipients(folder: str, table: pa.Table, recipients: int, policy: str = POLICY) -> Vault:
    """A vault in which recipients `r0`, `r1`, ... hold the level `partner` of one traced dataset."""
    vault = Vault.create(f"{folder}/vault")
    vault.add(Policy.loads(policy), table, traced=True)
    for number in range(recipients):
        vault.recipient(f"r{number}")
        vault.grant(f"r{number}", "clinic", "partner")
        vault.release(f"r{number}", "clinic")
    return vault


def two_significant_digits(values: Any) -> Any:
    """The values rounded to two significant digits."""
    unit = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(values), 1e-9))) - 1)
    return np.round(values / unit) * unit
