"""Appending rows to a large dataset against releasing all of it, and a year of daily appends."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import sfumato as sf
from measure import Line, at_most, seconds

ROWS, MORE, DAYS = 10_000_000, 1_000, 365


def _table(start: int, rows: int) -> pa.Table:
    """Records with three related numbers, a skewed one, two codes and a date."""
    draw = np.random.default_rng(start)
    x = draw.normal(size=(rows, 3))
    return pa.table(
        {
            "id": np.arange(start, start + rows),
            "age": np.round(45 + 12 * x[:, 0]),
            "weight": 70 + 9 * x[:, 0] + 8 * x[:, 1],
            "pressure": 120 + 6 * x[:, 1] + 10 * x[:, 2],
            "income": np.round(np.exp(10 + 0.6 * x[:, 2]), 2),
            "sex": np.array(["f", "m"])[draw.integers(0, 2, rows)],
            "ward": np.array(["a", "b", "c", "d", "e"])[draw.integers(0, 5, rows)],
            "day": draw.integers(15_000, 20_000, rows).astype("datetime64[D]"),
        }
    )


def appends() -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _of_many_rows(Path(folder))
        yield _of_a_year(Path(folder))


def _vault(location: Path, rows: int) -> sf.Vault:
    """A vault with a dataset under the policy that `suggest` drafts, and a grant."""
    vault, table = sf.Vault.create(location, secret=sf.Key.from_bytes(bytes(32))), _table(0, rows)
    vault.add(sf.Policy.suggest(table.slice(0, 100_000), dataset="clinic"), table)
    vault.recipient("lab")
    vault.grant("lab", "clinic", "partner")
    return vault


def _of_many_rows(folder: Path) -> Iterator[Line]:
    """The best of two releases and of five appends, in CPU time, since the first uses all cores and the others one."""
    vault = _vault(folder / "large", ROWS)
    whole = [_cost(partial(vault.release, "lab", "clinic", folder / f"{i}.parquet")) for i in range(2)]
    vault.append("clinic", _table(ROWS, MORE))  # compiles
    tables = [_table(ROWS + (2 + i) * MORE, MORE) for i in range(5)]
    one = [_cost(partial(vault.append, "clinic", table)) for table in tables]
    since = [_cost(partial(vault.release, "lab", "clinic", folder / "new.parquet", since=2)) for _ in range(2)]
    name, against = f"append {MORE:,} rows to {ROWS:,}, 8 columns, drafted policy", "release of the whole copy"
    yield at_most(f"{name}, CPU time", (min(one)[0], min(whole)[0]), f"{against}, CPU time", 0.01)
    yield at_most(name, (min(one)[1], min(whole)[1]), against, 0.02)
    yield at_most(f"release the {5 * MORE:,} rows since a version", (min(since)[1], min(whole)[1]), against, 0.05)


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of all threads, and seconds."""
    start = time.process_time()
    took = seconds(work)
    return time.process_time() - start, took


def _of_a_year(folder: Path) -> Line:
    vault = _vault(folder / "year", 100_000)
    for day in range(DAYS):
        vault.append("clinic", _table(1_000_000 + day * MORE, MORE))
    reports = []
    took = seconds(lambda: reports.append(vault.verify()))
    assert reports[0].sound, reports[0].problems
    return Line(f"verify {DAYS} daily appends", took, 60.0, "one minute", "at most 1 times", took <= 60)
