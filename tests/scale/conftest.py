"""Small parts: a Parquet file of a test is shared out as a large one would be."""

from __future__ import annotations

import pytest

from sfumato.tables import partitioned


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned, "_ROWS_PER_PART", 700)
