"""Security of the service: headers, sessions, CSRF, rate limits, token scopes and secrets in logs."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.conftest import Site
from tests.serving import PASSWORD, Service, issue_tokens, populated_vault, serving, sqlite_vault

from sfumato.errors import VaultError
from sfumato.vault import operators, tokens


@contextlib.contextmanager
def signed_in(service: Service, **form: str) -> Iterator[httpx2.Client]:
    with service.client() as client:
        answer = client.post("/signin", data=form or {"name": "anna", "password": PASSWORD})
        assert answer.status_code == 303
        yield client


def csrf(client: httpx2.Client, page: str = "/console") -> str:
    found = re.search(r'name="csrf" content="([^"]+)"', client.get(page).text)
    assert found
    return found[1]


def test_security_headers(sqlite_service: Service) -> None:
    with signed_in(sqlite_service) as client:
        for path in ("/console", "/signin", "/static/style.css", "/api/v1/datasets", "/api/v1/nowhere", "/nowhere"):
            headers = client.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "no-referrer"
            assert re.fullmatch("[0-9a-f]{16}", headers["x-request-id"])
        assert client.get("/console").headers["cache-control"] == "no-store"


def test_pages_comply_with_the_content_security_policy(sqlite_service: Service) -> None:
    with signed_in(sqlite_service) as client:
        for path in (
            "/console",
            "/console/datasets/ward",
            "/console/datasets/ward/levels",
            "/console/recipients/clinic",
        ):
            text = client.get(path).text
            assert not re.search(r"<script(?![^>]*src=\"/static/)|\son\w+=|\sstyle=|javascript:|https?://(?!127)", text)


@pytest.mark.parametrize("insecure", [True, False])
def test_session_cookie_attributes(tmp_path: Path, insecure: bool) -> None:
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path, insecure=insecure) as service, service.client() as client:
        answer = client.post("/signin", data={"name": "anna", "password": PASSWORD})
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert ("secure" in cookie.replace("samesite", "")) is not insecure
        assert ("strict-transport-security" in answer.headers) is not insecure


def test_changes_without_csrf_token_are_refused(sqlite_service: Service) -> None:
    with signed_in(sqlite_service) as client:
        body = {"recipient": "forged"}
        assert client.post("/api/v1/recipients", json=body).status_code == 403
        assert client.post("/api/v1/recipients", json=body, headers={"X-CSRF-Token": "x"}).status_code == 403
        right = {"X-CSRF-Token": csrf(client)}
        with signed_in(sqlite_service) as other:  # the CSRF token of another session is not accepted
            assert other.post("/api/v1/recipients", json=body, headers=right).status_code == 403
        assert client.post("/api/v1/recipients", json={"recipient": "real"}, headers=right).status_code == 201
    assert "forged" not in [one.recipient for one in sqlite_service.remote("owner").recipients()]


@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_cross_site_sign_in_is_refused(sqlite_service: Service, header: dict[str, str]) -> None:
    with sqlite_service.client() as client:
        form = {"name": "anna", "password": PASSWORD}
        assert client.post("/signin", data=form, headers=header).status_code == 403


def test_signing_out_ends_the_session(sqlite_service: Service) -> None:
    with signed_in(sqlite_service) as client:
        cookie = client.cookies["sfumato_session"]
        assert client.post("/signout", data={"csrf": "wrong"}).status_code == 403
        assert client.get("/console").status_code == 200
        assert client.post("/signout", data={"csrf": csrf(client)}).status_code == 303
    with sqlite_service.client(cookies={"sfumato_session": cookie}) as thief:
        assert thief.get("/console").status_code == 303
        assert thief.get("/api/v1/datasets").status_code == 401


def test_dismissed_operators_and_withdrawn_tokens_lose_access_at_once(sqlite_service: Service) -> None:
    operators.enrol(sqlite_service.vault, "bert", PASSWORD)
    made = sqlite_service.vault.token("stranger")
    with (
        signed_in(sqlite_service, name="bert", password=PASSWORD) as bert,
        signed_in(sqlite_service, token=made["token"]) as stranger,
    ):
        assert bert.get("/console").status_code == 200
        assert stranger.get("/mine").status_code == 200
        operators.dismiss(sqlite_service.vault, "bert")
        sqlite_service.vault.withdraw(made["id"])
        assert bert.get("/console").status_code == 303
        assert stranger.get("/mine").status_code == 303
        assert stranger.get("/api/v1/me").status_code == 401


def test_disabled_recipients_lose_access_at_once(sqlite_service: Service) -> None:
    token = sqlite_service.vault.token("stranger")["token"]
    with sqlite_service.client(token) as client:
        assert client.get("/api/v1/me").status_code == 200
        sqlite_service.vault.disable("stranger")
        assert client.get("/api/v1/me").status_code == 401
        sqlite_service.vault.enable("stranger")
        assert client.get("/api/v1/me").status_code == 200


def test_failed_sign_ins_reveal_nothing(sqlite_service: Service) -> None:
    wrong = [
        {"name": "anna", "password": "wrong password!"},
        {"name": "nobody", "password": PASSWORD},
        {"token": "sfu_000000000000_" + "x" * 43},
        {"token": sqlite_service.tokens["owner"]},  # owners' tokens are for the API, not for the console
        {},
    ]
    answers = set()
    for form in wrong:
        with sqlite_service.client() as client:
            answer = client.post("/signin", data=form)
            answers.add((answer.status_code, answer.text, answer.headers.get("set-cookie")))
    [(status, _, cookie)] = answers
    assert (status, cookie) == (401, None)


def test_failed_sign_ins_and_requests_are_rate_limited(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path, "--tries", "5", "--rate", "60") as service:
        service.tokens = issue_tokens(vault)
        with service.client() as client:
            statuses = [client.post("/signin", data={"name": "anna", "password": "x"}).status_code for _ in range(8)]
            assert statuses == [401] * 5 + [429] * 3
            right = client.post("/signin", data={"name": "anna", "password": PASSWORD})
            assert right.status_code == 429
            assert int(right.headers["retry-after"]) >= 1
        with service.client("clinic") as client:  # a valid token is not locked out by the failures of others
            statuses = [client.get("/api/v1/me").status_code for _ in range(70)]
        assert statuses[:50] == [200] * 50
        assert statuses[-1] == 429


def test_large_bodies_are_refused(sqlite_service: Service) -> None:
    with sqlite_service.client("owner") as client:
        assert client.post("/api/v1/recipients", content=b"x" * (2 << 20)).status_code == 413

        def endless() -> Iterator[bytes]:
            for _ in range(64):
                yield b" " * (1 << 16)

        answer = client.post("/api/v1/recipients", content=endless(), headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        upload = client.post("/api/v1/uploads", json={"name": "x.csv"}).json()
        part = b"x" * (upload["part"] + 1)
        assert client.put(f"/api/v1/uploads/{upload['upload']}/parts/1", content=part).status_code == 413


def test_no_secret_reaches_the_log_or_the_database(sqlite_service: Service) -> None:
    with sqlite_service.client("owner") as client:
        issued = client.post("/api/v1/recipients/clinic/tokens", json={"note": "for the log"}).json()["token"]
        client.get("/api/v1/me", headers={"Authorization": "Bearer sfu_looks_like_one"})
        client.get(f"/api/v1/copies/ward?level={issued}", headers={"Authorization": f"Bearer {issued}"})
    with signed_in(sqlite_service) as client:
        client.get("/console")
        session = client.cookies["sfumato_session"]
    secret = "".join(f"{byte:02x}" for byte in range(32))
    hidden = [*sqlite_service.tokens.values(), issued, PASSWORD, "sfu_looks_like_one", session, secret]
    hidden += [token.split("_", 2)[2] for token in sqlite_service.tokens.values()]
    log = sqlite_service.log.read_text()
    with sqlite3.connect(Path(sqlite_service.vault.location) / "ledger.sqlite") as connection:
        database = "\n".join(connection.iterdump())
    assert sqlite_service.lines()
    for text in (log, database, json.dumps([entry.__dict__ for entry in sqlite_service.vault.log()])):
        assert [word for word in hidden if word in text] == []


def test_ledger_entries_in_responses_hold_no_hashes_of_secrets(sqlite_service: Service) -> None:
    with sqlite_service.client("owner") as client:
        entries = client.get("/api/v1/ledger", params={"limit": 500}).json()["entries"]
    bodies = [entry["body"] for entry in entries if entry["kind"] in ("token", "operator")]
    assert bodies
    assert all("hash" not in body for body in bodies)


def test_write_access_to_the_database_gives_no_access(tmp_path: Path) -> None:
    """A token that the vault did not issue is rejected, although its hash is in the ledger."""
    vault = sqlite_vault(tmp_path)
    text, entry = tokens.issue(vault, "clinic")
    assert tokens.authenticate(vault, text)
    with sqlite3.connect(Path(vault.location) / "ledger.sqlite") as connection:
        connection.execute("DROP TRIGGER sfumato_entries_no_update")
        row = connection.execute("SELECT body FROM sfumato_entries WHERE number = ?", [entry.number]).fetchone()[0]
        forged = row.replace("2027", "2999").replace("2026", "2999")
        connection.execute("UPDATE sfumato_entries SET body = ? WHERE number = ?", [forged, entry.number])
    with pytest.raises(VaultError, match="was altered"):
        tokens.authenticate(vault, text)


def test_a_token_cannot_issue_more_scopes_than_it_has(sqlite_service: Service) -> None:
    """A token without the scope metrics cannot issue one with it."""
    narrow = sqlite_service.vault.token(scopes=["read", "write"])["token"]
    with sqlite_service.client(narrow) as client:
        assert client.post("/api/v1/tokens", json={"scopes": ["metrics"]}).status_code == 403
        made = client.post("/api/v1/tokens", json={}).json()["token"]
    with sqlite_service.client(made) as client:
        assert client.get("/api/v1/me").json()["scopes"] == ["read", "write"]
        assert client.get("/metrics").status_code == 403


def test_paths_outside_the_folder_of_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    tables = tmp_path / "tables"
    (tables / "folder").mkdir(parents=True)
    (tables / "good.csv").write_text("age\n1.5\n2.5\n")
    (tmp_path / "outside.csv").write_text("age\n1.5\n2.5\n")
    (tables / "link.csv").symlink_to(tmp_path / "outside.csv")
    vault = populated_vault(Site("sqlite", tmp_path / "site", None))
    with serving(vault, tmp_path, "--tables", str(tables)) as service, service.client(vault.token()["token"]) as client:
        for path in ("../../../etc/passwd", "/etc/passwd", "link.csv", "folder"):
            answer = client.post("/api/v1/suggestions", json={"path": path, "dataset": "x"})
            assert (path, answer.status_code) == (path, 422)
            assert "under the folder" in answer.json()["detail"]
        assert client.post("/api/v1/suggestions", json={"path": "good.csv", "dataset": "x"}).status_code == 200


def test_operator_passwords(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    assert operators.verify_password(vault, "anna", PASSWORD)
    assert not operators.verify_password(vault, "anna", PASSWORD + "x")
    assert not operators.verify_password(vault, "nobody", PASSWORD)
    operators.enrol(vault, "anna", "another long password")
    assert not operators.verify_password(vault, "anna", PASSWORD)
    assert operators.verify_password(vault, "anna", "another long password")
    vault.rekey()  # the password stays valid under the earlier key
    assert operators.verify_password(vault, "anna", "another long password")
    operators.dismiss(vault, "anna")
    assert not operators.verify_password(vault, "anna", "another long password")
    with pytest.raises(VaultError, match="at least 12"):
        operators.enrol(vault, "anna", "short")
    assert vault.verify().sound
