"""Backups: restored whole in either database, or not at all."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import wards
from tests.conftest import Site

import sfumato as sf
from sfumato.errors import CustodyError, VaultError
from sfumato.ledger.reader import Query


def _without(
    path: Path, out: Path, spoil: Callable[[str, bytes], bytes | None], rename: Callable[[str], str] = str
) -> Path:
    """A backup with some of its files changed, left out or renamed."""
    import io

    with tarfile.open(path) as old, tarfile.open(out, "w") as new:
        for member in old:
            content = old.extractfile(member)
            assert content is not None
            data = spoil(member.name, content.read())
            if data is not None:
                member.size, member.name = len(data), rename(member.name)
                new.addfile(member, io.BytesIO(data))
    return out


def test_a_backup_with_paths_outside_the_store(site: Site, tmp_path: Path) -> None:
    """The files of a forged backup are not written outside the store."""
    vault = site.create()
    vault.add(wards.policy(), wards.table())
    vault.backup(tmp_path / "good.tar")
    for name in ("../../out.txt", str(tmp_path / "out.txt"), "datasets/../../out.txt"):
        forged = _without(
            tmp_path / "good.tar",
            tmp_path / "forged.tar",
            lambda _, data: data,
            lambda member, name=name: f"files/{name}" if "policy-" in member else member,  # type: ignore[misc]
        )
        location, store = site.new()
        with pytest.raises(VaultError):
            sf.Vault.restore(forged, location, store=store, secret=site.secret)
        with pytest.raises(VaultError, match="do not trust it"):
            vault.store.put_text(name, "x")
    assert not list(tmp_path.rglob("out.txt*"))


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_backup_is_restored_in_either_database(
    site: Site, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    vault = site.create()
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 7), 1.0))
    before = vault.release("clinic", "ward", tmp_path / "a.parquet")[0].read_bytes()
    vault.backup(tmp_path / "backup.tar")
    location, store = str(tmp_path / "again"), None
    if target == "postgresql":
        location, store = request.getfixturevalue("postgres").database(), str(tmp_path / "store")
    again = sf.Vault.restore(tmp_path / "backup.tar", location, store=store, secret=site.secret)
    assert again.verify().sound
    assert again.log(Query())[:-1] == vault.log(Query())
    assert (again.log()[-1].action, *again.log()[-1].body) == ("restored", "marks")
    assert again.release("clinic", "ward", tmp_path / "b.parquet")[0].read_bytes() == before
    assert again.recipient("more").number == len(vault.log(Query())) + 2
    with pytest.raises(VaultError, match="already"):
        sf.Vault.restore(tmp_path / "backup.tar", location, store=store, secret=site.secret)


@pytest.mark.parametrize("part", ["ledger.jsonl", ".records", ".parquet", "policy-"])
@pytest.mark.parametrize("how", ["altered", "missing"])
def test_a_damaged_backup_restores_nothing(site: Site, tmp_path: Path, part: str, how: str) -> None:
    vault = site.create()
    vault.add(wards.policy(), wards.table())
    vault.backup(tmp_path / "good.tar")

    def spoil(name: str, data: bytes) -> bytes | None:
        if part not in name:
            return data
        return None if how == "missing" else data[:-1] + bytes([data[-1] ^ 1])

    bad = _without(tmp_path / "good.tar", tmp_path / "bad.tar", spoil)
    location, store = site.new()
    with pytest.raises(VaultError, match="must be a complete and unaltered backup of a vault"):
        sf.Vault.restore(bad, location, store=store, secret=site.secret)
    with pytest.raises(VaultError, match="there is no vault"):
        sf.Vault.open(location)
    with pytest.raises(CustodyError):
        sf.Vault.restore(tmp_path / "good.tar", location, store=store, secret="wrong")
    sf.Vault.restore(tmp_path / "good.tar", location, store=store, secret=site.secret)
    assert sf.Vault.open(location, secret=site.secret).verify().sound


def test_a_backup_overwrites_only_backups(tmp_path: Path) -> None:
    vault = sf.Vault.create(tmp_path / "vault")
    before = (tmp_path / "vault.key").read_bytes()
    for target in (tmp_path / "vault.key", tmp_path / "vault/ledger.sqlite", tmp_path):
        with pytest.raises(VaultError, match="overwrites only an older backup"):
            vault.backup(target)
    assert (tmp_path / "vault.key").read_bytes() == before
    vault.backup(tmp_path / "b.tar")
    vault.recipient("lab")
    vault.backup(tmp_path / "b.tar")
    assert vault.verify().sound


def test_a_file_that_is_not_a_backup(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"no")
    with pytest.raises(VaultError, match="must be a complete and unaltered backup"):
        sf.Vault.restore(tmp_path / "x.tar", tmp_path / "v")
    with pytest.raises(VaultError, match="file that exists"):
        sf.Vault.restore(tmp_path / "y.tar", tmp_path / "v")


@pytest.mark.parametrize(
    "alter",
    [
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines[:-1], lines[-1].replace('"hash":"', '"hash":["').replace('","mac"', '"],"mac"')],
        lambda lines: [*lines[:-1], lines[-1].replace('"mac":', '"more":1,"mac":')],
        lambda lines: [line.replace('"mac":', '"more":1,"mac":') for line in lines],
        lambda lines: [*lines[:-1], '["sfumato_entries",{}]'],
        lambda lines: [*lines, '["sfumato_secrets",{"a":1}]'],
        lambda lines: [*lines, '["sqlite_master",{"name":"x"}]'],
    ],
)
def test_rows_that_no_vault_wrote_are_called_so(site: Site, tmp_path: Path, alter: Any) -> None:
    vault = site.create()
    vault.recipient("clinic")
    vault.backup(tmp_path / "good.tar")
    forged = _without(
        tmp_path / "good.tar",
        tmp_path / "forged.tar",
        lambda name, data: (
            ("\n".join(alter(data.decode().splitlines())) + "\n").encode() if name == "ledger.jsonl" else data
        ),
        lambda member: member,
    )
    location, store = site.new()
    with pytest.raises(VaultError, match="must be a complete and unaltered backup"):
        sf.Vault.restore(forged, location, store=store, secret=site.secret)
