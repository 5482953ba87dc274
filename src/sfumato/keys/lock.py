"""Locks: how a vault keeps its master key without ever writing it in plain.

A lock is opened by a secret that is not in the vault: a passphrase, or another key from a file or from the
environment. The master key lies wrapped in AES-256-GCM, bound to the vault and the generation that it belongs to.
"""

from __future__ import annotations

import secrets
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from sfumato.errors import CustodyError
from sfumato.keys.key import BYTES, Key

Secret = Key | str
"""What opens a lock: a key, or a passphrase."""

_SALT, _NONCE = 16, 12
_COST = {"iterations": 3, "lanes": 4, "memory_cost": 64 * 1024}
"""Of Argon2id: RFC 9106's second choice, 64 MiB."""

WRONG = "the vault could not be opened with this passphrase or key; give the one it was locked with"
"""The one answer to every wrong secret, whatever is wrong with it."""


def wrap(master: Key, secret: Secret, owner: str) -> dict[str, Any]:
    """The lock that holds a master key for an owner, as JSON."""
    salt, nonce = secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE)
    lock: dict[str, Any] = {"opens": "key", "salt": salt.hex(), "nonce": nonce.hex()}
    if isinstance(secret, str):
        if not secret or not secret.isprintable():
            raise CustodyError(
                "a passphrase must be text that can be typed, and not empty; choose a long one that nobody guesses"
            )
        lock |= {"opens": "passphrase", "argon2id": _COST}
    sealed = AESGCM(_wrapping(lock, secret)).encrypt(nonce, master.expose(), owner.encode())
    return lock | {"sealed": sealed.hex()}


def unwrap(lock: dict[str, Any], secret: Secret, owner: str) -> Key:
    """The master key that a lock holds."""
    if isinstance(secret, str) == (lock.get("opens") == "key"):
        raise CustodyError(WRONG)
    try:
        opened = AESGCM(_wrapping(lock, secret))
        return Key(opened.decrypt(bytes.fromhex(lock["nonce"]), bytes.fromhex(lock["sealed"]), owner.encode()))
    except (InvalidTag, ValueError, KeyError):  # a passphrase that is no text is a ValueError too
        raise CustodyError(WRONG) from None


def _wrapping(lock: dict[str, Any], secret: Secret) -> bytes:
    """The key that wraps the master key."""
    salt = bytes.fromhex(lock["salt"])
    if isinstance(secret, Key):
        return secret.derive("lock", salt).expose()
    return Argon2id(salt=salt, length=BYTES, **lock["argon2id"]).derive(secret.encode())
