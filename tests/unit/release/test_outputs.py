"""Where copies are written: files, databases and tables of Delta Lake, from a vault too; whole or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import ManifestError, ReleaseError, VaultError
from sfumato.release import outputs
from sfumato.release.files import read_copy, release_file
from sfumato.release.manifest import Manifest
from sfumato.release.scheme import TableScheme

KEY = sf.Key.from_bytes(bytes(range(32)))

POLICY = """
dataset = "t"
[levels]
a = 0.7
b = 0.4
[columns]
id = "id"
x = "gaussian"
small = "keep"
seen = "keep"
ward = { role = "uniform", domain = ["a", "b"] }
"""


def _table(rows: int = 500) -> pa.Table:
    rng = np.random.default_rng(5)
    seen = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * rows, pa.timestamp("ms", "UTC"))
    return pa.table(
        {
            "id": np.arange(rows),
            "x": rng.normal(size=rows),
            "small": pa.array(rng.integers(0, 250, rows), pa.uint8()),
            "seen": seen,
            "ward": pa.array(np.array(["a", "b"])[rng.integers(0, 2, rows)]),
        }
    )


@pytest.fixture
def scheme() -> TableScheme:
    """The scheme of the table."""
    return sf.Policy.loads(POLICY).fit(_table())


@pytest.fixture
def vault(tmp_path: Path) -> sf.Vault:
    """A vault with the table, and two recipients."""
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(sf.Policy.loads(POLICY), _table())
    for name, level in (("near", "a"), ("far", "b")):
        vault.recipient(name)
        vault.grant(name, "t", level)
    return vault


def _outputs(folder: Path) -> dict[str, str]:
    return {
        "file": str(folder / "copy.parquet"),
        "delta": str(folder / "copy.delta"),
        "sqlite": f"sqlite:///{folder}/copies.db?table=copy",
        "duckdb": f"duckdb:///{folder}/copies.duckdb?table=copy",
    }


@pytest.mark.parametrize("kind", ["file", "delta", "sqlite", "duckdb"])
def test_a_vault_releases_to_any_output(vault: sf.Vault, tmp_path: Path, kind: str) -> None:
    """The same rows wherever they are, verified by their manifest; recorded once; nobody else's copy is replaced."""
    out = _outputs(tmp_path)[kind]
    path, manifest = vault.release("far", "t", out)
    assert str(path) == out
    reference = read_copy(vault.release("far", "t", tmp_path / "reference.parquet")[0])
    found = Manifest.of(out)
    assert found == manifest
    found.verify(out)
    assert read_copy(out).equals(reference)
    assert [entry.recipient for entry in vault.log() if entry.action == "released"] == ["far"]
    vault.release("far", "t", out)  # again: the same
    assert read_copy(out).equals(reference)
    with pytest.raises(VaultError, match="only an earlier copy of t for near"):
        vault.release("near", "t", out)
    assert Manifest.of(out).recipient == "far"


def test_a_table_of_delta_lake_has_the_copies_that_were_committed(scheme: TableScheme, tmp_path: Path) -> None:
    """Each release is a version with its manifest; others read it too, and earlier versions remain."""
    from deltalake import DeltaTable

    folder = tmp_path / "copy.delta"
    first = release_file(scheme, _table(), folder, "a", KEY)
    second = release_file(scheme, _table(), folder, "b", KEY)
    assert [Manifest.of(f"{folder}?version={n}").fidelity for n in (0, 1)] == [first.fidelity, second.fidelity]
    first.verify(f"{folder}?version=0")
    second.verify(folder)
    read = DeltaTable(folder).to_pyarrow_table()
    assert read.num_rows == 500
    assert read.schema.field("small").type == pa.int16()  # there are no unsigned numbers
    assert read_copy(folder).schema.field("small").type == pa.uint8()


def test_a_copy_that_fails_leaves_delta_lake_as_it_was(
    scheme: TableScheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed commit leaves neither a version nor a file."""
    folder = tmp_path / "copy.delta"
    before = release_file(scheme, _table(), folder, "a", KEY)
    files = sorted(folder.rglob("*"))

    def fail(*_: object) -> None:
        raise ReleaseError("the store is full")

    monkeypatch.setattr(outputs, "commit_file", fail)
    with pytest.raises(ReleaseError, match="full"):
        release_file(scheme, _table(), folder, "b", KEY)
    assert sorted(folder.rglob("*")) == files
    assert Manifest.of(folder) == before


def test_types_that_delta_lake_lacks_are_refused(tmp_path: Path) -> None:
    """A time of day has no type there, and a nanosecond no room; the sentence names the column."""
    table = _table().set_column(3, "seen", pa.array([7] * 500, pa.time64("us")))
    scheme = sf.Policy.loads(POLICY).fit(table)
    with pytest.raises(ReleaseError, match="no type for 'seen'"):
        release_file(scheme, table, tmp_path / "copy.delta", "a", KEY)
    table = _table().set_column(3, "seen", pa.array([7] * 500, pa.timestamp("ns")))
    scheme = sf.Policy.loads(POLICY).fit(table)
    with pytest.raises(ReleaseError, match="microsecond"):
        release_file(scheme, table, tmp_path / "copy.delta", "a", KEY)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_table_of_a_database_that_is_no_copy_is_not_replaced(scheme: TableScheme, tmp_path: Path) -> None:
    """The original in the same database must not be overwritten by its copy."""
    import duckdb

    with duckdb.connect(str(tmp_path / "copies.duckdb")) as database:
        database.execute("create table copy as select 1 as one")
    out = _outputs(tmp_path)["duckdb"]
    with pytest.raises(ReleaseError, match="replaces only a copy"):
        release_file(scheme, _table(), out, "a", KEY)
    with duckdb.connect(str(tmp_path / "copies.duckdb")) as database:
        assert database.execute("select * from copy").fetchall() == [(1,)]
        database.execute("drop table copy")
    release_file(scheme, _table(), out, "a", KEY)
    with duckdb.connect(str(tmp_path / "copies.duckdb")) as database:  # the manifest of the copy is still there
        database.execute("drop table copy; create table copy as select 2 as two")
    with pytest.raises(ReleaseError, match="replaces only a copy"):
        release_file(scheme, _table(), out, "a", KEY)


def test_a_table_of_delta_lake_that_is_no_copy_is_not_replaced(scheme: TableScheme, tmp_path: Path) -> None:
    """Neither the source itself nor another table: its history would stay readable in the folder of the copy."""
    from deltalake import DeltaTable, write_deltalake

    source = tmp_path / "original.delta"
    write_deltalake(source, _table().drop_columns(["small"]))
    for target in (source, f"{tmp_path}/./original.delta"):
        with pytest.raises(ReleaseError, match="replaces only a copy"):
            release_file(scheme, _table(), target, "a", KEY)
    assert DeltaTable(source).version() == 0


def test_a_copy_is_known_after_maintenance(scheme: TableScheme, tmp_path: Path) -> None:
    """A compacted table has a version without a manifest of its own."""
    from deltalake import DeltaTable

    folder = tmp_path / "copy.delta"
    manifest = release_file(scheme, _table(), folder, "a", KEY)
    DeltaTable(folder).alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"})
    assert DeltaTable(folder).version() == 1
    assert Manifest.of(folder) == manifest
    manifest.verify(folder)
    release_file(scheme, _table(), folder, "b", KEY)


def test_a_version_that_somebody_else_wrote_is_no_copy(scheme: TableScheme, tmp_path: Path) -> None:
    """The manifest of an earlier version is not that of what was written over it."""
    from deltalake import write_deltalake

    folder = tmp_path / "copy.delta"
    release_file(scheme, _table(), folder, "a", KEY)
    write_deltalake(folder, _table(9).drop_columns(["small"]), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(ManifestError, match="in its commit"):
        Manifest.of(folder)
    with pytest.raises(ReleaseError, match="replaces only a copy"):
        release_file(scheme, _table(), folder, "a", KEY)


def test_a_file_that_is_no_copy_is_not_replaced(scheme: TableScheme, tmp_path: Path) -> None:
    """Neither another file, nor one of the source's folder."""
    pq.write_table(_table(20), tmp_path / "mine.parquet")
    with pytest.raises(ReleaseError, match="replaces only a copy"):
        release_file(scheme, _table(), tmp_path / "mine.parquet", "a", KEY)
    (tmp_path / "folder").mkdir()
    pq.write_table(_table(), tmp_path / "folder" / "part.parquet")
    with pytest.raises(ReleaseError, match="into its source"):
        release_file(scheme, tmp_path / "folder", tmp_path / "folder" / "copy.parquet", "a", KEY)
    assert pq.read_table(tmp_path / "mine.parquet").num_rows == 20
