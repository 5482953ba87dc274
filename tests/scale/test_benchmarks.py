"""The benchmarks of scale at toy size: that they run, and that memory stays flat. Times are judged by `make bench`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import scale

    yield scale
    for name in ("scale", "lake", "measure"):
        sys.modules.pop(name, None)


def test_memory_stays_flat_as_rows_grow(scale: Any) -> None:
    """Of a whole process, from 400,000 cells to 8,000,000 in files of as many rows as a large lake's: under 1 GiB."""
    lines = list(scale.rows((200_000, 4_000_000)))
    limit, flat = lines[-2:]
    assert limit.met
    assert flat.ratio < 1.5, flat
    assert all(line.ours > 0 for line in lines)


def test_clusters_are_measured_against_threads(scale: Any) -> None:
    [line] = scale.clusters(20_000, sizes=(1,), kinds=("Dask",))
    assert line.what == "80,000 cells, 32 files, Dask, workers: 1"
    assert line.ratio > 0
