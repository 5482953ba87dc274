"""`sfumato serve --check`: what is missing before a service can go into the world."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.errors import SfumatoError
from sfumato.ledger.database import is_url
from sfumato.service.settings import Settings
from sfumato.vault import Vault, operators, tokens

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Finding:
    """One point, and what to do about it."""

    good: bool
    text: str
    needed: bool = True
    """Whether the service cannot do without."""


def check(vault: Vault, settings: Settings, host: str, workers: int) -> Iterator[Finding]:
    """All points, in the order in which they are put right."""
    try:
        vault.keys()
        yield Finding(good=True, text="the vault opens with its secret")
    except SfumatoError as error:
        yield Finding(good=False, text=str(error))
        return
    yield _store(vault)
    named = operators.names(vault)
    yield Finding(
        bool(named),
        f"operators who may sign in: {', '.join(named) or 'none; run `sfumato operator add NAME`'}",
        needed=False,
    )
    live = [token for token in tokens.listed(vault) if token.in_force(vault.now())]
    yield Finding(
        bool(live), f"tokens in force: {len(live)}{'' if live else '; run `sfumato token add RECIPIENT`'}", needed=False
    )
    shared = is_url(vault.location)
    yield Finding(
        shared or workers == 1,
        f"{workers} worker{'s' if workers > 1 else ''} on {'PostgreSQL' if shared else 'SQLite'}"
        + ("" if shared or workers == 1 else "; several workers need a vault in PostgreSQL"),
    )
    yield _transport(settings, host)
    yield _pictures()


def _store(vault: Vault) -> Finding:
    try:
        vault.store.names("uploads")
        said = vault.store.put_text("uploads/00000000-check/part-00001-{}", "check")
        vault.store.drop(said["name"])
    except (SfumatoError, OSError) as error:
        return Finding(good=False, text=f"the store must be writable: {error}")
    return Finding(good=True, text="the store can be written to")


def _transport(settings: Settings, host: str) -> Finding:
    near = host in _LOOPBACK
    if settings.secure:
        return Finding(
            good=True,
            text="cookies go over TLS only: put a proxy with TLS in front, or use --insecure to try it on this machine",
        )
    return Finding(
        near, "plain HTTP" + ("; on this machine only" if near else " to the world: leave --insecure out"), needed=True
    )


def _pictures() -> Finding:
    there = importlib.util.find_spec("matplotlib") is not None
    return Finding(
        there, "audits draw their reports" if there else "audits need `pip install 'sfumato[plot]'`", needed=False
    )
