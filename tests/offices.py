"""Test table for mining, about the staff of an office, with every kind of column, and perturbed copies of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf

Array = Any

POLICY = """
dataset = "office"
[levels]
close = {close}
far = {far}
[columns]
person = "id"
age = "gaussian"
income = "gaussian"
score = "gaussian"
ward = {{ role = "uniform", domain = ["a", "b", "c", "d"] }}
smokes = "uniform"
site = "keep"
hours = "keep"
"""


def table(rows: int = 3000, seed: int = 5) -> pa.Table:
    """Skewed ages, incomes correlated with them, and scores from a mixture of two components."""
    draw = np.random.default_rng(seed)
    age = draw.gamma(6, 8, rows)
    low = draw.random(rows) < 0.4
    return pa.table(
        {
            "person": np.arange(rows),
            "age": age,
            "income": 2 * age + draw.normal(0, 20, rows),
            "score": np.where(low, draw.normal(-2, 1, rows), draw.normal(3, 1.5, rows)),
            "ward": draw.choice(["a", "b", "c", "d"], rows, p=[0.5, 0.3, 0.15, 0.05]),
            "smokes": draw.random(rows) < np.where(low, 0.7, 0.2),
            "site": draw.choice(["north", "south"], rows),
            "hours": draw.integers(10, 50, rows).astype(np.float64),
        }
    )


def policy(close: float = 0.8, far: float = 0.5) -> sf.Policy:
    return sf.Policy.loads(POLICY.format(close=close, far=far))


def key(number: int = 0) -> sf.Key:
    return sf.Key.from_bytes(number.to_bytes(32, "big"))


def copy(original: pa.Table, level: str = "far", number: int = 0) -> pa.Table:
    return policy().fit(original).release(original, level, key(number))


def numbers(original: pa.Table, names: tuple[str, ...] = ("age", "income", "score")) -> Array:
    return np.column_stack([original.column(name).to_numpy() for name in names])
