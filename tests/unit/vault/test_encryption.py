"""Encryption at rest: a stolen folder, database, store or backup reveals nothing that the ledger does not say."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlalchemy as sa
from tests import wards
from tests.conftest import Site

import sfumato as sf
from sfumato.errors import CustodyError, TamperedError, VaultError
from sfumato.keys.encrypted_file import Spill
from sfumato.ledger.reader import Query
from sfumato.ledger.tables import DATA_KEYS, METADATA
from sfumato.service import uploads
from sfumato.vault.data_keys import erase
from sfumato.vault.encrypted_store import SUFFIX, is_encrypted
from sfumato.vault.store import FolderStore, files_in

OLD = Path(__file__).parents[2] / "compatibility" / "v0.1"
OLD_LOCK = sf.Key.from_bytes(bytes(range(1, 33)))
PLANTED = 123456.789012345
POLICY = """
dataset = "ward"
[levels]
partner = 0.5
[columns]
patient = "id"
age = { role = "gaussian", clip = [-98765.4321, 223456.789] }
diagnosis = { role = "uniform", domain = ["influenza", "zebra-fever", "never-seen-disease"] }
note = "keep"
"""


def _table(rows: int = 200) -> pa.Table:
    return pa.table(
        {
            "patient": list(range(rows)),
            "age": [PLANTED + i for i in range(rows)],
            "diagnosis": ["zebra-fever", "influenza"] * (rows // 2),
            "note": ["marker-in-a-table"] * rows,
        }
    )


def _secrets(vault: sf.Vault) -> list[bytes]:
    """Values of the table, of the policy and of the scheme, as they would be written."""
    scheme = json.loads(vault.dataset("ward").scheme.dumps())
    numbers = [repr(number).encode() for number in _numbers(scheme["fitted"]) if len(repr(number)) > 8]
    assert numbers
    text = [b"zebra-fever", b"never-seen-disease", b"98765.4321", b"marker-in-a-table", repr(PLANTED).encode()]
    return [*text, struct.pack("<d", PLANTED), *numbers, b"PAR1"]


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)


def _stored(vault: sf.Vault) -> Path:
    assert isinstance(vault.store.files, FolderStore)
    return vault.store.files.root


def _everything(vault: sf.Vault) -> bytes:
    """All bytes of the folder or the store, and all rows of the database."""
    files = b"".join(path.read_bytes() for path in sorted(_stored(vault).rglob("*")) if path.is_file())
    with vault.ledger.database.transaction(writes=False) as connection:
        rows = [str(row) for table in METADATA.sorted_tables for row in connection.execute(sa.select(table))]
    return files + "\n".join(rows).encode()


def test_nothing_at_rest_reveals_the_table_the_policy_or_the_scheme(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    vault.update("ward", wards.changed(_table(), "age", slice(0, 7), 1.0))
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    upload = uploads.create(vault.store, "table.csv")
    with Spill() as part:
        part.writer.write(b"note,age\nmarker-in-a-table,123456.789012345\n" * 10_000)
        uploads.put_part(vault.store, upload, 1, part)
    vault.backup(tmp_path / "backup.tar")
    names = [*vault.store.names("datasets"), *vault.store.names("uploads")]
    assert all(map(is_encrypted, names))
    assert len(names) == 9
    for content in (_everything(vault), (tmp_path / "backup.tar").read_bytes()):
        assert b'"ward"' in content or b"'ward'" in content  # what the ledger says is there
        assert [secret for secret in _secrets(vault) if secret in content] == []


def test_the_table_is_read_as_it_was_and_adding_it_again_changes_nothing(site: Site) -> None:
    vault = site.create()
    entry = vault.add(sf.Policy.loads(POLICY), _table())
    files = {path: path.read_bytes() for path in _stored(vault).rglob(f"*{SUFFIX}")}
    with vault.dataset("ward").source() as source:
        assert pa.Table.from_batches(source.batches()).equals(_table())
    assert vault.add(sf.Policy.loads(POLICY), _table()) == entry
    assert {path: path.read_bytes() for path in _stored(vault).rglob(f"*{SUFFIX}")} == files


def test_a_key_is_created_once(site: Site) -> None:
    keys = site.create().store.keys
    assert keys.find("uploads") is None
    with keys.ledger.writing(keys.master_keys()) as writing:
        key, is_new = keys.created_in(writing, "uploads")
        assert keys.created_in(writing, "uploads") == (key, False)
    assert is_new is True
    assert keys.find("uploads") == keys.get_or_create("uploads") == key
    assert keys.get_or_create("datasets/ward") not in (None, key)


def test_a_locked_vault_says_what_it_needs(site: Site) -> None:
    vault = site.create(secret="correct horse battery")
    vault.add(sf.Policy.loads(POLICY), _table())
    locked = sf.Vault.open(vault.location)
    assert locked.overview()["datasets"] == 1
    with pytest.raises(CustodyError, match="must be unlocked with its passphrase or key"):
        _ = locked.dataset("ward").scheme


def _wrapped(vault: sf.Vault) -> dict[str, str]:
    with vault.ledger.reading() as reading:
        return {row.scope: row.wrapped for row in reading.connection.execute(sa.select(DATA_KEYS))}


def _set(vault: sf.Vault, scope: str, wrapped: str) -> None:
    with vault.ledger.database.transaction(writes=True) as connection:
        connection.execute(DATA_KEYS.update().where(DATA_KEYS.c.scope == scope).values(wrapped=wrapped))


def test_wrapped_keys_cannot_be_altered_or_exchanged(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    changed = wards.changed(_table(), "age", slice(0, 200), 9.0)
    vault.add(sf.Policy.loads(POLICY.replace('"ward"', '"other"')), changed, accept_overlap="a test of the keys")
    before = _wrapped(vault)
    assert set(before) == {"datasets/ward", "datasets/ward/1", "datasets/other", "datasets/other/1"}
    flipped = before["datasets/ward"][:-1] + ("0" if before["datasets/ward"][-1] != "0" else "1")
    for bad in (flipped, before["datasets/other"], before["datasets/ward/1"], "", "no key"):
        _set(vault, "datasets/ward", bad)
        with pytest.raises(TamperedError, match="the key of datasets/ward must be wrapped by this vault"):
            _ = vault.dataset("ward").scheme
        assert "the key of datasets/ward was altered" in vault.verify().problems
    vault.backup(tmp_path / "bad.tar")
    location, store = site.new()
    with pytest.raises(VaultError, match="the key of datasets/ward was altered"):
        sf.Vault.restore(tmp_path / "bad.tar", location, store=store, secret=site.secret)
    _set(vault, "datasets/ward", before["datasets/ward"])
    assert vault.verify().sound


def test_a_new_master_key_wraps_the_data_keys_anew(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    before, [old] = _wrapped(vault), vault.keys().values()
    vault.rekey()
    after = _wrapped(vault)
    assert set(after) == set(before)
    assert not set(after.values()) & set(before.values())
    with vault.dataset("ward").source() as source:
        assert pa.Table.from_batches(source.batches()).equals(_table())
    assert vault.verify().sound
    vault.backup(tmp_path / "backup.tar")
    location, store = site.new()
    again = sf.Vault.restore(tmp_path / "backup.tar", location, store=store, secret=site.secret)
    with again.dataset("ward").source() as source:
        assert pa.Table.from_batches(source.batches()).equals(_table())
    assert old in again.keys().values()


def test_what_was_erased_can_never_be_read_again(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    with vault.ledger.writing(vault.keys()) as writing:
        for scope in ("datasets/ward", "datasets/ward/1"):
            assert erase(writing, scope)
            assert not erase(writing, scope)
    with pytest.raises(CustodyError, match="can no longer be read by anybody"), vault.dataset("ward").source():
        pass
    assert any("the key that encrypts them is gone" in problem for problem in vault.verify().problems)
    vault.backup(tmp_path / "backup.tar")
    assert b"datasets/ward" in (tmp_path / "backup.tar").read_bytes()
    assert b"sfumato_data_keys" not in (tmp_path / "backup.tar").read_bytes()


def test_a_table_is_added_again_after_its_key_was_lost(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.release("clinic", "ward", tmp_path / "1.parquet")
    vault.rekey(lost=True, secret="a fresh passphrase")
    assert (
        "the files of datasets/ward can no longer be read: the key that encrypts them is lost" in vault.verify().notes
    )
    for attempt in (
        lambda: vault.release("clinic", "ward", tmp_path / "2.parquet"),
        lambda: vault.update("ward", _table(100)),
        lambda: vault.grant("clinic", "ward", 0.1),
    ):
        with pytest.raises(CustodyError, match=r"can no longer be read by anybody.*sfumato add"):
            attempt()
    with pytest.raises(VaultError, match="must have the columns, roles and levels"):
        vault.add(sf.Policy.loads(POLICY.replace("0.5", "0.6")), _table())
    entry = vault.add(sf.Policy.loads(POLICY), _table())
    assert (entry.action, entry.body["version"]) == ("added", 2)
    assert vault.add(sf.Policy.loads(POLICY), _table()) == entry
    vault.release("clinic", "ward", tmp_path / "2.parquet")
    exposed = vault.log(Query(kind="release"))[-1].body["exposure"]
    assert exposed == {"draws": {"2": 200}, "error": pytest.approx(1 / 3), "alone": pytest.approx(1 / 2)}
    assert vault.update("ward", wards.changed(_table(), "age", slice(0, 7), 1.0)).body["version"] == 3
    assert vault.overview("ward")["version"] == 3
    assert vault.verify().sound


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
