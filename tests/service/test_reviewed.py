"""Regression tests for the findings of a security review of the service."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import httpx2
import pyarrow as pa
import pytest
from tests import wards
from tests.conftest import Site
from tests.serving import PASSWORD, populated_vault, serving, sqlite_vault

import sfumato as sf
from sfumato.errors import NotGranted, TamperedError
from sfumato.ledger.reader import Query
from sfumato.service.state import State, hash_of
from sfumato.service.worker_pool import CopyChanged, CopyRequest, _CopyStreams
from sfumato.vault import operators, tokens
from sfumato.vault.delivery import Delivery

COPY = "/api/v1/copies/ward"


@pytest.fixture
def vault(tmp_path: Path) -> sf.Vault:
    return sqlite_vault(tmp_path)


def test_etags_reveal_nothing_about_the_table(vault: sf.Vault, tmp_path: Path) -> None:
    """Otherwise somebody who knows all other records could test guesses of one record with a second vault."""
    (tmp_path / "other").mkdir()
    twin = populated_vault(Site("sqlite", tmp_path / "other", None))
    assert Delivery.of(vault, "clinic", "ward").tag("csv") != Delivery.of(twin, "clinic", "ward").tag("csv")


def test_a_session_forged_in_the_database_is_rejected(vault: sf.Vault) -> None:
    state = State(vault)
    secret, session = state.sign_in("anna", str(vault.log(Query(action="enrolled"))[-1].number), 8)
    assert state.session(secret) == session
    with sqlite3.connect(Path(vault.location) / "ledger.sqlite") as connection:
        copied = "INSERT INTO sfumato_browser_sessions SELECT ?, holder, csrf, until, mac FROM sfumato_browser_sessions"
        connection.execute(copied, [hash_of("mine")])
    assert state.session("mine") is None
    for change in ("holder = 'root'", "until = '2999'", "csrf = 'x'", "mac = 'x'"):
        with sqlite3.connect(Path(vault.location) / "ledger.sqlite") as connection:
            [before] = connection.execute("SELECT * FROM sfumato_browser_sessions WHERE hash = ?", [session.hash])
            own = "WHERE hash = ?"
            connection.execute(f"UPDATE sfumato_browser_sessions SET {change} {own}", [session.hash])  # noqa: S608
        assert state.session(secret) is None
        with sqlite3.connect(Path(vault.location) / "ledger.sqlite") as connection:
            connection.execute("DELETE FROM sfumato_browser_sessions WHERE hash = ?", [session.hash])
            connection.execute("INSERT INTO sfumato_browser_sessions VALUES (?, ?, ?, ?, ?)", before)
        assert state.session(secret) == session


def test_an_entry_under_an_unknown_key_is_rejected(vault: sf.Vault) -> None:
    text, entry = tokens.issue(vault, "clinic")
    with sqlite3.connect(Path(vault.location) / "ledger.sqlite") as connection:
        connection.execute("DROP TRIGGER sfumato_entries_no_update")
        connection.execute("UPDATE sfumato_entries SET generation = 99 WHERE number = ?", [entry.number])
        grant = vault.log(Query(kind="grant", recipient="clinic"))[0].number
        connection.execute("UPDATE sfumato_entries SET generation = 99 WHERE number = ?", [grant])
    for read in (lambda: tokens.authenticate(vault, text), lambda: Delivery.of(vault, "clinic", "ward")):
        with pytest.raises(TamperedError, match=r"was altered|somebody else wrote it"):
            read()


def test_after_a_lost_key_nobody_is_let_in(vault: sf.Vault) -> None:
    text, _ = tokens.issue(vault, "clinic")
    vault.rekey(secret=sf.Key.generate(), lost=True)
    with pytest.raises(NotGranted):
        Delivery.of(vault, "clinic", "ward")
    assert tokens.authenticate(vault, text) is None
    assert operators.find(vault, "anna") is None


def test_a_changed_copy_is_never_sent_under_its_old_etag(vault: sf.Vault) -> None:
    streams = _CopyStreams(vault)
    wanted = CopyRequest("owner x", "clinic", "ward", None, "csv")
    found = streams.describe(wanted)
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 5), 1.0))
    with pytest.raises(CopyChanged):
        streams.open(1, wanted, found.tag, 0, None)
    later = streams.describe(wanted)
    assert (later.version, later.tag != found.tag) == (2, True)
    streams.open(2, wanted, later.tag, 0, None)
    content = b"".join(iter(lambda: streams.read(2), None))
    assert streams.describe(wanted).size == len(content)


def test_a_copy_that_the_format_cannot_hold_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    vault = Site("sqlite", tmp_path / "site", None).create()
    table = wards.table().append_column("list", pa.array([[1]] * wards.ROWS))
    vault.add(sf.Policy.loads(wards.POLICY + 'list = "keep"\n'), table)
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    with pytest.raises(sf.SfumatoError, match="no lists"):
        next(Delivery.of(vault, "clinic", "ward").chunks("csv"))
    assert vault.log(Query(kind="release")) == []


def test_head_manifest_and_password_change(vault: sf.Vault, tmp_path: Path) -> None:
    """An unknown size is not sent; a downloaded manifest is recorded; a new password ends old sessions."""
    with serving(vault, tmp_path) as service, service.client(vault.token("clinic")["token"]) as client:
        assert "content-length" not in client.head(COPY).headers
        assert vault.log(Query(kind="release")) == []
        signed = client.get(f"{COPY}/manifest").json()
        given = vault.log(Query(kind="release"))
        assert [entry.action for entry in given] == ["began", "released"]
        assert signed["digest"] == given[-1].body["digest"]
        with service.client() as browser:
            browser.post("/signin", data={"name": "anna", "password": PASSWORD})
            assert browser.get("/console").status_code == 200
            operators.enrol(vault, "anna", "another long password")
            assert browser.get("/console").status_code == 303


def test_requests_of_an_address_are_limited_whatever_token_they_carry(vault: sf.Vault, tmp_path: Path) -> None:
    with serving(vault, tmp_path, "--rate", "5") as service, service.client() as client:
        headers = [{"Authorization": f"Bearer {i}" + "x" * 5000} for i in range(60)]
        statuses = [client.get("/healthz", headers=one).status_code for one in headers]
    assert statuses.count(429) >= 5


@pytest.mark.slow
def test_concurrent_downloads_are_limited(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(300_000))
    with serving(vault, tmp_path) as service, service.client(vault.token("clinic")["token"]) as client:
        opened = [client.stream("GET", COPY, params={"format": "csv"}) for _ in range(17)]
        answers: list[httpx2.Response] = [one.__enter__() for one in opened]
        assert [answer.status_code for answer in answers] == [200] * 16 + [429]
        for one in opened:
            one.__exit__(None, None, None)


def test_pages_show_https_urls(vault: sf.Vault, tmp_path: Path) -> None:
    token = vault.token("clinic")["token"]
    with serving(vault, tmp_path, insecure=False) as service, service.client() as client:
        cookie = client.post("/signin", data={"token": token}).headers["set-cookie"].split(";")[0]
        page = client.get("/mine", headers={"Cookie": cookie}).text
    assert 'sf.connect("https://' in page.replace("&#34;", '"')
    assert "http://" not in page
