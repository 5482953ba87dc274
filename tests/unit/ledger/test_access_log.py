"""The access log: what was read is recorded, and no record can be changed, removed or added without the key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests import wards
from tests.conftest import Site
from tests.schema import ACCESSES, VAULT, tables_of

import sfumato as sf
from sfumato.errors import GrantError, TamperedError, VaultError
from sfumato.ledger.ledger import Origin
from sfumato.ledger.reader import Query
from sfumato.vault import preview
from sfumato.vault.messages import sentence


@pytest.fixture
def vault(site: Site, tmp_path: Path) -> sf.Vault:
    vault = site.create()
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    for _ in range(3):
        vault.release("clinic", "ward", tmp_path / "copy.parquet")
    return vault


def _change(vault: sf.Vault, *statements: sa.Executable) -> None:
    with tables_of(vault.ledger.database) as connection:
        for statement in statements:
            connection.execute(statement)


def test_every_access_is_recorded_with_who_and_from_where(vault: sf.Vault, tmp_path: Path) -> None:
    remote = vault.acting_as("recipient clinic", Origin("token 0123456789ab", "192.0.2.7"))
    remote.release("clinic", "ward", tmp_path / "copy.parquet")
    remote.audit("ward", attacks=["udr"], rows=100)
    remote.trace("ward", tmp_path / "copy.parquet")
    preview.preview(remote, "ward", 0.5)
    preview.collusion(remote, "ward", ["clinic"])
    found = vault.accesses()
    assert [one.action for one in found] == ["delivered"] * 4 + ["audited", "traced", "previewed", "previewed"]
    assert [one.number for one in found] == list(range(1, 9))
    assert {one.actor for one in found[3:]} == {"token 0123456789ab"}
    assert {one.body["address"] for one in found[3:]} == {"192.0.2.7"}
    assert sentence(found[3]) == ("Delivered ward version 1 at fidelity 0.5 to clinic as file, from 192.0.2.7.")
    assert sentence(found[5]).startswith("Traced a file to copies of ward: ")
    assert not [one for one in found if "not written by a vault" in sentence(one)]
    assert len(vault.accesses(Query(recipient="clinic"))) == 4
    assert len(vault.log(Query(action="released"))) == 1  # the ledger itself does not grow with repeated deliveries
    assert vault.verify().accesses == 8


@pytest.mark.parametrize("column", ["at", "actor", "action", "recipient", "body", "generation", "hash", "mac"])
def test_an_edited_record_is_found(vault: sf.Vault, column: str) -> None:
    value = {"generation": 2, "body": "{}"}.get(column, "0" * 20)
    _change(vault, ACCESSES.update().where(ACCESSES.c.number == 2).values({column: value}))
    assert vault.verify().problems == ["record 2 of the access log was edited, moved or removed"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_removed_record_is_found(vault: sf.Vault, number: int) -> None:
    _change(vault, ACCESSES.delete().where(ACCESSES.c.number == number))
    assert not vault.verify().sound


def test_a_shortened_log_is_found_and_not_continued(vault: sf.Vault, tmp_path: Path) -> None:
    """Somebody without the key cannot make the head agree with a log that lacks its last record."""
    [second] = vault.accesses(Query(before=3, last=1))
    _change(
        vault,
        ACCESSES.delete().where(ACCESSES.c.number == 3),
        VAULT.update().values(accesses=2, access_head=second.hash),
    )
    assert "the head of the ledger was not sealed by this vault" in vault.verify().problems
    with pytest.raises(TamperedError, match="seal"):
        vault.release("clinic", "ward", tmp_path / "copy.parquet")


def test_an_earlier_state_is_refused_by_a_process_that_saw_a_later_one(vault: sf.Vault, tmp_path: Path) -> None:
    with tables_of(vault.ledger.database) as connection:
        old = dict(connection.execute(sa.select(VAULT)).one()._mapping)
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    vault.grants()  # it sees the fourth record
    _change(vault, ACCESSES.delete().where(ACCESSES.c.number == 4), VAULT.update().values(**old))
    assert vault.verify().sound  # it is a state that the vault had
    with pytest.raises(TamperedError, match="older state"):
        vault.release("clinic", "ward", tmp_path / "copy.parquet")


def test_old_records_are_erased_and_the_rest_is_still_authentic(site: Site, tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    vault = site.create(clock=lambda: now[0])
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    for _ in range(5):
        vault.release("clinic", "ward", tmp_path / "copy.parquet")
        now[0] += timedelta(days=1)
    assert vault.erase_accesses("2026-01-01") is None
    entry = vault.erase_accesses("2026-01-04")
    assert entry is not None
    assert sentence(entry) == "Erased the access log before 2026-01-04."
    assert [one.number for one in vault.accesses()] == [4, 5]
    assert (vault.verify().accesses, vault.verify().problems) == (2, [])
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    vault.erase_accesses("2030-01-01")
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    assert [one.number for one in vault.accesses()] == [7]
    backup, (location, store) = tmp_path / "backup.tar", site.new()
    vault.backup(backup)
    again = sf.Vault.restore(backup, location, secret=site.secret, store=store)
    assert (again.verify().accesses, again.verify().problems) == (1, [])
    _change(vault, ACCESSES.delete())
    assert not vault.verify().sound


def test_a_recent_record_that_is_dated_back_is_not_erased_as_an_old_one(vault: sf.Vault) -> None:
    """Else somebody with write access to the database could have the owner erase what shows the access."""
    for statement in (
        ACCESSES.update().where(ACCESSES.c.number == 3).values(at="2020-01-01T00:00:00.000000+00:00"),
        ACCESSES.update().where(ACCESSES.c.number == 3).values(mac="0" * 64),
    ):
        _change(vault, statement)
        with pytest.raises(TamperedError, match="record 3 of the access log"):
            vault.erase_accesses("2021-01-01")
        assert len(vault.accesses()) == 3


def test_a_refused_release_is_not_called_delivered(
    vault: sf.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.csv").write_text("mine")
    vault.grant("clinic", "ward", "internal")
    vault.revoke("clinic", "ward")
    for path in ("mine.csv", "other.parquet"):
        with pytest.raises(VaultError):
            vault.release("clinic", "ward", tmp_path / path)
    vault.grant("clinic", "ward", "partner")
    monkeypatch.setattr("sfumato.vault.releases.write_copy", _refuse)
    with pytest.raises(GrantError, match="refused by the gate"):
        vault.release("clinic", "ward", tmp_path / "other.parquet")
    assert len(vault.accesses()) == 3


def _refuse(*_: object, **__: object) -> None:
    raise GrantError("refused by the gate")
