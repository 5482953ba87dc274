"""Tokens: each lets in its own holder, with its own scopes, until it ends or is withdrawn, and nobody else."""

from __future__ import annotations

import datetime as dt
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.conftest import Site
from tests.schema import ENTRIES, tables_of

import sfumato as sf
from sfumato.errors import UnknownSubject, VaultError
from sfumato.vault import tokens
from sfumato.vault.messages import sentence
from sfumato.vault.tokens import authenticate, find

START = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)


@pytest.fixture
def now() -> list[dt.datetime]:
    return [START]


@pytest.fixture
def vault(site: Site, now: list[dt.datetime]) -> sf.Vault:
    made = site.create(clock=lambda: now[0])
    for name in ("clinic", "lab"):
        made.recipient(name)
    return made


def test_a_token_lets_its_holder_in_and_no_changed_one_does(vault: sf.Vault) -> None:
    ours, other = vault.token("clinic", note="nightly"), vault.token("lab")
    token = authenticate(vault, ours["token"])
    assert token is not None
    assert (token.id, token.holder, token.scopes, token.note, token.withdrawn) == (
        *(ours["id"], "clinic", ("copies",), "nightly"),
        False,
    )
    assert find(vault, ours["id"]) == token
    assert token.credential == f"token {ours['id']}"
    secret = ours["token"].rpartition(f"{ours['id']}_")[2]
    for wrong in (
        *(
            "",
            "sfu_",
            ours["token"][:-1],
            ours["token"] + "A",
            ours["token"].upper(),
            secret,
            f"sfu_{'0' * 12}_{secret}",
        ),
        *(f"sfu_{other['id']}_{secret}", ours["token"][:-1] + ("A" if ours["token"][-1] != "A" else "B")),
    ):
        assert authenticate(vault, wrong) is None, wrong
    assert find(vault, "0" * 12) is None


def test_a_token_has_256_random_bits_and_only_its_hash_is_stored(vault: sf.Vault) -> None:
    given = [vault.token("clinic")["token"] for _ in range(3)]
    assert all(re.fullmatch(r"sfu_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", one) for one in given)
    assert len({one[17:] for one in given}) == 3
    with tables_of(vault.ledger.database) as connection:
        stored = str(connection.execute(ENTRIES.select()).all())
    assert not any(one[17:] in stored for one in given)


def test_a_token_ends(vault: sf.Vault, now: list[dt.datetime]) -> None:
    given, default = vault.token("clinic", days=1), vault.token("clinic")
    now[0] = START + dt.timedelta(days=1, microseconds=-1)
    assert authenticate(vault, given["token"]) is not None
    now[0] = START + dt.timedelta(days=1)
    assert authenticate(vault, given["token"]) is find(vault, given["id"]) is None
    assert default["until"] == (START + dt.timedelta(days=90)).isoformat(timespec="microseconds")
    assert vault.token("clinic", days=3650)["until"].startswith("2036-04-2")
    for days in (0, -1, 3651):
        with pytest.raises(VaultError, match="1 to 3650 days"):
            vault.token("clinic", days=days)


def test_a_withdrawn_token_and_those_of_a_disabled_recipient_let_nobody_in(vault: sf.Vault) -> None:
    one, two, other = vault.token("clinic"), vault.token("clinic"), vault.token("lab")
    entry = vault.withdraw(one["id"])
    assert vault.withdraw(one["id"]) == entry
    assert (entry.action, entry.recipient) == ("withdrawn", "clinic")
    assert authenticate(vault, one["token"]) is None
    assert authenticate(vault, two["token"]) is not None
    vault.disable("clinic")
    assert authenticate(vault, two["token"]) is find(vault, two["id"]) is None
    assert authenticate(vault, other["token"]) is not None
    vault.enable("clinic")
    assert authenticate(vault, two["token"]) is not None
    vault.erase_recipient("clinic")
    assert authenticate(vault, two["token"]) is None
    for name in ("", "0" * 12):
        with pytest.raises(UnknownSubject, match="no token with the id"):
            vault.withdraw(name)


def test_a_token_has_only_the_scopes_of_its_holder(vault: sf.Vault) -> None:
    owner = authenticate(vault, vault.token()["token"])
    assert owner is not None
    assert (owner.holder, owner.scopes) == ("", ("read", "write"))
    metrics = authenticate(vault, vault.token(scopes=["metrics", "metrics"])["token"])
    assert metrics is not None
    assert metrics.scopes == ("metrics",)
    for holder, scopes in (("clinic", ["read"]), ("clinic", ["copies", "write"]), ("", ["copies"]), ("clinic", [])):
        with pytest.raises(VaultError, match="scopes that its holder may have"):
            vault.token(holder, scopes=scopes)
    with pytest.raises(UnknownSubject):
        vault.token("nobody")
    assert vault.token("clinic", note="x" * 200)
    for note in ("x" * 201, "\ud800"):
        with pytest.raises(VaultError, match="at most 200 characters"):
            vault.token("clinic", note=note)
    assert [one.holder for one in vault.tokens("clinic")] == ["clinic"]
    assert sorted(one.holder for one in vault.tokens()) == ["", "", "clinic"]
    assert {one.last_use for one in vault.tokens()} == {""}
    assert [one.holder for one in vault.tokens("")] == ["", ""]


def test_a_link_is_used_up_by_the_first_who_opens_it(vault: sf.Vault) -> None:
    given = vault.token("clinic", scopes=["link"], days=7)["token"]
    token = tokens.authenticate(vault, given)
    assert token is not None
    assert (token.scopes, token.opened) == (("link",), "")
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda _: tokens.open_link(vault, token), range(8))) == [False] * 7 + [True]
    found = tokens.find(vault, token.id)
    assert found is not None
    assert found.opened.startswith("20")
    assert "clinic signed in with the link" in sentence(vault.log()[-1])
    vault.withdraw(token.id)
    assert not tokens.open_link(vault, token)
    assert tokens.find(vault, token.id) is None


def test_a_link_has_no_other_scope(vault: sf.Vault) -> None:
    with pytest.raises(VaultError, match="no other scope"):
        vault.token("clinic", scopes=["link", "copies"])
    with pytest.raises(VaultError, match="scopes that its holder may have"):
        vault.token(scopes=["link"])
    assert vault.tokens("clinic") == []
