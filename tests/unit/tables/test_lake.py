"""Tables of Delta Lake and Iceberg: what they hold now, or at a version, and not what they removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import PolicyError, SourceError
from sfumato.tables.lake import is_lake
from sfumato.tables.source import Source

KEY = sf.Key.from_bytes(bytes(range(32)))

POLICY = """
dataset = "t"
[levels]
a = 0.5
[columns]
id = "id"
x = "gaussian"
ward = { role = "uniform", domain = ["a", "b"] }
"""


def _table(start: int = 0, rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(start)
    ward = np.array(["a", "b"])[rng.integers(0, 2, rows)]
    return pa.table({"id": np.arange(start, start + rows), "x": rng.normal(size=rows), "ward": ward})


def _rows(table: Any) -> pa.Table:
    source = Source.of(table)
    assert source.rows is not None
    found = pa.Table.from_batches(source.batches(), schema=source.schema)
    assert found.num_rows == source.rows
    return found.sort_by("id")


@pytest.fixture
def delta(tmp_path: Path) -> str:
    """Version 0 has 300 rows, version 1 has 100 more, and version 2 lost 20 of the first."""
    from deltalake import DeltaTable, write_deltalake

    folder = str(tmp_path / "delta")
    write_deltalake(folder, _table(), partition_by=["ward"])
    write_deltalake(folder, _table(1000, 100), mode="append")
    DeltaTable(folder).delete("id < 20")
    return folder


@pytest.fixture
def iceberg(tmp_path: Path) -> tuple[str, list[int]]:
    """The same in Iceberg, and its snapshots."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", schema=_table().schema)
    made.append(_table())
    made.append(_table(1000, 100))
    snapshots = [one.snapshot_id for one in made.snapshots()]
    made.delete("id < 20")
    catalog.engine.dispose()
    return made.location().removeprefix("file://"), snapshots


def _expected(version: int) -> pa.Table:
    whole = pa.concat_tables([_table(), _table(1000, 100)][: 1 + (version > 0)])
    return whole.filter(pc.greater_equal(whole["id"], 20)) if version == 2 else whole


def _same(found: pa.Table, expected: pa.Table) -> bool:
    return bool(found.select(expected.column_names).cast(expected.schema).equals(expected.sort_by("id")))


def test_delta_is_read_at_a_version(delta: str) -> None:
    assert is_lake(delta)
    assert _same(_rows(delta), _expected(2))
    for version in range(3):
        assert _same(_rows(f"{delta}?version={version}"), _expected(version))
    with pytest.raises(SourceError, match="could not be read"):
        Source.of(f"{delta}?version=9")


@pytest.mark.filterwarnings("ignore")  # of pyiceberg's own
def test_iceberg_is_read_at_a_snapshot(iceberg: tuple[str, list[int]]) -> None:
    folder, snapshots = iceberg
    assert is_lake(folder)
    assert _same(_rows(folder), _expected(2))
    for version, snapshot in enumerate(snapshots[:2]):
        assert _same(_rows(f"{folder}?version={snapshot}"), _expected(version))
    with pytest.raises(SourceError, match="one of its snapshots"):
        Source.of(f"{folder}?version=9")


def test_a_copy_of_a_lake(delta: str, tmp_path: Path) -> None:
    """It is that of its rows, whatever files they are in; and records must have ids."""
    policy = sf.Policy.loads(POLICY)
    scheme = policy.fit(delta)
    found = scheme.release(delta, "a", KEY).sort_by("id")
    assert found.select(["id", "x", "ward"]).equals(
        scheme.release(_expected(2), "a", KEY).sort_by("id").select(["id", "x", "ward"])
    )
    with pytest.raises(PolicyError, match="a database or a lake have no order"):
        sf.Policy.loads(POLICY.replace('id = "id"', 'id = "keep"')).fit(delta)
    (tmp_path / "policy.toml").write_text(POLICY)
    KEY.save(tmp_path / "key")
    options = ["--policy", str(tmp_path / "policy.toml"), "--key-file", str(tmp_path / "key"), "--level", "a"]
    done = CliRunner().invoke(main, ["release", delta, str(tmp_path / "copy.parquet"), *options])
    assert done.exit_code == 0, done.output
    assert sf.read_copy(tmp_path / "copy.parquet").num_rows == 380


def test_a_broken_lake_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    with pytest.raises(SourceError, match="could not be read"):
        Source.of(tmp_path / "t")
