"""Custody: which secret opens a vault, where it is looked for, and what it opens."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.errors import CustodyError, TamperedError
from sfumato.keys.key import Key
from sfumato.keys.lock import Secret, unwrap, wrap
from sfumato.keys.signature import public_key
from sfumato.ledger.database import is_url
from sfumato.ledger.ledger import Generation, Head

KEY, KEY_FILE, PASSPHRASE = "SFUMATO_KEY", "SFUMATO_KEY_FILE", "SFUMATO_PASSPHRASE"

_LOST = (
    "If it is lost, it is lost: no further copy can be made that fits those already given. `sfumato rekey --lost` "
    "starts anew, and says what that costs"
)


def find_secret(location: str | Path, opens_with: str | None = None) -> Secret | None:
    """The secret that the environment hands over, else the one in the key file beside the vault's folder.

    Args:
        opens_with: look only for a `passphrase`, or only for a `key`.

    """
    environment = os.environ
    if opens_with != "passphrase":
        if environment.get(KEY):
            return _from_digits(environment[KEY])
        if environment.get(KEY_FILE):
            return Key.load(environment[KEY_FILE])
    if environment.get(PASSPHRASE) and opens_with != "key":
        return environment[PASSPHRASE]
    beside = key_file(location)
    return Key.load(beside) if opens_with != "passphrase" and beside is not None and beside.exists() else None


def key_file(location: str | Path) -> Path | None:
    """The key file that belongs to a vault's folder: beside it, so that a copy of the folder does not hold it."""
    if is_url(location):
        return None
    folder = Path(location).absolute()
    return folder.with_name(folder.name + ".key")


def locked(head: str, number: int, master: Key, secret: Secret) -> Generation:
    """A master key in a lock that the secret opens; `head` is the vault's name."""
    return Generation(number, master.fingerprint(), public_key(master), wrap(master, secret, f"{head}/{number}"))


def masters(head: Head, generations: list[Generation], secret: Secret | None) -> dict[int, Key]:
    """All master keys that are not lost, by generation; the one in force among them."""
    if secret is None:
        raise CustodyError(
            f"the vault must be opened with its passphrase or key; set {PASSPHRASE}, {KEY_FILE} or {KEY}. {_LOST}"
        )
    opened = {}
    for generation in generations:
        try:
            master = unwrap(generation.lock, secret, f"{head.name}/{generation.number}")
        except CustodyError:
            if generation.lost:
                continue
            raise
        if (master.fingerprint(), public_key(master)) != (generation.fingerprint, generation.public):
            raise TamperedError("the vault's public key must belong to its master key, and it was replaced; restore it")
        opened[generation.number] = master
    return opened


def _from_digits(text: str) -> Key:
    try:
        return Key.from_bytes(bytes.fromhex(text.strip()))
    except (ValueError, CustodyError):
        raise CustodyError(f"{KEY} must hold 64 hexadecimal digits, and holds something else; correct it") from None
