"""Operators: people who sign in to the web console with a password, of which the ledger stores an Argon2id hash.

The password is first combined with a key derived from the master key (a pepper), so that the hashes in a ledger or a
backup cannot be attacked by guessing without that key.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from functools import cache
from typing import Any

from sfumato.errors import UnknownSubject, VaultError, install_hint
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.vault.lifecycle import VaultLifecycle
from sfumato.vault.names import validated_name

MIN_LENGTH = 12
"""The least number of characters of a password."""

_MAX_LENGTH = 1000
"""The most characters of a password: hashing longer ones would take long."""


def enrol(vault: VaultLifecycle, name: str, password: str) -> Entry:
    """Register an operator, or replace an operator's password."""
    validated_name("operator", name)
    if not MIN_LENGTH <= len(password) <= _MAX_LENGTH:
        raise VaultError(
            f"a password must have at least {MIN_LENGTH} and at most {_MAX_LENGTH} characters, got {len(password)}; "
            "choose another one"
        )
    keys = vault.keys()
    with vault.ledger.writing(keys) as writing:
        master = keys[writing.head().generation]
        body = {"hash": _hasher().hash(_peppered(master, password))}
        return writing.append("enrolled", "operator", body, recipient=name)


def dismiss(vault: VaultLifecycle, name: str) -> Entry:
    """Remove an operator, who can no longer sign in."""
    with vault.ledger.writing(vault.keys()) as writing:
        before = writing.latest("operator", recipient=name)
        if before is None:
            raise UnknownSubject(f"there is no operator called {name!r}; `sfumato operator list` shows all")
        return before if before.action == "dismissed" else writing.append("dismissed", "operator", {}, recipient=name)


def names(vault: VaultLifecycle) -> list[str]:
    """The names of all operators who may sign in."""
    with vault.ledger.reading(vault.keys()) as reading:
        return [entry.recipient for entry in reading.current("operator") if entry.action == "enrolled"]


def enrolment(vault: VaultLifecycle, name: str) -> int | None:
    """The number of the entry that allows an operator to sign in; it changes with the password."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        entry = reading.latest("operator", recipient=name)
    return entry.number if entry is not None and _is_valid(entry, keys) else None


def verify_password(vault: VaultLifecycle, name: str, password: str) -> bool:
    """Whether this is the operator's password; an unknown name takes as long, so that timing reveals no names."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        entry = reading.latest("operator", recipient=name)
    from argon2.exceptions import VerificationError  # noqa: PLC0415 - an extra

    if entry is not None and _is_valid(entry, keys):
        enrolled, stored, master = True, str(entry.body["hash"]), keys[entry.generation]
    else:
        enrolled, stored, master = False, _unknown_hash(), Key.from_bytes(bytes(32))
    try:
        return bool(_hasher().verify(stored, _peppered(master, password[:_MAX_LENGTH]))) and enrolled
    except VerificationError:
        return False


def _is_valid(entry: Entry, keys: Mapping[int, Key]) -> bool:
    """Whether an entry allows an operator to sign in; without its key, it cannot be authenticated."""
    return entry.action == "enrolled" and entry.generation in keys


def _peppered(master: Key, password: str) -> bytes:
    return hmac.digest(master.derive("operators").expose(), password.encode("utf-8", "surrogatepass"), "sha256")


def _hasher() -> Any:
    try:
        from argon2 import PasswordHasher  # noqa: PLC0415 - an extra
    except ImportError:
        raise VaultError(f"passwords need argon2; {install_hint('serve')}") from None
    return PasswordHasher()  # Argon2id, with the library's recommended cost


@cache
def _unknown_hash() -> str:
    """The hash of a random password."""
    return str(_hasher().hash(secrets.token_bytes(32)))
