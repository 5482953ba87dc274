"""Sign-in through an OpenID Connect provider: who is admitted, and what no provider or visitor can bring about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from click.testing import CliRunner
from joserfc.jwk import OctKey, RSAKey
from tests.openid import SECRET, MadeUpProvider, made_up_provider, provider_file
from tests.serving import PASSWORD, Service, serving, sqlite_vault

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import ServiceError, VaultError
from sfumato.service.openid import read_provider
from sfumato.vault import operators
from sfumato.vault.messages import sentence

ANNA = "anna@example.org"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, MadeUpProvider]]:
    folder = tmp_path_factory.mktemp("openid")
    vault = sqlite_vault(folder)
    operators.enrol(vault, "anna", identity=ANNA)
    operators.enrol(vault, "berta", role="viewer", identity="Berta@Example.org")
    with (
        made_up_provider() as provider,
        serving(vault, folder, "--openid", str(provider_file(folder, provider.issuer))) as service,
    ):
        yield service, provider


def begin(visitor: httpx2.Client) -> dict[str, str]:
    """Go to the provider; what the service sends along."""
    sent = visitor.get("/signin/openid")
    assert sent.status_code == 303
    return {name: values[0] for name, values in parse_qs(urlsplit(sent.headers["location"]).query).items()}


def come_back(visitor: httpx2.Client, **query: str) -> httpx2.Response:
    return visitor.get("/signin/openid/callback", params={"code": "c", **query})


def is_signed_in(visitor: httpx2.Client) -> bool:
    return visitor.get("/console").status_code == 200


def test_an_operator_is_admitted_with_the_role_of_the_vault(site: tuple[Service, MadeUpProvider]) -> None:
    service, provider = site
    with httpx2.Client(base_url=service.url) as visitor:
        sent = begin(visitor)
        assert sent["code_challenge_method"] == "S256"
        assert sent["redirect_uri"] == f"{service.url}/signin/openid/callback"
        assert SECRET not in str(sent)
        provider.says(sent["nonce"], email="berta@example.org")
        admitted = come_back(visitor, state=sent["state"])
        assert admitted.status_code == 200
        cookie = next(one for one in admitted.headers.get_list("set-cookie") if one.startswith("sfumato_session="))
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert is_signed_in(visitor)
        assert visitor.get("/api/v1/me").json()["scopes"] == ["read"]
        assert come_back(visitor, state=sent["state"]).status_code == 403  # what was begun is used up
        operators.enrol(service.vault, "berta", role="editor")
        assert not is_signed_in(visitor)
    assert SECRET not in service.log.read_text()


FORGED = RSAKey.generate_key(2048, {"kid": "one"})
FAULTS: dict[str, dict[str, Any]] = {
    "another key": {"key": FORGED},
    "no signature": {"header": {"alg": "none"}, "key": OctKey.import_key("x" * 32)},
    "the client's secret": {"header": {"alg": "HS256", "kid": "secret"}, "key": OctKey.import_key(SECRET)},
    "another sign-in": {"nonce": "other"},
    "another client": {"aud": "others"},
    "another issuer": {"iss": "https://elsewhere.example"},
    "an old token": {"exp": 1_000_000_000},
    "an address that is not verified": {"email_verified": False},
    "an address verified by a text": {"email_verified": "true"},
    "no address": {"email": None},
    "somebody who is no operator": {"email": "eve@example.org"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_other_token_is_believed(site: tuple[Service, MadeUpProvider], fault: str) -> None:
    service, provider = site
    with httpx2.Client(base_url=service.url) as visitor:
        for told, admitted in ((FAULTS[fault], False), ({}, True)):  # the same visitor with a right one: the control
            sent = begin(visitor)
            provider.says(**{"nonce": sent["nonce"], **told})
            assert come_back(visitor, state=sent["state"]).status_code in ((200,) if admitted else (403, 502))
            assert is_signed_in(visitor) == admitted


def test_an_answer_belongs_to_the_browser_that_asked(site: tuple[Service, MadeUpProvider]) -> None:
    service, provider = site
    with httpx2.Client(base_url=service.url) as visitor, httpx2.Client(base_url=service.url) as other:
        sent = begin(visitor)
        provider.says(sent["nonce"])
        assert "not begun in this browser" in come_back(other, state=sent["state"]).text
        assert "not begun in this browser" in come_back(visitor, state="guessed").text
        sent = begin(visitor)
        assert "Another provider" in come_back(visitor, state=sent["state"], iss="https://evil.example").text
        sent = begin(visitor)
        denied = visitor.get("/signin/openid/callback", params={"error": "<b>no</b>", "state": sent["state"]})
        assert denied.status_code == 403
        assert "<b>no" not in denied.text
        assert not is_signed_in(visitor)
        assert not is_signed_in(other)


def test_visits_that_nobody_began_lock_nobody_out(site: tuple[Service, MadeUpProvider], tmp_path: Path) -> None:
    """Any page can send its visitors to where the provider sends browsers back."""
    service, _ = site
    with serving(
        service.vault, tmp_path, "--openid", str(provider_file(tmp_path, site[1].issuer)), "--tries", "3"
    ) as own:
        for _ in range(6):
            assert httpx2.get(f"{own.url}/signin/openid/callback?state=x&code=y").status_code == 403
        operators.enrol(service.vault, "anna", PASSWORD)
        signed_in = httpx2.post(f"{own.url}/signin", data={"name": "anna", "password": PASSWORD})
        assert signed_in.status_code == 303


def test_a_provider_that_is_another_or_gone_is_said(site: tuple[Service, MadeUpProvider], tmp_path: Path) -> None:
    service, provider = site
    provider.metadata = {"issuer": "https://elsewhere.example"}
    path = str(provider_file(tmp_path, provider.issuer))
    with serving(service.vault, tmp_path, "--openid", path) as second:
        answer = httpx2.get(f"{second.url}/signin/openid")
        assert answer.status_code == 502
        assert "could not be asked who you are; try again, or sign in with a password" in answer.text
        assert "Town Hall" in answer.text
    provider.metadata = {}
    with serving(service.vault, tmp_path) as third:
        assert "openid" not in httpx2.get(f"{third.url}/signin").text
        assert httpx2.get(f"{third.url}/signin/openid").status_code == 404


def test_operators_with_identities(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    entry = operators.enrol(vault, "dora", role="viewer", identity="dora@example.org")
    assert (
        sentence(entry) == "Registered the operator dora, as viewer, who is dora@example.org at the identity provider."
    )
    assert not operators.verify_password(vault, "dora", "")
    found = operators.find_by_identity(vault, "DORA@example.org")
    assert found is not None
    assert (found.name, found.role) == ("dora", "viewer")
    assert operators.find_by_identity(vault, "") is None
    operators.enrol(vault, "boss", identity="boss@example.org")
    assert operators.find_by_identity(vault, "bo\u017f\u017f@example.org") is None  # another mailbox, with long s
    operators.enrol(vault, "emil", identity="aBc")
    assert operators.find_by_identity(vault, "abc") is None  # no address: a subject
    assert operators.find_by_identity(vault, "aBc") is not None
    with pytest.raises(VaultError, match="is the operator dora already"):
        operators.enrol(vault, "anna", identity="Dora@example.org")
    with pytest.raises(VaultError, match="needs a password or an identity"):
        operators.enrol(vault, "dora", identity="")
    operators.enrol(vault, "anna", identity=ANNA)
    assert operators.verify_password(vault, "anna", PASSWORD)  # a second way, not another one
    operators.enrol(vault, "anna", identity="")
    assert operators.find_by_identity(vault, ANNA) is None
    operators.dismiss(vault, "dora")
    assert operators.find_by_identity(vault, "dora@example.org") is None


@pytest.mark.parametrize(
    ("more", "mode", "message"),
    [
        ({}, 0o644, "chmod 600"),
        ({"issuer": "http://login.example.org"}, 0o600, "must be an https address"),
        ({"client_secret": ""}, 0o600, "must have the texts"),
        ({"colour": "red"}, 0o600, "colour"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, more: dict[str, str], mode: int, message: str) -> None:
    path = provider_file(tmp_path, **{"issuer": "https://login.example.org", **more})
    path.chmod(mode)
    with pytest.raises(ServiceError, match=message) as error:
        read_provider(path)
    assert SECRET not in str(error.value)
    assert SECRET not in repr(read_provider(provider_file(tmp_path, "https://login.example.org")))


def test_the_command_line_adds_an_operator_without_a_password(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    sf.Key.from_bytes(bytes(range(32))).save(tmp_path / "k")
    arguments = [
        "operator",
        "add",
        "emil",
        "--identity",
        "emil@example.org",
        "--role",
        "editor",
        "-v",
        str(vault.location),
        "--key-file",
        str(tmp_path / "k"),
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "who is emil@example.org" in done.output
