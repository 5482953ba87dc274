"""Operators and their roles: what each role may do, changes that end sessions at once, and who may change whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.conftest import Site
from tests.service.test_security import csrf, signed_in
from tests.serving import PASSWORD, Service, populated_vault, serving, sqlite_vault

import sfumato as sf
from sfumato.errors import UnknownSubject, VaultError
from sfumato.vault import operators
from sfumato.vault.messages import sentence

OTHER = "another long password"

REQUESTS = {
    "look": ("GET", "/api/v1/recipients", None),
    "change": ("POST", "/api/v1/recipients", {"recipient": "press"}),
    "erase": ("DELETE", "/api/v1/recipients/nobody", None),
    "manage": ("PUT", "/api/v1/operators/dora", {"password": OTHER, "role": "viewer"}),
}
ALLOWED = {
    "viewer": {"look"},
    "editor": {"look", "change"},
    "administrator": {"look", "change", "erase", "manage"},
}


@contextmanager
def _session(service: Service, name: str, password: str = PASSWORD) -> Iterator[httpx2.Client]:
    """A client of a signed-in operator, with the token that changes need."""
    with signed_in(service, name=name, password=password) as client:
        client.headers["X-CSRF-Token"] = csrf(client, "/console/team")
        yield client


@pytest.mark.parametrize("role", list(operators.ROLES))
def test_a_role_allows_what_it_says(sqlite_service: Service, role: str) -> None:
    operators.enrol(sqlite_service.vault, "carl", PASSWORD, role)
    with _session(sqlite_service, "carl") as client:
        allowed = set()
        for what, (method, path, body) in REQUESTS.items():
            answer = client.request(method, path, json=body)
            if answer.status_code == 403:
                assert "Your role lacks the scope" in answer.json()["detail"]
            else:
                allowed.add(what)
        assert allowed == ALLOWED[role]
        page = client.get("/console/team").text
        assert ("Add an operator" in page) == (role == "administrator")
        assert "carl <span" in page


def test_a_new_role_holds_at_once_and_keeps_the_password(sqlite_service: Service) -> None:
    operators.enrol(sqlite_service.vault, "carl", PASSWORD, "editor")
    with _session(sqlite_service, "anna") as anna, _session(sqlite_service, "carl") as carl:
        assert anna.put("/api/v1/operators/carl", json={"role": "viewer"}).status_code == 200
        assert carl.get("/api/v1/recipients").status_code == 401  # signed out
        assert anna.put("/api/v1/operators/nobody", json={"role": "viewer"}).status_code == 404
        assert anna.put("/api/v1/operators/carl", json={}).status_code == 422
        assert anna.put("/api/v1/operators/carl", json={"role": "king"}).status_code == 422
    with _session(sqlite_service, "carl") as carl:
        assert carl.post("/api/v1/recipients", json={"recipient": "press"}).status_code == 403
        listed = {one["name"]: one for one in carl.get("/api/v1/operators").json()}
    assert listed["carl"]["role"] == "viewer"
    assert listed["carl"]["last_use"]
    assert "hash" not in listed["carl"]


def test_nobody_changes_the_own_role_or_locks_everybody_out(sqlite_service: Service) -> None:
    with _session(sqlite_service, "anna") as anna:
        for answer in (
            anna.put("/api/v1/operators/anna", json={"role": "viewer"}),
            anna.put("/api/v1/operators/anna", json={"password": OTHER}),
            anna.delete("/api/v1/operators/anna"),
        ):
            assert (answer.status_code, "another administrator" in answer.json()["detail"]) == (403, True)
        assert anna.delete("/api/v1/operators/nobody").status_code == 404
        assert anna.put("/api/v1/operators/carl", json={"password": OTHER, "role": "editor"}).status_code == 200
        with _session(sqlite_service, "carl", OTHER) as carl:
            assert anna.delete("/api/v1/operators/carl").status_code == 200
            assert carl.get("/console/team").status_code == 303


def test_a_token_gives_nobody_more_than_it_has(sqlite_service: Service) -> None:
    """Otherwise a program that may manage operators could set a password that opens everything."""
    narrow = sqlite_service.vault.token(scopes=["read", "team"])["token"]
    with sqlite_service.client() as client:
        client.headers["Authorization"] = f"Bearer {narrow}"
        for path, body in (
            ("new", {"password": OTHER}),
            ("new", {"password": OTHER, "role": "editor"}),
            ("anna", {"password": OTHER}),
            ("anna", {"role": "viewer"}),
        ):
            assert client.put(f"/api/v1/operators/{path}", json=body).status_code == 403
        assert client.delete("/api/v1/operators/anna").status_code == 403
        assert client.put("/api/v1/operators/new", json={"password": OTHER, "role": "viewer"}).status_code == 200
        assert client.post("/api/v1/me/password", json={"current": OTHER, "password": OTHER}).status_code == 403


def test_one_changes_the_own_password_with_the_present_one(sqlite_service: Service) -> None:
    operators.enrol(sqlite_service.vault, "carl", PASSWORD, "viewer")
    with _session(sqlite_service, "carl") as carl:
        wrong = carl.post("/api/v1/me/password", json={"current": "wrong", "password": OTHER})
        assert (wrong.status_code, wrong.json()["detail"]) == (403, "The current password is wrong; try again.")
        short = carl.post("/api/v1/me/password", json={"current": PASSWORD, "password": "short"})
        assert (short.status_code, "at least 12" in short.json()["detail"]) == (422, True)
        assert carl.post("/api/v1/me/password", json={"current": PASSWORD, "password": OTHER}).status_code == 200
        assert carl.get("/console/team").status_code == 303
    with _session(sqlite_service, "carl", OTHER) as carl:
        assert carl.get("/api/v1/me").json()["scopes"] == ["read"]
    last = sqlite_service.vault.log()[-1]
    assert (last.actor, last.recipient) == ("owner carl", "carl")
    assert not operators.verify_password(sqlite_service.vault, "carl", PASSWORD)


def test_wrong_guesses_of_the_present_password_are_limited(tmp_path: Path) -> None:
    """A browser that was left open must not be a way to find out the password."""
    with serving(sqlite_vault(tmp_path), tmp_path, "--tries", "4") as service, _session(service, "anna") as anna:
        body = {"current": "wrong", "password": OTHER}
        statuses = [anna.post("/api/v1/me/password", json=body).status_code for _ in range(6)]
        assert statuses == [403] * 4 + [429] * 2


def test_roles_survive_a_new_master_key(site: Site) -> None:
    vault = populated_vault(site)
    operators.enrol(vault, "carl", PASSWORD, "editor")
    vault.rekey(secret=sf.Key.from_bytes(bytes(range(1, 33))))
    assert sentence(operators.enrol(vault, "carl", role="viewer")) == "Changed the operator carl: viewer."
    assert operators.enrol(vault, "carl", role="viewer") == vault.log()[-1]  # again: nothing changes
    assert operators.verify_password(vault, "carl", PASSWORD)
    assert {one.name: one.role for one in operators.list_operators(vault)} == {
        "anna": "administrator",
        "carl": "viewer",
    }
    operators.enrol(vault, "carl", OTHER)
    found = operators.find(vault, "carl")
    assert found is not None
    assert (found.role, found.scopes) == ("viewer", ("read",))
    with pytest.raises(VaultError, match="must be one of viewer, editor, administrator"):
        operators.enrol(vault, "carl", role="king")
    operators.dismiss(vault, "carl")
    with pytest.raises(UnknownSubject, match="no operator called 'carl'"):
        operators.enrol(vault, "carl", role="viewer")
