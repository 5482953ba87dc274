"""Unlocking a vault: finding its passphrase or key, and unwrapping the master keys with it."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.errors import CustodyError, TamperedError
from sfumato.keys.key import Key
from sfumato.keys.lock import Secret, unwrap, wrap
from sfumato.keys.signature import public_key
from sfumato.ledger.database import is_url
from sfumato.ledger.reader import Generation, Head

KEY, KEY_FILE, PASSPHRASE = "SFUMATO_KEY", "SFUMATO_KEY_FILE", "SFUMATO_PASSPHRASE"

_LOST = (
    "If it is lost, it cannot be recovered: nobody can read the stored tables, and no further copy can share the noise "
    "of earlier ones. `sfumato rekey --lost` creates a new master key, and shows the disclosure risk of doing so"
)


def find_secret(location: str | Path, opens_with: str | None = None) -> Secret | None:
    """The secret from the environment, else from the key file beside the vault's folder; `None` if there is none.

    Args:
        opens_with: look only for a `passphrase`, or only for a `key`.

    """
    found = key_from_environment() if opens_with != "passphrase" else None
    if found is not None:
        return found
    if os.environ.get(PASSPHRASE) and opens_with != "key":
        return os.environ[PASSPHRASE]
    beside = key_file(location)
    return Key.load(beside) if opens_with != "passphrase" and beside is not None and beside.exists() else None


def key_from_environment() -> Key | None:
    """The key in `SFUMATO_KEY`, else in the file that `SFUMATO_KEY_FILE` names; `None` if neither is set."""
    if os.environ.get(KEY):
        return _key_from_hex(os.environ[KEY])
    return Key.load(os.environ[KEY_FILE]) if os.environ.get(KEY_FILE) else None


def key_file(location: str | Path) -> Path | None:
    """The default key file of a vault: beside its folder, so that a copy of the folder does not contain it."""
    if is_url(location):
        return None
    folder = Path(location).absolute()
    return folder.with_name(folder.name + ".key")


def wrap_master_key(name: str, number: int, master: Key, secret: Secret) -> Generation:
    """A master key, wrapped with a secret; `name` is the random name of the vault, to which it is bound."""
    return Generation(number, master.fingerprint(), public_key(master), wrap(master, secret, f"{name}/{number}"))


def unwrap_master_keys(head: Head, generations: list[Generation], secret: Secret | None) -> dict[int, Key]:
    """All master keys that are not lost, by generation, including the current one.

    One that is recorded as lost stays so, even if the secret unlocks it: rows and tokens are those of the others.
    """
    if secret is None:
        raise CustodyError(
            f"the vault must be unlocked with its passphrase or key; set {PASSPHRASE}, {KEY_FILE} or {KEY}. {_LOST}"
        )
    unwrapped = {}
    for generation in generations:
        if generation.lost:
            continue
        master = unwrap(generation.lock, secret, f"{head.name}/{generation.number}")
        if (master.fingerprint(), public_key(master)) != (generation.fingerprint, generation.public):
            raise TamperedError(
                "the vault's public key must belong to its master key, and it was replaced; restore a backup"
            )
        unwrapped[generation.number] = master
    return unwrapped


def _key_from_hex(text: str) -> Key:
    try:
        return Key.from_bytes(bytes.fromhex(text.strip()))
    except (ValueError, CustodyError):
        raise CustodyError(f"{KEY} must be 64 hexadecimal digits, and it is not; correct it") from None
