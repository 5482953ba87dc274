"""Key custody in both databases: secrets that unlock a vault, and the disclosure risk of a new master key."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import wards
from tests.conftest import Site

import sfumato as sf
from sfumato.errors import CustodyError, TamperedError, UnknownSubject, VaultError
from sfumato.ledger.reader import Query
from sfumato.vault.messages import log_line, rekey_cost_text


def test_undecodable_text(vault: sf.Vault, tmp_path: Path) -> None:
    with pytest.raises(VaultError, match="note must be valid text"):
        vault.recipient("x", note="\udcff")
    with pytest.raises(CustodyError, match="printable text of at least 12"):
        sf.Vault.create(tmp_path / "v", secret="\udcff")
    with pytest.raises(CustodyError):
        sf.Vault.open(vault.location, secret="\udcff").recipient("y")


def test_nothing_is_read_without_the_secret_and_a_lost_one_ends_all_but_the_chain(tmp_path: Path) -> None:
    head = sf.Vault.create(tmp_path / "vault").recipient("lab").hash
    (tmp_path / "vault.key").write_text("")
    vault = sf.Vault.open(tmp_path / "vault")
    for attempt in (vault.log, vault.recipients, vault.overview, lambda: vault.recipient("more")):
        with pytest.raises(CustodyError, match="a key file must hold"):
            attempt()
    vault.rekey(lost=True, secret="a fresh passphrase")
    assert vault.recipient("more").generation == 2
    assert [entry.action for entry in vault.log()] == ["unreadable", "unreadable", "rekeyed", "registered"]
    assert log_line(vault.log()[0]).endswith("Cannot be read: its key is lost.")
    assert [one.recipient for one in vault.recipients()] == ["more"]
    assert vault.verify(contains=head).sound
    vault.rekey()
    assert vault.verify(contains=head).sound
    assert [one.recipient for one in vault.recipients()] == ["more"]


def test_the_key_is_stored_nowhere_in_plain_text(site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    master = sf.Key.generate()
    vault = site.create(key=master, secret="correct horse")
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    path, manifest = vault.release("clinic", "ward", tmp_path / "copy.parquet")
    vault.backup(tmp_path / "backup.tar")
    secrets = [master.expose(), master.expose().hex().encode(), b"correct horse"]
    files = [path, tmp_path / "backup.tar"]
    outputs = [repr(vault).encode(), manifest.dumps().encode(), *(file.read_bytes() for file in files)]
    outputs += [file.read_bytes() for file in site.folder.rglob("*") if file.is_file()]
    outputs += [json.dumps([entry.__dict__ for entry in vault.log()]).encode(), caplog.text.encode()]
    assert not [1 for content in outputs for secret in secrets if secret in content]


def test_every_wrong_secret_gets_the_same_message(site: Site) -> None:
    location, store = site.new()
    sf.Vault.create(location, store=store, secret="right enough")
    messages = set()
    wrongs: list[str | sf.Key] = ["wrong", "right enough?", "right enough ", "x" * 10_000, sf.Key.generate()]
    for wrong in wrongs:
        with pytest.raises(CustodyError) as refused:
            sf.Vault.open(location, secret=wrong).recipient("clinic")
        messages.add(str(refused.value))
        assert refused.value.__cause__ is None
    assert len(messages) == 1
    assert sf.Vault.open(location, secret="right enough").recipient("clinic").recipient == "clinic"


def test_a_missing_secret_is_reported_and_not_replaced(site: Site) -> None:
    location, store = site.new()
    sf.Vault.create(location, store=store, secret=site.secret)
    with pytest.raises(CustodyError, match="If it is lost, it cannot be recovered"):
        sf.Vault.open(location).recipient("clinic")
    with pytest.raises(VaultError, match="already"):
        sf.Vault.create(location, store=store, secret=sf.Key.generate())
    assert [entry.action for entry in sf.Vault.open(location, secret=site.secret).log()] == ["created"]


@pytest.mark.parametrize("how", ["key", "file", "passphrase"])
def test_secrets_come_from_the_environment(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "key":
        monkeypatch.setenv("SFUMATO_KEY", os.urandom(32).hex())
    elif how == "file":
        sf.Key.generate().save(tmp_path / "k")
        monkeypatch.setenv("SFUMATO_KEY_FILE", str(tmp_path / "k"))
    else:
        monkeypatch.setenv("SFUMATO_PASSPHRASE", "a long passphrase")
    location, store = site.new()
    sf.Vault.create(location, store=store)
    sf.Vault.open(location).recipient("clinic")
    monkeypatch.delenv({"key": "SFUMATO_KEY", "file": "SFUMATO_KEY_FILE", "passphrase": "SFUMATO_PASSPHRASE"}[how])
    with pytest.raises(CustodyError):
        sf.Vault.open(location).recipient("clinic")
    if how == "key":
        monkeypatch.setenv("SFUMATO_KEY", "zz")
        with pytest.raises(CustodyError, match="64 hexadecimal digits") as refused:
            sf.Vault.open(location).recipient("lab")
        assert "zz" not in str(refused.value)


def test_a_new_secret_replaces_the_old_one(vault: sf.Vault, site: Site, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    before = vault.release("clinic", "ward", tmp_path / "a.parquet")[0].read_bytes()
    vault.relock("another secret")
    with pytest.raises(CustodyError):
        sf.Vault.open(vault.location, secret=site.secret).verify()
    again = sf.Vault.open(vault.location, secret="another secret")
    assert again.verify().sound
    assert again.release("clinic", "ward", tmp_path / "b.parquet")[0].read_bytes() == before


def test_a_lost_secret_ends_everything_but_the_chain(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    first = sf.read_copy(vault.release("clinic", "ward", tmp_path / "1.parquet")[0])
    assert vault.rekey_cost(lost=True) == []
    assert "who holds which copy, you have to know" in rekey_cost_text([], lost=True).lower()
    with pytest.raises(CustodyError, match="new passphrase or key"):
        vault.rekey(lost=True)
    vault.rekey(lost=True, secret="a fresh passphrase")
    with pytest.raises(UnknownSubject):
        vault.release("clinic", "ward", tmp_path / "2.parquet")
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    second = sf.read_copy(vault.release("clinic", "ward", tmp_path / "2.parquet")[0])
    truth = wards.table()["age"].to_numpy()
    noise = [copy.sort_by("id")["age"].to_numpy() - truth for copy in (first, second)]
    assert abs(np.corrcoef(noise)[0, 1]) < 0.4  # 300 independent rows: beyond 6.9 standard errors
    report = vault.verify()
    assert report.sound
    assert "the key of generation 1 is lost: its entries cannot be read or authenticated" in report.notes


def test_the_stated_risk_of_a_new_master_key_is_right(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    first = sf.read_copy(vault.release("clinic", "ward", tmp_path / "1.parquet")[0])
    [cost] = vault.rekey_cost()
    assert (cost["residual error"], cost["residual error after"]) == pytest.approx((1 / 2, 1 / 3))
    assert (cost["draws"], cost["draws after"]) == (1, 2)
    vault.rekey()
    second = sf.read_copy(vault.release("clinic", "ward", tmp_path / "2.parquet")[0])
    assert sf.Manifest.of(first).key != sf.Manifest.of(second).key
    truth = wards.table()["age"].to_numpy()
    noise = [copy.sort_by("id")["age"].to_numpy() - truth for copy in (first, second)]
    assert abs(np.corrcoef(noise)[0, 1]) < 0.4  # 300 independent rows: beyond 6.9 standard errors
    exposure = vault.log(Query(kind="release"))[-1].body["exposure"]
    assert exposure == {"draws": {"2": 300}, "error": pytest.approx(1 / 3), "alone": pytest.approx(0.5)}
    report = vault.verify()
    assert report.sound
    assert [note for note in report.notes if "lost" in note or "earlier key" in note] == []


def test_a_key_that_was_recorded_as_lost_stays_so(vault: sf.Vault, site: Site) -> None:
    """Even if the secret is the same as before, so that it still unlocks the old key."""
    vault.rekey(lost=True, secret=site.secret)
    assert list(vault.keys()) == [2]
    vault.recipient("clinic")
    assert [one.recipient for one in vault.recipients()] == ["clinic"]
    assert vault.verify().sound


def test_a_key_is_lost_only_if_the_vault_says_so(vault: sf.Vault) -> None:
    """Entries of a generation whose key is merely not at hand are not taken on trust."""
    vault.rekey()
    newest = {2: vault.keys()[2]}
    with vault.ledger.reading(newest) as reading, pytest.raises(TamperedError, match="its key is unknown"):
        reading.entries(Query())


def test_a_vault_can_use_the_key_of_earlier_copies(site: Site, tmp_path: Path) -> None:
    master = sf.Key.generate()
    scheme = wards.policy().fit(wards.table())
    vault = site.create(key=master)
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "public")
    _, manifest = vault.release("clinic", "ward", tmp_path / "copy.parquet")
    assert manifest.digest == sf.Manifest.of(scheme.release(wards.table(), "public", master)).digest


def test_creating_a_vault_twice_creates_no_second_key(tmp_path: Path) -> None:
    sf.Vault.create(tmp_path / "vault", secret="mine and mine only")
    with pytest.raises(VaultError, match="already"):
        sf.Vault.create(tmp_path / "vault")
    assert not (tmp_path / "vault.key").exists()


def test_an_outdated_key_file_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sf.Vault.create(tmp_path / "vault").relock("mine and mine only")
    assert (tmp_path / "vault.key").exists()
    monkeypatch.setenv("SFUMATO_PASSPHRASE", "mine and mine only")
    monkeypatch.setenv("SFUMATO_KEY", "00" * 32)
    assert sf.Vault.open(tmp_path / "vault").verify().sound


def test_a_master_key_that_is_rotated_during_a_release(vault: sf.Vault, site: Site, tmp_path: Path) -> None:
    """A copy that was made with the old key is not released."""
    vault.grant("clinic", "ward", "partner")

    def rekey(_: int) -> None:
        sf.Vault.open(vault.location, secret=site.secret).rekey()

    with pytest.raises(VaultError, match="master key was rotated meanwhile"):
        vault.release("clinic", "ward", tmp_path / "copy.parquet", progress=rekey)
    assert list(tmp_path.glob("copy*")) == []
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    assert vault.verify().sound


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("relock", "rekey"), ("rekey", "lost"), ("lost", "relock")),
        *(
            pytest.param(one, other, marks=pytest.mark.slow)
            for one, other in [
                *(("relock", "relock"), ("rekey", "rekey"), ("lost", "lost")),
                *(("rekey", "relock"), ("lost", "rekey"), ("relock", "lost")),
            ]
        ),
    ],
)
def test_two_concurrent_changes_of_the_secret(
    vault: sf.Vault, site: Site, monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    """The later one is refused, and the earlier one takes effect."""
    changes: dict[str, Callable[[sf.Vault, str], object]] = {
        "relock": lambda which, secret: which.relock(secret),
        "rekey": lambda which, secret: which.rekey(secret=secret),
        "lost": lambda which, secret: which.rekey(secret=secret, lost=True),
    }
    earlier, later = (sf.Vault.open(vault.location, secret=site.secret) for _ in range(2))
    writing = later.ledger.writing

    def meanwhile(*args: Any, **options: Any) -> Any:
        changes[first](earlier, "earlier secret")
        return writing(*args, **options)

    monkeypatch.setattr(later.ledger, "writing", meanwhile)
    with pytest.raises(VaultError, match="meanwhile"):
        changes[second](later, "a later secret")
    assert sf.Vault.open(vault.location, secret="earlier secret").verify().sound
    with pytest.raises(CustodyError):
        sf.Vault.open(vault.location, secret="a later secret").verify()


def test_by_default_the_key_file_is_beside_the_folder(tmp_path: Path) -> None:
    sf.Vault.create(tmp_path / "vault").recipient("clinic")
    assert (tmp_path / "vault.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "vault").stat().st_mode & 0o777 == 0o700
    assert [e.action for e in sf.Vault.open(tmp_path / "vault").log()] == ["created", "registered"]
