"""Operators: people who manage a vault in the browser. The ledger keeps an Argon2id hash of each one's password.

The password is first mixed with a key derived from the master key, so that the hashes in a ledger or a backup cannot
even be guessed at by who lacks that key.
"""

from __future__ import annotations

import hmac
import secrets
from functools import cache
from typing import TYPE_CHECKING, Any

from sfumato.errors import UnknownSubject, VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.vault.names import checked

if TYPE_CHECKING:
    from sfumato.vault.vault import Vault

SHORTEST = 12
"""Characters of a password."""


def enrol(vault: Vault, name: str, password: str) -> Entry:
    """Let somebody in with this password, and with no earlier one."""
    checked("operator", name)
    if len(password) < SHORTEST or len(password) > 1000:
        raise VaultError(
            f"a password must have at least {SHORTEST} characters, got {len(password)}; choose a longer one"
        )
    keys = vault.keys()
    with vault.ledger.writing(keys) as writing:
        master = keys[writing.head().generation]
        body = {"hash": _hasher().hash(_mixed(master, password))}
        return writing.append("enrolled", "operator", body, recipient=name)


def dismiss(vault: Vault, name: str) -> Entry:
    """Let somebody in no more."""
    with vault.ledger.writing(vault.keys()) as writing:
        before = writing.latest("operator", recipient=name)
        if before is None:
            raise UnknownSubject(f"there is no operator called {name!r}; `sfumato operator list` shows all")
        return before if before.action == "dismissed" else writing.append("dismissed", "operator", {}, recipient=name)


def names(vault: Vault) -> list[str]:
    """All who may sign in."""
    with vault.ledger.reading() as reading:
        return [entry.recipient for entry in reading.current("operator") if entry.action == "enrolled"]


def enrolment(vault: Vault, name: str) -> int | None:
    """The number of the entry by which somebody may sign in now; another one after every change of the password."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        entry = reading.latest("operator", recipient=name)
    vouched = entry is not None and entry.action == "enrolled" and entry.generation in keys
    return entry.number if entry is not None and vouched else None


def is_right(vault: Vault, name: str, password: str) -> bool:
    """Whether this is the operator's password; it takes as long for a name that nobody has."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        entry = reading.latest("operator", recipient=name)
    from argon2.exceptions import VerificationError  # noqa: PLC0415 - an extra

    enrolled = entry is not None and entry.action == "enrolled" and entry.generation in keys
    kept = str(entry.body["hash"]) if enrolled and entry is not None else _nobody()
    master = keys[entry.generation] if enrolled and entry is not None else Key.from_bytes(bytes(32))
    try:
        return bool(_hasher().verify(kept, _mixed(master, password[:1000]))) and enrolled
    except VerificationError:
        return False


def _mixed(master: Key, password: str) -> bytes:
    return hmac.digest(master.derive("operators").expose(), password.encode("utf-8", "surrogatepass"), "sha256")


def _hasher() -> Any:
    try:
        from argon2 import PasswordHasher  # noqa: PLC0415 - an extra
    except ImportError:
        raise VaultError("passwords need argon2; run `pip install 'sfumato[serve]'`") from None
    return PasswordHasher()  # Argon2id, with the library's recommended cost


@cache
def _nobody() -> str:
    """The hash of a password that nobody has."""
    return str(_hasher().hash(secrets.token_bytes(32)))
