"""Security of the service: headers, sessions, CSRF, rate limits, token scopes and secrets in logs."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests import wards
from tests.conftest import Site
from tests.serving import PASSWORD, Service, issue_tokens, populated_vault, serving, sqlite_vault

from sfumato.errors import VaultError
from sfumato.ledger.reader import Query
from sfumato.service.web import ledger
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
        assert cookie.startswith("sfumato_session=" if insecure else "__host-sfumato_session=")
        assert "path=/" in cookie
        assert "domain" not in cookie
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


def test_anonymous_requests_do_not_block_sign_ins(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path, "--tries", "4", "--proxied") as service, service.client() as client:

        def sign_in(password: str, address: str) -> int:
            form = {"name": "anna", "password": password}
            return client.post("/signin", data=form, headers={"X-Forwarded-For": address}).status_code

        assert [client.get("/api/v1/me").status_code for _ in range(6)] == [401] * 4 + [429] * 2
        client.cookies.clear()
        right = client.post("/signin", data={"name": "anna", "password": PASSWORD})
        assert right.status_code == 303
        assert sign_in(PASSWORD, "10.0.0.1") == 303
        # guesses from many addresses share the limit of the account, and do not lock out an address that has signed in
        statuses = [sign_in("wrong", f"10.0.1.{i}") for i in range(6)]
        assert statuses == [401] * 4 + [429] * 2
        form, headers = {"name": "anna", "password": PASSWORD}, {"X-Forwarded-For": "10.0.2.1", "Accept": "text/html"}
        refused = client.post("/signin", data=form, headers=headers)
        assert (refused.status_code, int(refused.headers["retry-after"]) >= 1) == (429, True)
        assert "<h1>Too Many Requests</h1>" in refused.text
        assert sign_in(PASSWORD, "10.0.0.1") == 303


def test_people_get_pages_and_programs_get_problem_details(sqlite_service: Service) -> None:
    html = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    paths = {"/nowhere": 404, "/api/v1/nowhere": 404, "/api/v1/copies/ward": 401, "/answer/x%20y": 422}
    with sqlite_service.client() as client:
        for path, status in paths.items():
            page, problem = client.get(path, headers=html), client.get(path)
            assert (path, page.status_code, problem.status_code) == (path, status, status)
            assert page.headers["content-type"].startswith("text/html")
            assert page.headers["x-request-id"] in page.text
            assert problem.headers["content-type"] == "application/problem+json"
        form = {"name": "anna", "password": PASSWORD}
        refused = client.post("/signin", data=form, headers=html | {"Origin": "https://evil.example"})
        assert "<h1>Forbidden</h1>" in refused.text


def test_read_only_tokens_get_no_original_records(sqlite_service: Service) -> None:
    secrets = [str(value) for value in wards.table().column("id").to_pylist()[:50]]
    with sqlite_service.client("owner") as owner:
        paths = owner.get("/api/v1/openapi.json").json()["paths"]
    with sqlite_service.client("reader") as client:
        for path in (path for path, methods in paths.items() if "get" in methods):
            url = path.format(dataset="ward", recipient="clinic", survey="commute", job="0" * 16, part="content")
            text = client.get(url, params={"fidelity": 0.5, "recipient": "clinic"}).text
            assert (path, [one for one in secrets if f'"{one}"' in text]) == (path, [])


@pytest.mark.parametrize("name", ["nul\0name", "x" * 300])
def test_unusable_names_are_refused_on_every_database(service: Service, name: str) -> None:
    policy = wards.POLICY.replace('"ward"', json.dumps(name))
    encoded = name.replace("\0", "%00")
    with service.client("owner") as client:
        requests = [
            client.post("/api/v1/datasets", json={"policy": policy, "upload": "x"}),
            client.post("/api/v1/recipients", json={"recipient": name}),
            client.put(f"/api/v1/grants/ward/{encoded}", json={"level": 0.3}),
            client.get(f"/api/v1/datasets/{encoded}"),
            client.get(f"/api/v1/copies/ward?level={encoded}&recipient=clinic"),
            client.get(f"/api/v1/jobs?kind={encoded}"),
            client.get(f"/api/v1/ledger?action={encoded}"),
            client.get(f"/api/v1/datasets/ward/collusion?recipient={encoded}"),
            client.delete(f"/api/v1/tokens/{encoded}"),
            client.post("/signin", data={"name": name, "password": PASSWORD}),
        ]
        assert [answer.status_code for answer in requests if not 400 <= answer.status_code < 500] == []
    with signed_in(service) as client:
        for path in (
            f"/console/ledger?dataset={encoded}",
            f"/console/jobs/{encoded}",
            f"/console/recipients/{encoded}",
        ):
            assert client.get(path).status_code < 500
    assert not [line for line in service.lines() if line["level"] == "error"]


def test_the_ledger_is_exported_for_spreadsheets(
    sqlite_service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All entries that the filters select, whatever their number, and no cell that is a formula."""
    with signed_in(sqlite_service) as client:
        answer = client.get("/console/ledger.csv", params={"action": "granted"})
        assert client.get("/console/ledger.csv", params={"since": "yesterday"}).status_code == 422
    with sqlite_service.client() as stranger:
        assert stranger.get("/console/ledger.csv").status_code in (303, 401)
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert "attachment" in answer.headers["content-disposition"]
    assert {row["action"] for row in rows} == {"granted"}
    assert [int(row["number"]) for row in rows] == sorted((int(row["number"]) for row in rows), reverse=True)
    monkeypatch.setattr(ledger, "EXPORTED", 2)
    vault = sqlite_vault(tmp_path).acting_as("=HYPERLINK(1)")
    for name in "abcde":
        vault.recipient(name)
    lines = "".join(ledger.exported_lines(vault, Query(action="registered", last=2))).splitlines()
    assert len(lines) == 1 + len(vault.log(Query(action="registered"))) > 6
    assert sum(",'=HYPERLINK(1)," in line for line in lines) == len("abcde")


def test_recipients_get_no_advice_for_owners_and_no_paths(sqlite_service: Service) -> None:
    vault = sqlite_service.vault
    vault.recipient("former")
    vault.grant("former", "ward", "public")
    token = vault.token("former")["token"]
    vault.revoke("former", "ward")
    with sqlite_service.client(token) as client:
        detail = client.get("/api/v1/copies/ward").json()["detail"]
    assert "was revoked on" in detail
    assert "sfumato grant" not in detail
    with sqlite_service.client("owner") as client:  # the owner gets the advice
        detail = client.get("/api/v1/copies/ward", params={"recipient": "former"}).json()["detail"]
    assert "sfumato grant" in detail


def test_a_damaged_table_is_described_to_its_owner_only(sqlite_service: Service) -> None:
    vault = sqlite_service.vault
    vault.add(wards.policy("torn"), wards.table(seed=77))
    vault.grant("clinic", "torn", "public")
    [stored] = Path(vault.location, vault.store.folder("torn")).glob("*.parquet*")
    content = stored.read_bytes()
    stored.write_bytes(b"damaged")
    try:
        with sqlite_service.client("clinic") as client:
            answer = client.get("/api/v1/copies/torn")
    finally:
        stored.write_bytes(content)
        vault.revoke("clinic", "torn")
    assert answer.status_code >= 400
    assert "Ask the data owner" in answer.json()["detail"]
    assert vault.location not in answer.text
    [line] = [line for line in sqlite_service.lines() if line["event"] == "refused" and stored.name in line["reason"]]
    assert line["request"] == answer.headers["x-request-id"]


def test_operation_ids_are_unique(sqlite_service: Service) -> None:
    with sqlite_service.client() as client:
        paths = client.get("/api/v1/openapi.json").json()["paths"]
    ids = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(ids) == len(set(ids))
    assert "Duplicate Operation ID" not in sqlite_service.log.read_text()


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
        forged = row[:40] + ("A" if row[40] != "A" else "B") + row[41:]
        connection.execute("UPDATE sfumato_entries SET body = ? WHERE number = ?", [forged, entry.number])
    with pytest.raises(VaultError, match="was altered"):
        tokens.authenticate(vault, text)


def test_a_token_to_write_cannot_erase(sqlite_service: Service) -> None:
    token = sqlite_service.vault.token()["token"]  # with the usual scopes
    with sqlite_service.client(token) as client:
        for path in ("datasets/ward", "datasets/ward/versions/1", "recipients/clinic", "surveys/commute"):
            answer = client.delete(f"/api/v1/{path}")
            assert (answer.status_code, "scope erase" in answer.json()["detail"]) == (403, True)
        assert client.delete("/api/v1/accesses", params={"before": "2090-01-01"}).status_code == 403


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
