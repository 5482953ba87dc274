"""Encrypting anew: vaults of earlier versions, new master keys, interruptions, and what is erased meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlalchemy as sa
from tests import wards
from tests.conftest import Site
from tests.schema import ENTRIES, tables_of

import sfumato as sf
from sfumato.errors import VaultError
from sfumato.ledger.reader import Query
from sfumato.ledger.row_cipher import RowCipher
from sfumato.vault.encrypted_store import SUFFIX, EncryptedStore, is_encrypted
from sfumato.vault.messages import sentence
from sfumato.vault.store import FolderStore, files_in

OLD = Path(__file__).parents[2] / "compatibility" / "v0.1"
OLD_LOCK = sf.Key.from_bytes(bytes(range(1, 33)))


def test_a_new_master_key_encrypts_everything_anew(site: Site, tmp_path: Path) -> None:
    """Somebody who has the old master key, and steals the store and the database afterwards, reads nothing of them."""
    vault = site.create()
    first = vault.add(wards.policy(), wards.table())
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 7), 1.0))
    vault.erase("ward", version=1)
    vault.update("ward", wards.table())
    before, [old] = wards.wrapped_keys(vault), vault.keys().values()
    files = {path: path.read_bytes() for path in wards.vault_files(vault).rglob(f"*{SUFFIX}")}
    with tables_of(vault.ledger.database) as connection:
        texts = set(connection.execute(sa.select(ENTRIES.c.body)).scalars())
    vault.rekey()
    after = wards.wrapped_keys(vault)
    ward = vault.store.folder("ward")
    assert set(before) == {f"{ward}@1", f"{ward}/2@1", f"{ward}/3@1"}
    assert set(after) == {f"{ward}@2", f"{ward}/2@2", f"{ward}/3@2"}
    assert not set(wards.vault_files(vault).rglob(f"*{SUFFIX}")) & set(files)
    with tables_of(vault.ledger.database) as connection:
        assert not texts & set(connection.execute(sa.select(ENTRIES.c.body)).scalars())
    cipher = RowCipher({1: old})
    with vault.ledger.reading(vault.keys()) as reading:
        stored = [row._asdict() for row in reading.rows(ENTRIES.name)]
    assert not any(cipher.entry(ENTRIES.name, row).is_readable for row in stored)
    assert vault.log(Query(action="added")) == [first]
    vault.rekey()  # once more: files that were replaced twice
    assert set(wards.wrapped_keys(vault)) == {f"{ward}@3", f"{ward}/2@3", f"{ward}/3@3"}
    assert sentence(vault.log()[-1]) == "Encrypted the 10 files of ward with the current key."
    with vault.dataset("ward").source() as source:
        assert pa.Table.from_batches(source.batches()).equals(wards.table())
    assert vault.verify().sound
    vault.backup(tmp_path / "backup.tar")
    location, store = site.new()
    again = sf.Vault.restore(tmp_path / "backup.tar", location, store=store, secret=site.secret)
    with again.dataset("ward").source() as source:
        assert pa.Table.from_batches(source.batches()).equals(wards.table())
    assert old in again.keys().values()


@pytest.fixture
def old(tmp_path: Path) -> sf.Vault:
    shutil.copytree(OLD / "vault", tmp_path / "vault")
    return sf.Vault.open(tmp_path / "vault", secret=OLD_LOCK)


def test_the_plain_files_of_an_earlier_version_are_encrypted(old: sf.Vault, tmp_path: Path) -> None:
    copy = old.release("clinic", "ward", tmp_path / "before.parquet")[0].read_bytes()
    plain = [name for name in old.store.names("datasets") if not is_encrypted(name)]
    assert plain
    assert "run sfumato encrypt" in old.overview()["not encrypted"]
    assert any("are not encrypted" in note and "sfumato encrypt" in note for note in old.verify().notes)
    entries = old.encrypt()
    assert {entry.action for entry in entries} == {"encrypted"}
    assert sorted(name for entry in entries for name in entry.body) == sorted(plain)
    assert all(map(is_encrypted, old.store.names("datasets")))
    report = old.verify()
    assert report.sound, report.problems
    assert not [note for note in report.notes if "not encrypted" in note]
    assert "not encrypted" not in old.overview()
    assert old.release("clinic", "ward", tmp_path / "after.parquet")[0].read_bytes() == copy
    assert old.encrypt() == []
    later = old.update("ward", pyarrow.parquet.read_table(OLD / "table.parquet"), accept_overlap="they shared records")
    assert later.body["version"] == 3
    old.backup(tmp_path / "backup.tar")
    again = sf.Vault.restore(tmp_path / "backup.tar", tmp_path / "again", secret=OLD_LOCK)
    assert again.verify().sound
    assert b"PAR1" not in (tmp_path / "backup.tar").read_bytes()


def test_an_interrupted_encryption_is_finished_by_repeating_it(old: sf.Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "drop", stop)
        with pytest.raises(KeyboardInterrupt):
            old.encrypt()
    assert old.verify().sound
    old.encrypt()
    assert all(map(is_encrypted, old.store.names("datasets")))
    assert old.verify().sound
    recorded = {name for entry in old.log(Query(kind="storage")) for name in files_in(entry.body)}
    assert recorded <= set(old.store.names("datasets"))


def test_an_interrupted_rotation_is_finished_by_encrypting(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = site.create()
    for name, shift in (("ward", 0.0), ("other", 9.0)):
        table = wards.changed(wards.table(), "age", slice(0, wards.ROWS), shift)
        vault.add(wards.policy(name), table, accept_overlap="a test")
    stored, calls = EncryptedStore.put, []

    def stop(*args: Any) -> dict[str, str]:
        calls.append(args)
        if len(calls) == 8:  # in the middle of the second dataset
            raise KeyboardInterrupt
        return stored(*args)

    with monkeypatch.context() as patch:
        patch.setattr(EncryptedStore, "put", stop)
        with pytest.raises(KeyboardInterrupt):
            vault.rekey()
    assert vault.verify().sound
    assert "files are encrypted with an earlier key: run `sfumato encrypt`" in str(vault.verify().notes)
    assert "run sfumato encrypt" in vault.overview()["encrypted with an earlier key"]
    for name in ("ward", "other"):
        assert vault.dataset(name).scheme
    assert len(vault.encrypt()) == 1
    assert vault.encrypt() == []
    assert "encrypted with an earlier key" not in vault.overview()
    assert {scope.rpartition("@")[2] for scope in wards.wrapped_keys(vault)} == {"2"}
    assert vault.verify().sound


def test_a_version_that_was_stored_under_a_replaced_key_is_not_recorded(site: Site) -> None:
    vault = site.create()
    vault.add(wards.policy(), wards.table())
    changed = wards.changed(wards.table(), "age", slice(0, 7), 1.0)
    rotated: list[int] = []

    def rekey(_: int) -> None:
        if not rotated:
            rotated.append(1)
            sf.Vault.open(vault.location, secret=site.secret).rekey()

    with pytest.raises(VaultError, match="meanwhile"):
        vault.update("ward", changed, progress=rekey)
    assert vault.update("ward", changed).body["version"] == 2
    with vault.dataset("ward").source() as source:
        assert pa.Table.from_batches(source.batches()).equals(changed)
    assert vault.verify().sound


@pytest.mark.parametrize("what", ["dataset", "version"])
def test_what_is_erased_while_it_is_encrypted_anew_does_not_come_back(
    site: Site, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    vault = site.create()
    vault.add(wards.policy(), wards.table())
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 7), 1.0))
    before = vault.dataset("ward").body
    first = vault.log(Query(action="added"))[0].body["source"]
    stored, calls = EncryptedStore.put, []

    def erase_meanwhile(*args: Any) -> dict[str, str]:
        done = stored(*args)
        calls.append(done)
        if len(calls) == 6:
            sf.Vault.open(vault.location, secret=site.secret).erase("ward", version=1 if what == "version" else None)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(EncryptedStore, "put", erase_meanwhile)
        with pytest.raises(VaultError, match=r"changed ward meanwhile|was erased on"):
            vault.rekey()
    assert not [name for name in vault.store.names("datasets") if name.endswith(f".2{SUFFIX}")]
    ward = vault.store.folder("ward")
    left = {f"{ward}@1", f"{ward}/2@1"} if what == "version" else set()
    assert set(wards.wrapped_keys(vault)) == left
    assert not vault.store.is_readable(first)
    assert vault.store.is_readable(before["source"]) == (what == "version")
    assert vault.verify().sound
    vault.encrypt()
    assert {scope.rpartition("@")[2] for scope in wards.wrapped_keys(vault)} <= {"2"}
    assert not vault.store.is_readable(first)
    assert vault.verify().sound
