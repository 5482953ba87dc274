"""Erasure: content is gone for everybody, the ledger says that it was there, and what was given still counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from tests import wards
from tests.conftest import Site
from tests.schema import ANSWERS, DATA_KEYS, SURVEYS, tables_of

import sfumato as sf
from sfumato.errors import SurveyError, UnknownSubject, VaultError
from sfumato.ledger.reader import Query
from sfumato.survey.rows import Submission
from sfumato.survey.surveys import Surveys
from sfumato.vault.datasets import Dataset
from sfumato.vault.messages import sentence

SURVEY = 'title = "t"\nconsent = "c"\ndeadline = "2090-01-01"\n[questions.q]\noptions = ["a", "b"]\n'


@pytest.fixture
def vault(site: Site, tmp_path: Path) -> sf.Vault:
    """Two versions, both released to one recipient; a second one has received nothing."""
    vault = site.create()
    vault.add(wards.policy(), wards.table())
    for name in ("clinic", "insurer"):
        vault.recipient(name, note="a note")
        vault.grant(name, "ward", "partner")
    vault.release("clinic", "ward", tmp_path / "one.parquet")
    vault.update("ward", wards.table().slice(1))
    vault.release("clinic", "ward", tmp_path / "two.parquet")
    return vault


def _keys(vault: sf.Vault) -> dict[str, str]:
    with tables_of(vault.ledger.database) as connection:
        return dict(connection.execute(sa.select(DATA_KEYS.c.scope, DATA_KEYS.c.wrapped)).all())


def _scope(vault: sf.Vault, version: int | None = None) -> str:
    folder = vault.store.folder("ward")
    return f"{folder}@1" if version is None else f"{folder}/{version}@1"


def _token(vault: sf.Vault, name: str) -> str:
    with vault.ledger.reading(vault.keys()) as reading:
        return reading.cipher.token(name)


def _held(vault: sf.Vault) -> list[str]:
    return [row["still held"] for row in vault.overview()["held"]]


def test_an_erased_dataset_cannot_be_read_by_anybody(vault: sf.Vault, tmp_path: Path) -> None:
    before = vault.dataset("ward")
    vault.add(wards.policy("other"), wards.table(seed=4), accept_overlap="other people with the same numbers")
    folder = vault.store.folder("ward")
    names = vault.store.names(folder)
    stolen = {name: path.read_bytes() for name in names for path in [_path(vault, name)]}
    entry = vault.erase("ward")
    assert entry.action == "erased"  # as it is stored
    assert sentence(entry) == "Erased the dataset ward: nobody can read its content any more."
    assert vault.store.names(folder) == []
    assert not any(scope.startswith(folder) for scope in _keys(vault))
    assert vault.dataset("other").scheme  # which was not erased
    for name, content in stolen.items():  # a copy of the files that somebody kept is of no use
        _path(vault, name).write_bytes(content)
    with pytest.raises(UnknownSubject, match=r"what is asked for was erased on \d{4}-\d\d-\d\d"):
        Dataset("ward", before.body, vault.store).scheme  # noqa: B018
    with pytest.raises(UnknownSubject, match="was erased on"):
        vault.release("clinic", "ward", tmp_path / "three.parquet")
    assert vault.grants() == []
    assert not [what for what in _held(vault) if "ward" in what]
    with pytest.raises(VaultError, match="choose another one"):
        vault.add(wards.policy(), wards.table())
    vault.erase("ward")  # again: it deletes what came back
    assert vault.store.names(folder) == []
    assert vault.verify().sound


def _path(vault: sf.Vault, name: str) -> Path:
    return vault.store.files.root / name  # type: ignore[attr-defined,no-any-return]


def test_an_erased_version_is_gone_and_its_copies_still_count(vault: sf.Vault, tmp_path: Path) -> None:
    assert "ward version 1" in _held(vault)
    entry = vault.erase("ward", version=1)
    assert sentence(entry) == "Erased version 1 of ward: nobody can read it any more."
    assert vault.erase("ward", version=1) == entry
    assert "ward version 1" not in _held(vault)
    assert "ward version 2" in _held(vault)
    assert {scope for scope in _keys(vault) if scope.startswith("datasets")} == {_scope(vault), _scope(vault, 2)}
    report = vault.verify()
    assert (report.sound, report.problems) == (True, [])
    # the version after it has other records: whether they were in the erased one is not known, so they count as if
    vault.update("ward", wards.table().slice(2))
    vault.release("clinic", "ward", tmp_path / "three.parquet")
    exposure = vault.log()[-1].body["exposure"]
    assert exposure["draws"] == {"2": wards.ROWS - 1}
    assert exposure["error"] < exposure["alone"]
    for number in (0, 3, 4):
        with pytest.raises(VaultError, match="only a version before the current one"):
            vault.erase("ward", version=number)


def test_a_leak_of_an_erased_version_is_not_traced_and_that_is_said(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(wards.policy(), wards.table(), traced=True)
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.release("clinic", "ward", tmp_path / "one.parquet")
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 3), 1.0))
    vault.release("clinic", "ward", tmp_path / "two.parquet")
    assert vault.trace("ward", tmp_path / "one.parquet").untraceable == 0
    vault.erase("ward", version=1)
    found = vault.trace("ward", tmp_path / "two.parquet")
    assert (found.untraceable, [one.recipients for one in found.accused]) == (1, [("clinic",)])


def test_an_erased_recipient_is_let_in_no_more(vault: sf.Vault, tmp_path: Path) -> None:
    token = vault.token("clinic")
    entry = vault.erase_recipient("clinic")
    assert vault.erase_recipient("clinic") == entry
    assert [one.recipient for one in vault.recipients()] == ["insurer"]
    assert [one.recipient for one in vault.grants()] == ["insurer"]
    assert [one.withdrawn for one in vault.tokens() if one.id == token["id"]] == [True]
    for attempt in (
        lambda: vault.release("clinic", "ward", tmp_path / "three.parquet"),
        lambda: vault.enable("clinic"),
        lambda: vault.grant("clinic", "ward", "partner"),
    ):
        with pytest.raises(UnknownSubject, match="was erased on"):
            attempt()
    with pytest.raises(VaultError, match="choose another one"):
        vault.recipient("clinic")
    with pytest.raises(UnknownSubject):
        vault.erase_recipient("nobody")
    assert len(vault.log(Query(recipient="clinic", action="released"))) == 2
    assert vault.verify().sound


def test_the_answers_to_an_erased_survey_are_gone(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    surveys = Surveys(vault)
    surveys.new("commute", SURVEY)
    surveys.open("commute")
    definition = surveys.get("commute").survey
    answers = [Submission(f"{number:032}", 0, 0, (number % 2,)) for number in range(20)]
    surveys.collector.store("commute", definition, answers, invited=False)
    levels, _, rows = surveys.collector.received("commute", 1)
    assert (len(levels), int(rows.sum())) == (20, 10)
    assert _held(vault)[0] == "20 answers to commute"
    with pytest.raises(SurveyError, match="must be closed"):
        surveys.erase("commute")
    surveys.close("commute")
    assert surveys.erase("commute").body["scopes"] == [f"surveys/{_token(vault, 'commute')}"]
    with tables_of(vault.ledger.database) as connection:
        left = [connection.execute(sa.select(table)).all() for table in SURVEYS.sorted_tables]
    assert not any(left)
    assert not any(scope.startswith("surveys/") for scope in _keys(vault))
    assert surveys.summaries() == []
    for name in ("status", "close", "get"):
        with pytest.raises(UnknownSubject, match="was erased on"):
            getattr(surveys, name)("commute")
    with pytest.raises(SurveyError, match="choose another name"):
        surveys.new("commute", SURVEY)
    assert vault.verify().sound
    backup = tmp_path / "backup.tar"
    vault.backup(backup)
    assert sf.Vault.restore(backup, site.new()[0], secret=site.secret, store=str(tmp_path / "store")).verify().sound


def test_stored_answers_are_encrypted_and_cannot_be_moved_or_forged(site: Site) -> None:
    vault = site.create()
    surveys = Surveys(vault)
    surveys.new("commute", SURVEY)
    surveys.open("commute")
    definition = surveys.get("commute").survey
    # as an earlier version stored them; the first use of the survey encrypts them
    _ = surveys.collector
    with tables_of(vault.ledger.database) as connection:
        plain = [
            {"key": f"{n:032}", "survey": "commute", "batch": 0, "level": 0, "label": 0, "row": "1"} for n in (1, 2)
        ]
        connection.execute(ANSWERS.insert(), plain)
    assert surveys.collector.received("commute", 1)[2].tolist() == [[1], [1]]
    surveys.collector.store("commute", definition, [Submission("0" * 32, 0, 0, (0,))], invited=False)
    with tables_of(vault.ledger.database) as connection:
        stored = connection.execute(sa.select(ANSWERS.c.key, ANSWERS.c.row)).all()
    assert all(len(one.row) > 30 for one in stored)
    assert np.sort(surveys.collector.received("commute", 1)[2].ravel()).tolist() == [0, 1, 1]
    forged = {"survey": vault.store.keys.token("commute"), "batch": 0, "level": 0, "label": 0}
    for row in ("1", stored[0].row):  # a plain row, and a copy of another one
        with tables_of(vault.ledger.database) as connection:
            connection.execute(ANSWERS.insert().values(key="f" * 32, row=row, **forged))
        with pytest.raises(VaultError, match="altered"):
            surveys.collector.received("commute", 1)
        with tables_of(vault.ledger.database) as connection:
            connection.execute(ANSWERS.delete().where(ANSWERS.c.key == "f" * 32))


def test_what_is_still_held_is_said_with_the_reason(vault: sf.Vault, tmp_path: Path) -> None:
    count = len(vault.accesses(Query()))
    held = {row["still held"]: row["why"] for row in vault.overview()["held"]}
    assert count > 1
    assert held[f"{count} records of the access log"].startswith("who had access, since 20")
    assert held["ward version 1"].startswith("released to 1 recipient: traces leaks")
    assert held["ward version 2"] == "the current version, from which copies are made"
    vault.update("ward", wards.table().slice(2))
    vault.update("ward", wards.table().slice(3))
    held = {row["still held"]: row["why"] for row in vault.overview()["held"]}
    assert held["ward version 3"] == "nobody has a copy of it: sfumato erase dataset ward --version 3"
    assert not [what for what in held if "uploads" in what or "files of copies" in what]


def test_uploads_answers_and_copies_that_are_held_are_listed(tmp_path: Path) -> None:
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(wards.policy(), wards.table())
    assert [row["still held"] for row in vault.overview()["held"]] == ["ward version 1"]
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    copy, _ = vault.release("clinic", "ward")
    for name in ("one", "two"):
        vault.store.put_text(f"uploads/{name}/part", "x")
    surveys = Surveys(vault)
    surveys.new("commute", SURVEY)
    surveys.open("commute")
    definition = surveys.get("commute").survey
    surveys.collector.store("commute", definition, [Submission("1" * 32, 0, 0, (1,))], invited=False)
    held = {row["still held"]: row["why"] for row in vault.overview()["held"]}
    assert list(held) == [
        "ward version 1",
        "1 answers to commute",
        "2 uploads",
        "1 records of the access log",
        "1 files of copies",
    ]
    assert held["2 uploads"] == "in progress, or not used yet; deleted when they expire"
    assert str(copy.parents[1]) in held["1 files of copies"]


def test_an_old_key_that_is_inserted_again_is_found(vault: sf.Vault) -> None:
    old = _keys(vault)[_scope(vault, 1)]
    vault.erase("ward", version=1)
    with tables_of(vault.ledger.database) as connection:
        connection.execute(DATA_KEYS.insert().values(scope=_scope(vault, 1), wrapped=old))
    assert vault.verify().problems == [
        "the key of datasets/ward/1 exists again, though it was erased: somebody inserted an old one; erase it again"
    ]
    vault.erase("ward", version=1)
    assert vault.verify().sound


def test_a_backup_after_an_erasure_does_not_have_the_content(vault: sf.Vault, site: Site, tmp_path: Path) -> None:
    before, after = tmp_path / "before.tar", tmp_path / "after.tar"
    vault.backup(before)
    wrapped = _keys(vault)[_scope(vault, 1)]
    vault.erase("ward", version=1)
    vault.backup(after)
    assert wrapped.encode() in before.read_bytes()
    assert wrapped.encode() not in after.read_bytes()
    location, store = site.new()
    again = sf.Vault.restore(after, location, secret=site.secret, store=store)
    assert again.verify().sound
    assert _scope(vault, 1) not in _keys(again)


def test_a_deleted_key_is_overwritten_in_the_database_file(tmp_path: Path) -> None:
    vault = sf.Vault.create(tmp_path / "vault", secret=sf.Key.generate())
    vault.add(wards.policy(), wards.table())
    wrapped = _keys(vault)[_scope(vault, 1)].encode()
    vault.erase("ward")
    with vault.ledger.database.driver() as driver:
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert wrapped not in (tmp_path / "vault" / "ledger.sqlite").read_bytes()
