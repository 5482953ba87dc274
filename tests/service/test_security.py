"""What keeps people out, and secrets in."""

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
from tests.serving import PASSWORD, Service, handed_out, lone, populated, serving

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


def test_headers_are_strict_everywhere(small: Service) -> None:
    with signed_in(small) as client:
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


def test_pages_hold_nothing_that_the_policy_forbids(small: Service) -> None:
    with signed_in(small) as client:
        for path in (
            "/console",
            "/console/datasets/ward",
            "/console/datasets/ward/levels",
            "/console/recipients/clinic",
        ):
            text = client.get(path).text
            assert not re.search(r"<script(?![^>]*src=\"/static/)|\son\w+=|\sstyle=|javascript:|https?://(?!127)", text)


@pytest.mark.parametrize("insecure", [True, False])
def test_a_cookie_is_strict(tmp_path: Path, insecure: bool) -> None:
    vault = lone(tmp_path)
    with serving(vault, tmp_path, insecure=insecure) as service, service.client() as client:
        answer = client.post("/signin", data={"name": "anna", "password": PASSWORD})
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert ("secure" in cookie.replace("samesite", "")) is not insecure
        assert ("strict-transport-security" in answer.headers) is not insecure


def test_changes_from_elsewhere_are_refused(small: Service) -> None:
    with signed_in(small) as client:
        said = {"recipient": "forged"}
        assert client.post("/api/v1/recipients", json=said).status_code == 403
        assert client.post("/api/v1/recipients", json=said, headers={"X-CSRF-Token": "x"}).status_code == 403
        right = {"X-CSRF-Token": csrf(client)}
        with signed_in(small) as other:  # another browser's word does not count
            assert other.post("/api/v1/recipients", json=said, headers=right).status_code == 403
        assert client.post("/api/v1/recipients", json={"recipient": "real"}, headers=right).status_code == 201
    assert "forged" not in [one["recipient"] for one in small.remote("owner").recipients()]


@pytest.mark.parametrize("header", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_a_form_from_elsewhere_signs_nobody_in(small: Service, header: dict[str, str]) -> None:
    with small.client() as client:
        said = {"name": "anna", "password": PASSWORD}
        assert client.post("/signin", data=said, headers=header).status_code == 403


def test_signing_out_ends_the_session(small: Service) -> None:
    with signed_in(small) as client:
        kept = client.cookies["sfumato_session"]
        assert client.post("/signout", data={"csrf": "wrong"}).status_code == 403
        assert client.get("/console").status_code == 200
        assert client.post("/signout", data={"csrf": csrf(client)}).status_code == 303
    with small.client(cookies={"sfumato_session": kept}) as thief:
        assert thief.get("/console").status_code == 303
        assert thief.get("/api/v1/datasets").status_code == 401


def test_a_dismissed_operator_and_a_withdrawn_token_are_out_at_once(small: Service) -> None:
    operators.enrol(small.vault, "bert", PASSWORD)
    made = small.vault.token("stranger")
    with signed_in(small, name="bert", password=PASSWORD) as bert, signed_in(small, token=made["token"]) as stranger:
        assert bert.get("/console").status_code == 200
        assert stranger.get("/mine").status_code == 200
        operators.dismiss(small.vault, "bert")
        small.vault.withdraw(made["id"])
        assert bert.get("/console").status_code == 303
        assert stranger.get("/mine").status_code == 303
        assert stranger.get("/api/v1/me").status_code == 401


def test_a_disabled_recipient_is_out_at_once(small: Service) -> None:
    token = small.vault.token("stranger")["token"]
    with small.client(token) as client:
        assert client.get("/api/v1/me").status_code == 200
        small.vault.disable("stranger")
        assert client.get("/api/v1/me").status_code == 401
        small.vault.enable("stranger")
        assert client.get("/api/v1/me").status_code == 200


def test_who_is_wrong_is_told_nothing(small: Service) -> None:
    wrong = [
        {"name": "anna", "password": "wrong password!"},
        {"name": "nobody", "password": PASSWORD},
        {"token": "sfu_000000000000_" + "x" * 43},
        {"token": small.tokens["owner"]},  # an owner's token opens the API, not the console
        {},
    ]
    answers = set()
    for said in wrong:
        with small.client() as client:
            answer = client.post("/signin", data=said)
            answers.add((answer.status_code, answer.text, answer.headers.get("set-cookie")))
    [(status, _, cookie)] = answers
    assert (status, cookie) == (401, None)


def test_too_many_failures_and_requests_are_told_to_wait(tmp_path: Path) -> None:
    vault = lone(tmp_path)
    with serving(vault, tmp_path, "--tries", "5", "--rate", "60") as service:
        service.tokens = handed_out(vault)
        with service.client() as client:
            statuses = [client.post("/signin", data={"name": "anna", "password": "x"}).status_code for _ in range(8)]
            assert statuses == [401] * 5 + [429] * 3
            right = client.post("/signin", data={"name": "anna", "password": PASSWORD})
            assert right.status_code == 429
            assert int(right.headers["retry-after"]) >= 1
        with service.client("clinic") as client:  # a right token is not locked out by another's failures
            statuses = [client.get("/api/v1/me").status_code for _ in range(70)]
        assert statuses[:50] == [200] * 50
        assert statuses[-1] == 429


def test_large_bodies_are_refused(small: Service) -> None:
    with small.client("owner") as client:
        assert client.post("/api/v1/recipients", content=b"x" * (2 << 20)).status_code == 413

        def endless() -> Iterator[bytes]:
            for _ in range(64):
                yield b" " * (1 << 16)

        answer = client.post("/api/v1/recipients", content=endless(), headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        upload = client.post("/api/v1/uploads", json={"name": "x.csv"}).json()
        part = b"x" * (upload["part"] + 1)
        assert client.put(f"/api/v1/uploads/{upload['upload']}/parts/1", content=part).status_code == 413


def test_no_secret_reaches_the_log_or_the_database(small: Service) -> None:
    with small.client("owner") as client:
        handed = client.post("/api/v1/recipients/clinic/tokens", json={"note": "for the log"}).json()["token"]
        client.get("/api/v1/me", headers={"Authorization": "Bearer sfu_looks_like_one"})
        client.get(f"/api/v1/copies/ward?level={handed}", headers={"Authorization": f"Bearer {handed}"})
    with signed_in(small) as client:
        client.get("/console")
        session = client.cookies["sfumato_session"]
    secret = "".join(f"{byte:02x}" for byte in range(32))
    hidden = [*small.tokens.values(), handed, PASSWORD, "sfu_looks_like_one", session, secret]
    hidden += [token.split("_", 2)[2] for token in small.tokens.values()]
    log = small.log.read_text()
    with sqlite3.connect(Path(small.vault.location) / "ledger.sqlite") as connection:
        database = "\n".join(connection.iterdump())
    assert small.lines()
    for text in (log, database, json.dumps([entry.__dict__ for entry in small.vault.log()])):
        assert [word for word in hidden if word in text] == []


def test_entries_over_the_wire_hold_no_hash_of_a_password_or_token(small: Service) -> None:
    with small.client("owner") as client:
        entries = client.get("/api/v1/ledger", params={"limit": 500}).json()["entries"]
    bodies = [entry["body"] for entry in entries if entry["kind"] in ("token", "operator")]
    assert bodies
    assert all("hash" not in body for body in bodies)


def test_who_can_write_to_the_database_cannot_let_himself_in(tmp_path: Path) -> None:
    """A token that the vault did not issue itself opens nothing, though its hash is in the ledger."""
    vault = lone(tmp_path)
    text, entry = tokens.issue(vault, "clinic")
    assert tokens.bearer(vault, text)
    with sqlite3.connect(Path(vault.location) / "ledger.sqlite") as connection:
        connection.execute("DROP TRIGGER sfumato_entries_no_update")
        row = connection.execute("SELECT body FROM sfumato_entries WHERE number = ?", [entry.number]).fetchone()[0]
        forged = row.replace("2027", "2999").replace("2026", "2999")
        connection.execute("UPDATE sfumato_entries SET body = ? WHERE number = ?", [forged, entry.number])
    with pytest.raises(VaultError, match="was altered"):
        tokens.bearer(vault, text)


def test_a_token_cannot_grow(small: Service) -> None:
    """A writer without metrics hands out no metrics, and a reader nothing at all."""
    narrow = small.vault.token(scopes=["read", "write"])["token"]
    with small.client(narrow) as client:
        assert client.post("/api/v1/tokens", json={"scopes": ["metrics"]}).status_code == 403
        made = client.post("/api/v1/tokens", json={}).json()["token"]
    with small.client(made) as client:
        assert client.get("/api/v1/me").json()["scopes"] == ["read", "write"]
        assert client.get("/metrics").status_code == 403


def test_a_path_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    tables = tmp_path / "tables"
    (tables / "folder").mkdir(parents=True)
    (tables / "good.csv").write_text("age\n1.5\n2.5\n")
    (tmp_path / "outside.csv").write_text("age\n1.5\n2.5\n")
    (tables / "link.csv").symlink_to(tmp_path / "outside.csv")
    vault = populated(Site("sqlite", tmp_path / "site", None))
    with serving(vault, tmp_path, "--tables", str(tables)) as service, service.client(vault.token()["token"]) as client:
        for path in ("../../../etc/passwd", "/etc/passwd", "link.csv", "folder"):
            answer = client.post("/api/v1/suggestions", json={"path": path, "dataset": "x"})
            assert (path, answer.status_code) == (path, 422)
            assert "under the folder" in answer.json()["detail"]
        assert client.post("/api/v1/suggestions", json={"path": "good.csv", "dataset": "x"}).status_code == 200


def test_operators_passwords(tmp_path: Path) -> None:
    vault = lone(tmp_path)
    assert operators.is_right(vault, "anna", PASSWORD)
    assert not operators.is_right(vault, "anna", PASSWORD + "x")
    assert not operators.is_right(vault, "nobody", PASSWORD)
    operators.enrol(vault, "anna", "another long password")
    assert not operators.is_right(vault, "anna", PASSWORD)
    assert operators.is_right(vault, "anna", "another long password")
    vault.rekey()  # the password stays good under the earlier key
    assert operators.is_right(vault, "anna", "another long password")
    operators.dismiss(vault, "anna")
    assert not operators.is_right(vault, "anna", "another long password")
    with pytest.raises(VaultError, match="at least 12"):
        operators.enrol(vault, "anna", "short")
    assert vault.verify().sound
