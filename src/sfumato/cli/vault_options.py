"""Which vault a command works on, and what opens it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.errors import VaultError

if TYPE_CHECKING:
    from sfumato.client import RemoteVault
    from sfumato.keys.lock import Secret
    from sfumato.vault import Vault

location_option = click.option(
    "-v",
    "--vault",
    "--url",
    "location",
    default="vault",
    envvar="SFUMATO_VAULT",
    show_default=True,
    help="The vault: a folder, the URL of a PostgreSQL database, or that of a service (with SFUMATO_TOKEN). Also "
    "SFUMATO_VAULT.",
)

key_option = click.option(
    "--key-file",
    "key_path",
    type=click.Path(path_type=Path),
    help="The key file; else SFUMATO_KEY, SFUMATO_KEY_FILE, SFUMATO_PASSPHRASE, or you are asked.",
)


def vault_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that needs the vault's secret."""
    return location_option(key_option(command))


def is_service(location: str) -> bool:
    """Whether a vault is behind a service."""
    return location.startswith(("http://", "https://"))


def open_vault(location: str, key_path: Path | None = None) -> Vault | RemoteVault:
    """A vault that is opened here, or behind a service."""
    return connected(location) if is_service(location) else local_vault(location, key_path)


def connected(location: str) -> RemoteVault:
    """A service, with the token that the environment, or somebody who is asked, hands over."""
    from sfumato.client import connect

    token = os.environ.get("SFUMATO_TOKEN")
    if not token and sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True, err=True)
    return connect(location, token)


def local_vault(location: str, key_path: Path | None) -> Vault:
    """Open a vault with whatever opens it, asking for a passphrase if there is somebody to ask."""
    if is_service(location):
        raise VaultError("this works on the vault itself, not through a service; run it where the vault is")
    from sfumato.keys.key import Key
    from sfumato.vault import Vault
    from sfumato.vault.unlocking import find_secret

    if key_path is not None:
        return Vault.open(location, secret=Key.load(key_path))
    vault = Vault.open(location)
    if vault.opens_with == "passphrase" and find_secret(location, "passphrase") is None and sys.stdin.isatty():
        return Vault.open(location, secret=click.prompt("Passphrase", hide_input=True, err=True))
    return vault


def new_secret(
    key_path: Path | None, question: str, *, location: str | None = None, known: bool = False
) -> Secret | None:
    """A secret to lock a vault with: from a key file, which is made if need be, the environment, or a question.

    Args:
        location: a vault whose secret the environment, or the file beside it, may hold.
        known: it opens a vault that exists, so that none is made, and it is asked for once.

    """
    from sfumato.keys.key import Key
    from sfumato.vault.unlocking import find_secret

    if key_path is not None:
        if not key_path.exists() and not known:
            Key.generate().save(key_path)
        return Key.load(key_path)
    found = None if location is None else find_secret(location)
    if found is not None or not sys.stdin.isatty():
        return found
    typed: str = click.prompt(
        question, hide_input=True, confirmation_prompt=not known, default="", show_default=False, err=True
    )
    return typed or None
