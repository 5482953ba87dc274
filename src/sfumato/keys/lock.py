"""Key wrapping: encryption of a vault's master key under a passphrase or another key.

The secret that unwraps it is not in the vault: a passphrase, or a key from a file or from the environment. The master
key is encrypted with AES-256-GCM, and authenticated together with the vault and the key generation it belongs to.
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
"""The secret that unwraps a master key: a key, or a passphrase."""

_SALT, _NONCE = 16, 12
_COST = {"iterations": 3, "lanes": 4, "memory_cost": 64 * 1024}
"""Parameters of Argon2id: the second recommended option of RFC 9106, with 64 MiB of memory."""

_MAX_COST = {"iterations": 16, "lanes": 16, "memory_cost": 256 * 1024}
"""The largest parameters that are accepted: an altered lock must not take the machine's memory or hours."""

MIN_LENGTH, _MIN_DISTINCT = 12, 5
"""The least number of characters of a passphrase, and of distinct ones among them."""

WRONG = "the vault could not be opened with this passphrase or key; give the one it was locked with"
"""The one error message for every wrong secret, so that it reveals nothing about what is wrong."""


def wrap(master: Key, secret: Secret, owner: str) -> dict[str, Any]:
    """The wrapped master key of an owner (vault and generation), as JSON."""
    salt, nonce = secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE)
    lock: dict[str, Any] = {"opens": "key", "salt": salt.hex(), "nonce": nonce.hex()}
    if isinstance(secret, str):
        if len(secret) < MIN_LENGTH or len(set(secret)) < _MIN_DISTINCT or not secret.isprintable():
            raise CustodyError(
                f"a passphrase must be printable text of at least {MIN_LENGTH} characters, {_MIN_DISTINCT} of them "
                "distinct, since somebody with the vault can try as many as they like; choose four words at random, say"
            )
        lock |= {"opens": "passphrase", "argon2id": _COST}
    sealed = AESGCM(_wrapping(lock, secret)).encrypt(nonce, master.expose(), owner.encode())
    return lock | {"sealed": sealed.hex()}


def unwrap(lock: dict[str, Any], secret: Secret, owner: str) -> Key:
    """The master key, decrypted with the secret that it was wrapped with."""
    if isinstance(secret, str) == (lock.get("opens") == "key"):
        raise CustodyError(WRONG)
    try:
        cipher = AESGCM(_wrapping(lock, secret))
        return Key(cipher.decrypt(bytes.fromhex(lock["nonce"]), bytes.fromhex(lock["sealed"]), owner.encode()))
    except (InvalidTag, ValueError, KeyError, TypeError):  # a passphrase that cannot be encoded is a ValueError too
        raise CustodyError(WRONG) from None


def _wrapping(lock: dict[str, Any], secret: Secret) -> bytes:
    """The key-encryption key, derived from the secret and the salt."""
    salt = bytes.fromhex(lock["salt"])
    if isinstance(secret, Key):
        return secret.derive("lock", salt).expose()
    cost = {name: lock["argon2id"][name] for name in _MAX_COST}
    if any(type(value) is not int or not 0 < value <= _MAX_COST[name] for name, value in cost.items()):
        raise ValueError("parameters that no vault has")
    return Argon2id(salt=salt, length=BYTES, **cost).derive(secret.encode())
