"""Real data: from the folder SFUMATO_DATA, else from OpenML, else a clear word on how to get them."""

from __future__ import annotations

import os
import socket
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

_BESIDE = Path(__file__).parents[2] / "shared" / "data"
"""Where the data lie for the project's own developers."""

Array = Any


def folder() -> Path | None:
    named = os.environ.get("SFUMATO_DATA")
    found = Path(named) if named else _BESIDE
    return found if found.is_dir() else None


def _openml(name: str, version: int, columns: list[str] | None) -> Array:
    from sklearn.datasets import fetch_openml

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it tries again
            frame = fetch_openml(name, version=version, as_frame=True, n_retries=1, delay=0.1).data
    except (OSError, ValueError) as error:
        pytest.skip(f"{name} is not here: set SFUMATO_DATA to a folder with it, or go online ({error})")
    finally:
        socket.setdefaulttimeout(before)
    return (frame if columns is None else frame[columns]).to_numpy(float)


@cache
def letter() -> Array:
    """Letter Recognition: 20,000 x 16."""
    here = folder()
    if here is None:
        return _openml("letter", 1, None)
    return np.array([line.split(",")[1:] for line in (here / "letter-recognition.data").read_text().split()], float)


@cache
def adult() -> Array:
    """Adult's three numeric attributes of giannella2010, 32,561 training records."""
    here = folder()
    names = ["age", "education-num", "hours-per-week"]
    if here is None:
        return _openml("adult", 2, names)[:32_561]
    table = pyarrow.parquet.read_table(here / "adult_48842.parquet")
    return np.column_stack([table.column(name).to_numpy()[:32_561] for name in names]).astype(float)


@cache
def salaries() -> Array:
    """Salary in fifty steps of 600,000 working adults; elsewhere, as many draws from a law of the same shape."""
    here = folder()
    if here is None:
        rng = np.random.default_rng(7)
        return np.minimum(rng.lognormal(2.4, 0.8, 600_000), 49).astype(np.int64)
    return pyarrow.parquet.read_table(here / "census_adult_600k.parquet", columns=["Salary"]).column(0).to_numpy()


@cache
def iris() -> tuple[Array, Array]:
    """Four measures of 150 flowers, and their species."""
    from sklearn.datasets import load_iris  # inside the package, with Fisher's own values

    data = load_iris()
    return data.data, data.target


@cache
def cancer() -> tuple[Array, Array]:
    """Nine measures of the 683 complete records of Breast Cancer Wisconsin (Original), and which are malignant."""
    here = folder()
    path = None if here is None else here / "breast-cancer-wisconsin.data"
    if path is None or not path.exists():
        pytest.skip("Breast Cancer Wisconsin (Original) is not here: set SFUMATO_DATA to a folder with it")
    rows = [line.split(",") for line in path.read_text().split() if line and "?" not in line]
    values = np.array(rows, dtype=np.float64)
    return values[:, 1:-1], (values[:, -1] == 4).astype(np.int64)
