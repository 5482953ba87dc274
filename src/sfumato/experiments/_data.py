"""Loaders of the papers' real data sets: from the folder SFUMATO_DATA, else from OpenML, else an error that says how.

Tables that are not on OpenML are replaced by a substitute with the same means and variances; the loader of such a table
also returns a description of what it loaded.
"""

from __future__ import annotations

import os
import socket
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import SourceError

Array = Any


class MissingData(SourceError):
    """A data set that is neither in the folder SFUMATO_DATA nor available from OpenML."""


def folder() -> Path | None:
    """The folder with the data sets, if SFUMATO_DATA names one."""
    path = os.environ.get("SFUMATO_DATA")
    return Path(path) if path and Path(path).is_dir() else None


def _file(name: str) -> Path | None:
    parent = folder()
    return parent / name if parent is not None and (parent / name).exists() else None


def _fetched(name: str, version: int) -> Any:
    from sklearn.datasets import fetch_openml  # noqa: PLC0415 - slow to import, and needed only for downloads

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about retries
            return fetch_openml(name, version=version, as_frame=True, n_retries=1, delay=0.1)
    except (OSError, ValueError) as error:
        raise MissingData(
            f"the data set {name!r} must be in the folder SFUMATO_DATA or on OpenML, and is in neither ({error}); set "
            "SFUMATO_DATA to a folder with the UCI file, or connect to the internet"
        ) from None
    finally:
        socket.setdefaulttimeout(before)


def _openml(name: str, version: int, columns: list[str] | None) -> Array:
    frame = _fetched(name, version).data
    return (frame if columns is None else frame[columns]).to_numpy(float)


@cache
def letter() -> Array:
    """Letter Recognition (UCI): 20,000 x 16."""
    path = _file("letter-recognition.data")
    if path is None:
        return _openml("letter", 1, None)
    return np.array([line.split(",")[1:] for line in path.read_text().split()], float)


@cache
def adult() -> Array:
    """Adult (UCI): the three numeric attributes that giannella2010 uses, of the 32,561 training records."""
    names = ["age", "education-num", "hours-per-week"]
    path = _file("adult_48842.parquet")
    if path is None:
        return _openml("adult", 2, names)[:32_561]
    table = pyarrow.parquet.read_table(path)
    return np.column_stack([table.column(name).to_numpy()[:32_561] for name in names]).astype(float)


def adult_table() -> pa.Table:
    """Adult (UCI): all 48,842 records with all attributes, numbers as integers and categories as text."""
    path = _file("adult_48842.parquet")
    if path is not None:
        return pyarrow.parquet.read_table(path).drop_columns(["split"])
    frame = _fetched("adult", 2).frame.rename(columns={"class": "income"})
    numbers = [name for name in frame.columns if frame[name].dtype.kind in "if"]
    columns = {name: frame[name].astype("int64" if name in numbers else str).to_numpy() for name in frame.columns}
    return pa.table(columns)


CENSUS = "CENSUS (IPUMS)"


@cache
def census() -> tuple[Array, str]:
    """Age and Income of 100,000 people in place of li2012's table, and a description of the substitute."""
    path = _file("census_1m.parquet")
    if path is not None:
        table = pyarrow.parquet.read_table(path, columns=["Age", "Income"]).slice(0, 100_000)
        description = f"substitute for {CENSUS}: ACS PUMS 2024, coded to the same means and variances"
        return np.column_stack([table.column(i).to_numpy() for i in range(2)]).astype(float), description
    rng = np.random.default_rng(41)
    age = 50.06 + np.sqrt(303.03) * rng.uniform(-np.sqrt(3), np.sqrt(3), 100_000)
    income = 16.57 + np.sqrt(219.92) * (rng.gamma(1.25, 1, 100_000) - 1.25) / np.sqrt(1.25)
    return np.column_stack([age, income]), f"substitute for {CENSUS}: synthetic, with the same means and variances"


@cache
def working_adults() -> tuple[dict[str, Array], str]:
    """Salary (50 values) and Occupation (27) of 600,000 people in place of xiao2009's, and what they are."""
    path = _file("census_adult_600k.parquet")
    if path is not None:
        table = pyarrow.parquet.read_table(path, columns=["Salary", "Occupation"])
        values = {"Salary": table.column(0).to_numpy(), "Occupation": table.column(1).to_numpy() - 1}
        return values, "substitute for Adult (IPUMS): ACS PUMS 2024"
    rng = np.random.default_rng(7)
    salary = np.minimum(rng.lognormal(2.4, 0.8, 600_000), 49).astype(np.int64)
    occupation = np.minimum(rng.geometric(0.09, 600_000) - 1, 26)
    return {"Salary": salary, "Occupation": occupation}, "substitute for Adult (IPUMS): synthetic, of a similar shape"


def salaries() -> Array:
    """The salaries of the 600,000 working adults."""
    return working_adults()[0]["Salary"]


@cache
def iris() -> tuple[Array, Array]:
    """Iris: four measurements of 150 flowers, and their species."""
    from sklearn.datasets import load_iris  # noqa: PLC0415 - slow to import; scikit-learn contains the data

    data = load_iris()
    return data.data, data.target


@cache
def cancer() -> tuple[Array, Array]:
    """Breast Cancer Wisconsin (Original): nine attributes of its 683 complete records, and which are malignant."""
    path = _file("breast-cancer-wisconsin.data")
    if path is None:
        fetched = _fetched("breast-w", 1)
        values = fetched.data.to_numpy(float)
        complete = ~np.isnan(values).any(axis=1)
        return values[complete], (fetched.target[complete] == "malignant").to_numpy().astype(np.int64)
    rows = [line.split(",") for line in path.read_text().split() if line and "?" not in line]
    values = np.array(rows, dtype=np.float64)
    return values[:, 1:-1], (values[:, -1] == 4).astype(np.int64)


@cache
def votes() -> tuple[Array, Array]:
    """House votes of 1984 (UCI): 435 x 16 with 1 for yes, 0 for no and -1 for missing; and who is a Republican."""
    path = _file("house-votes-84.data")
    rows = _openml_votes() if path is None else [line.split(",") for line in path.read_text().split()]
    answers = np.array([[{"y": 1, "n": 0}.get(vote, -1) for vote in row[1:]] for row in rows])
    return answers, np.array([row[0] == "republican" for row in rows]).astype(np.int64)


def _openml_votes() -> list[list[str]]:
    fetched = _fetched("vote", 1)
    votes = fetched.data.astype(object).where(fetched.data.notna(), "?")
    return [[str(party), *map(str, row)] for party, row in zip(fetched.target, votes.to_numpy(), strict=True)]
