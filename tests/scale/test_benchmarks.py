"""The scaling benchmarks at a small size: they run, and memory does not grow. `make bench` measures times."""

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


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows(scale: Any) -> None:
    """Peak memory of a process from 8,000,000 to 20,000,000 cells, in files as large as those of a large dataset."""
    lines = list(scale.rows((4_000_000, 10_000_000)))
    limit, flat = lines[-2:]
    assert limit.met
    assert flat.ratio < 1.3, flat
    assert all(line.ours > 0 for line in lines)


@pytest.mark.slow
def test_clusters_are_measured_against_threads(scale: Any) -> None:
    [line] = scale.clusters(20_000, sizes=(1,), kinds=("Dask",))
    assert line.name == "80,000 cells, 32 files, Dask, workers: 1"
    assert line.ratio > 0
