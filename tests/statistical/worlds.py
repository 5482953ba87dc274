"""Tables and schemes for statistical tests: the noise of a copy is the copy minus the lattice value of the original."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.models.gaussian_noise import GaussianNoise

Array = Any

LADDER = "internal = 0.8\npartner = 0.5\npublic = 0.2\n"


def numbers(rng: np.random.Generator, rows: int, columns: int) -> pa.Table:
    """Correlated normal columns on very different scales."""
    mixing = rng.normal(size=(columns, columns)) + np.eye(columns)
    scales = 10.0 ** rng.integers(-9, 12, columns)
    values = rng.normal(size=(rows, columns)) @ mixing * scales + scales
    return pa.table({f"c{i}": values[:, i] for i in range(columns)})


def categories(rng: np.random.Generator, rows: int, size: int) -> pa.Table:
    """One column with a skewed distribution over `size` values."""
    weights = rng.dirichlet(np.full(size, 0.7))
    return pa.table({"x": rng.choice(size, rows, p=weights)})


def gaussian(columns: int, levels: str = LADDER, role: str = '"gaussian"') -> sf.Policy:
    lines = "".join(f"c{i} = {role}\n" for i in range(columns))
    return sf.Policy.loads(f'dataset = "s"\norder = "keep"\n[levels]\n{levels}[columns]\n{lines}')


def uniform(size: int, levels: str = LADDER, extra: str = "") -> sf.Policy:
    domain = f"domain = {{ min = 0, max = {size - 1} }}"
    return sf.Policy.loads(
        f'dataset = "s"\norder = "keep"\n[levels]\n{levels}[columns.x]\nrole = "uniform"\n{domain}\n{extra}'
    )


def matrix(table: pa.Table) -> Array:
    return np.column_stack([table.column(name).to_numpy() for name in table.column_names])


def white_noise(table: pa.Table, copy: pa.Table) -> Array:
    """The noise of a copy, whitened by the covariance that it must have, `σ²·K_X`.

    The published covariance is rounded, which shows in columns that are nearly functions of each other; that it is this
    one, to about three digits, is a test of its own.
    """
    [model] = sf.Manifest.of(copy).models
    assert isinstance(model, GaussianNoise)
    steps = np.array(model.step)
    lattice = np.rint(matrix(table) / steps) * steps
    covariance = model.noise * np.atleast_2d(np.cov(matrix(table).T))
    sizes = np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance / np.outer(sizes, sizes))
    return np.linalg.solve(root, ((matrix(copy) - lattice) / sizes).T)


def codes(table: pa.Table) -> Array:
    return table.column("x").to_numpy()
