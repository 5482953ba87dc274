"""Deployment check (`sfumato serve --check`): what is missing before a service can be put into production."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.ledger.database import is_url
from sfumato.service.settings import Settings
from sfumato.vault import Vault, operators, tokens


@dataclass(frozen=True)
class Finding:
    """The result of one check, with what to do if it failed."""

    good: bool
    text: str
    needed: bool = True
    """Whether the service cannot start without it."""


def check(vault: Vault, settings: Settings, host: str, workers: int) -> Iterator[Finding]:
    """All findings, in the order in which they should be fixed."""
    try:
        vault.keys()
        yield Finding(good=True, text="the vault opens with its secret key")
    except SfumatoError as error:
        yield Finding(good=False, text=str(error))
        return
    yield _store(vault)
    yield from _accounts(vault)
    yield _database(vault, workers)
    yield _transport(settings, host)


def _accounts(vault: Vault) -> Iterator[Finding]:
    names = [one.name for one in operators.list_operators(vault)]
    yield Finding(
        bool(names),
        f"operators who may sign in: {', '.join(names) or 'none; run `sfumato operator add NAME`'}",
        needed=False,
    )
    live = [token for token in tokens.list_tokens(vault) if token.is_active(vault.now())]
    yield Finding(
        bool(live), f"tokens in force: {len(live)}{'' if live else '; run `sfumato token add RECIPIENT`'}", needed=False
    )


def _database(vault: Vault, workers: int) -> Finding:
    shared = is_url(vault.location)
    return Finding(
        shared or workers == 1,
        f"{workers} worker{'s' if workers > 1 else ''} on {'PostgreSQL' if shared else 'SQLite'}"
        + ("" if shared or workers == 1 else "; several workers need a vault in PostgreSQL"),
    )


def _store(vault: Vault) -> Finding:
    try:
        vault.store.names("uploads")
        stored = vault.store.put_text("uploads/00000000-check/part-00001-{}", "check")
        vault.store.drop(stored["name"])
    except (SfumatoError, OSError) as error:
        return Finding(good=False, text=f"the store must be writable: {error}")
    return Finding(good=True, text="the store is writable")


def _transport(settings: Settings, host: str) -> Finding:
    if settings.tls is not None:
        return _certificate(settings.tls)
    if not _is_loopback(host):
        return Finding(
            settings.secure and settings.proxied,
            f"plain HTTP on {host}, for a TLS proxy elsewhere"
            if settings.secure and settings.proxied
            else f"plain HTTP on {host} can be read by others: give --tls-certificate and --tls-key, or --proxied if a "
            "TLS proxy is in front",
        )
    if settings.secure:
        text = "cookies are sent over TLS only: put a TLS proxy in front, or try it on this machine with --insecure"
        return Finding(good=True, text=text)
    return Finding(good=True, text="plain HTTP, on this machine only")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _certificate(tls: tuple[Path, Path]) -> Finding:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*tls)
    except OSError as error:  # an error of TLS is one too
        reason = error.strerror or error
        text = f"a certificate must have its private key, both as PEM files without a passphrase: {reason}"
        return Finding(good=False, text=text)
    return Finding(good=True, text="HTTPS with a certificate of this service")
