"""Options that choose the vault of a command, and the secret or token that opens it."""

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
    from sfumato.vault.protocol import VaultProtocol

location_option = click.option(
    "-v",
    "--vault",
    "--url",
    "location",
    default="vault",
    envvar="SFUMATO_VAULT",
    show_default=True,
    help="The vault: a folder, the URL of a PostgreSQL database, or the URL of a service (with SFUMATO_TOKEN). Also "
    "SFUMATO_VAULT.",
)

key_option = click.option(
    "--key-file",
    "key_path",
    type=click.Path(path_type=Path),
    help="The key file; by default SFUMATO_KEY, SFUMATO_KEY_FILE, SFUMATO_PASSPHRASE, or a prompt.",
)


def vault_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that needs the vault's secret."""
    return location_option(key_option(command))


def is_service(location: str) -> bool:
    """Whether the location of a vault is the URL of a service."""
    return location.startswith(("http://", "https://"))


def open_vault(location: str, key_path: Path | None = None) -> VaultProtocol:
    """Open a vault on this machine with its secret, or connect to a service."""
    return connect_service(location) if is_service(location) else local_vault(location, key_path)


def connect_service(location: str) -> RemoteVault:
    """Connect to a service with the token from the environment, or from a prompt."""
    from sfumato.client import connect

    token = os.environ.get("SFUMATO_TOKEN")
    if not token and sys.stdin.isatty():
        token = click.prompt("Token", hide_input=True, err=True)
    return connect(location, token)


def local_vault(location: str, key_path: Path | None) -> Vault:
    """Open a vault on this machine with its key or passphrase; prompt for a passphrase in a terminal."""
    if is_service(location):
        raise VaultError("this command needs the vault itself, not a service; run it on the machine of the vault")
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
    """A secret that locks a vault: from a key file, which is created if needed, the environment, or a prompt.

    Args:
        location: a vault whose secret may be in the environment or in the key file beside it.
        known: the secret of an existing vault: no key file is created, and the prompt does not ask twice.

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


def open_surveys(location: str, key_path: Path | None) -> Any:
    """The surveys of a vault on this machine, or behind a service."""
    if is_service(location):
        return connect_service(location).surveys
    from sfumato.survey.surveys import Surveys

    return Surveys(local_vault(location, key_path))
