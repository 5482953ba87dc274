"""Stores: a file is what its digest says, nothing leads out of the store, and nobody else can read it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests import wards

import sfumato as sf
from sfumato.errors import VaultError
from sfumato.vault.store import (
    FolderStore,
    ObjectStore,
    Store,
    altered_file,
    erased_in,
    file_name,
    files_in,
    open_store,
    replaced_in,
)

DIGEST = hashlib.sha256(b"content").hexdigest()
NAME = f"datasets/ward/1-{DIGEST[:16]}.parquet"


@pytest.fixture(params=["folder", "object"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return FolderStore(tmp_path / "store") if request.param == "folder" else ObjectStore(f"file://{tmp_path}/store")


def _put(store: Store, name: str = "datasets/ward/1-{}.parquet", content: bytes = b"content") -> dict[str, str]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return store.put(name, write)


def test_a_file_is_stored_under_its_digest_and_read_back(store: Store, tmp_path: Path) -> None:
    file = _put(store)
    assert file == {"name": NAME, "sha256": DIGEST} == _put(store)
    with store.fetch(NAME) as path:
        assert path.read_bytes() == b"content"
        assert store.digest_of(path) == DIGEST
    assert store.head(NAME, 3) == b"con"
    other = _put(store, "uploads/one/{}")
    assert store.names() == sorted([NAME, other["name"]])
    assert store.names("datasets/ward") == [NAME]
    assert store.names("datasets/nobody") == []
    assert store.is_intact(file)
    (tmp_path / "store" / NAME).write_bytes(b"altered")
    assert not store.is_intact(file)
    for name in (NAME, other["name"]):
        store.drop(name)
        assert not store.is_intact({"name": name, "sha256": DIGEST})
        with pytest.raises(VaultError, match="must exist, and it is gone"), store.fetch(name):
            pass
    assert store.names() == []


@pytest.mark.parametrize(
    "name",
    [
        "../a",
        "/etc/passwd",
        "datasets/a",
        "other/a/b",
        "datasets/../b",
        "datasets/a/../b",
        "datasets/a/b/c",
        "",
        "a/b/c",
    ],
)
def test_no_name_leads_out_of_the_store(store: Store, tmp_path: Path, name: str) -> None:
    for use in (lambda: _put(store, name), lambda: store.fetch(name).__enter__(), lambda: store.drop(name)):
        with pytest.raises(VaultError, match="must be in the folder of its dataset or upload"):
            use()
    with pytest.raises(VaultError, match="do not trust it"):
        file_name(name)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_only_its_owner_can_read_a_stored_file(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    assert store.scratch() == tmp_path / "store"
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700
    path = tmp_path / "store" / _put(store)["name"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_was_not_finished_is_no_file(store: Store) -> None:
    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.put("datasets/ward/1-{}.parquet", fail)
    assert store.names() == []


def test_the_last_part_of_an_upload_takes_its_folder_along(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    one, two = _put(store, "uploads/one/1-{}"), _put(store, "uploads/one/2-{}")
    store.drop(one["name"])
    assert store.names() == [two["name"]]
    store.drop(two["name"])
    assert not (tmp_path / "uploads" / "one").exists()
    store.drop(_put(store)["name"])
    assert (tmp_path / "datasets" / "ward").is_dir()


def test_what_an_entry_says_of_files_and_scopes() -> None:
    body = {"table": {"name": "a", "sha256": "1"}, "rows": 3, "other": {"name": "b"}, "scopes": ["datasets/a"]}
    assert files_in(body) == {"a": "1"}
    assert erased_in("erased", body) == {"datasets/a"}
    assert erased_in("added", body) == erased_in("erased", {}) == set()
    assert replaced_in("encrypted", {"a": {}, "b": {}}) == {"a", "b"}
    assert replaced_in("added", {"a": {}}) == set()


def test_a_relative_store_is_below_the_folder_of_the_vault(tmp_path: Path) -> None:
    found = [open_store("store", tmp_path), open_store("/store", tmp_path), open_store("store", "postgresql://host/db")]
    assert [one.root for one in found if isinstance(one, FolderStore)] == [
        tmp_path / "store",
        Path("/store"),
        Path("store"),
    ]
    with pytest.raises(VaultError, match="could not be used for datasets/ward/none"):
        ObjectStore(f"file://{tmp_path}").head("datasets/ward/none", 3)
    assert "datasets/ward/none must have its recorded digest" in str(altered_file("datasets/ward/none"))
    assert isinstance(open_store(f"file://{tmp_path}", tmp_path), ObjectStore)
    with pytest.raises(VaultError, match="a URL that fsspec supports"):
        open_store("nowhere://bucket", tmp_path)


def test_a_store_at_a_url(postgres: object, tmp_path: Path) -> None:
    """Tables at a URL that only fsspec supports."""
    vault = sf.Vault.create(postgres.database(), store="memory://tables", secret="some passphrase")  # type: ignore[attr-defined]
    vault.add(wards.policy(), wards.table(), traced=True)
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    path, _ = vault.release("clinic", "ward", tmp_path / "copy.parquet")
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 7), 1.0))
    assert vault.verify().files == 10
    assert vault.verify().sound
    assert vault.trace("ward", path).accused[0].recipients == ("clinic",)
