"""Operators: people who sign in to the web console, with a password or through an OpenID Connect provider.

The ledger stores an Argon2id hash of a password, which is first combined with a key derived from the master
key (a pepper), so that the hashes in a ledger or a backup cannot be attacked by guessing without that key.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sfumato.errors import UnknownSubject, VaultError, install_hint, nearest
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.vault.lifecycle import VaultLifecycle
from sfumato.vault.names import validated_name
from sfumato.vault.tokens import OWNER

ROLES = {"viewer": ("read",), "editor": ("read", "write"), "administrator": OWNER}
"""What operators may do, in scopes of tokens: look, also change, or everything, the other operators included."""

_PEPPER = "generation"
"""The key, in an entry that kept a password, of the generation of the master key that the password is combined with."""

MIN_LENGTH = 12
"""The least number of characters of a password."""

_MAX_LENGTH = 1000
"""The most characters of a password: hashing longer ones would take long."""


@dataclass(frozen=True)
class Operator:
    """The public data of somebody who may sign in to the console."""

    name: str
    role: str
    since: str
    """When the password or the role was changed last."""
    enrolment: int
    """The number of the entry that allows to sign in: sessions end when it changes."""
    identity: str = ""
    """Who the operator is at the OpenID Connect provider; empty for one who signs in with a password only."""
    last_use: str = ""
    """When the console was used last, to within ten minutes; empty if it never was, or the access log was erased."""

    @classmethod
    def of(cls, entry: Entry, used: Mapping[str, str]) -> Operator:
        """The operator that an entry enrols; those of earlier versions could do everything."""
        role = str(entry.body.get("role", "administrator"))
        identity, name = str(entry.body.get("identity", "")), entry.recipient
        return cls(name, role, entry.at, entry.number, identity, used.get(f"owner {name}", ""))

    @property
    def scopes(self) -> tuple[str, ...]:
        """What the operator may do."""
        return ROLES[self.role]


def enrol(
    vault: VaultLifecycle,
    name: str,
    password: str | None = None,
    role: str | None = None,
    identity: str | None = None,
) -> Entry:
    """Register an operator, by default as an administrator, or change what is given: the others stay.

    An operator signs in with the password, or through an OpenID Connect provider that confirms the identity.
    """
    validated_name("operator", name)
    _check(role, password, identity)
    keys = vault.keys()
    with vault.ledger.writing(keys) as writing:
        valid = {entry.recipient: entry for entry in writing.current("operator") if _is_valid(entry, keys)}
        known = valid.pop(name, None)
        if known is None and not password and not identity:
            raise _unknown(name)
        if identity:
            _check_unused(identity, valid.values())
        before = {"hash": "", "role": "administrator", "identity": "", **(known.body if known else {})}
        before.pop(_PEPPER, None)
        given = {key: value for key, value in {"role": role, "identity": identity}.items() if value is not None}
        if known is not None and not password and before == before | given:
            return known
        body = before | given | _password(password, keys[writing.head().generation], known)
        if not body["hash"] and not body["identity"]:
            raise VaultError(f"{name} could no longer sign in: an operator needs a password or an identity; set one")
        return writing.append("enrolled", "operator", body, recipient=name)


def _password(password: str | None, master: Key, known: Entry | None) -> dict[str, Any]:
    """The hash of a new password; without one, what the hash of the kept one was combined with."""
    if password:
        return {"hash": _hasher().hash(_peppered(master, password))}
    return {} if known is None else {_PEPPER: _pepper(known)}


def dismiss(vault: VaultLifecycle, name: str) -> Entry:
    """Remove an operator, who can no longer sign in."""
    with vault.ledger.writing(vault.keys()) as writing:
        before = writing.latest("operator", recipient=name)
        if before is None:
            raise _unknown(name)
        return before if before.action == "dismissed" else writing.append("dismissed", "operator", {}, recipient=name)


def list_operators(vault: VaultLifecycle) -> list[Operator]:
    """All operators who may sign in."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        found = [entry for entry in reading.current("operator") if _is_valid(entry, keys)]
        used = reading.latest_accesses([f"owner {entry.recipient}" for entry in found])
    return [Operator.of(entry, used) for entry in found]


def find(vault: VaultLifecycle, name: str) -> Operator | None:
    """The operator with a name; `None` if there is none who may sign in."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        entry = reading.latest("operator", recipient=name)
    return Operator.of(entry, {}) if entry is not None and _is_valid(entry, keys) else None


def find_by_identity(vault: VaultLifecycle, identity: str) -> Operator | None:
    """The operator whom a provider knows by an identity; `None` if there is none who may sign in."""
    same = [one for one in list_operators(vault) if one.identity and _folded(one.identity) == _folded(identity)]
    return same[0] if len(same) == 1 else None


def verify_password(vault: VaultLifecycle, name: str, password: str) -> bool:
    """Whether this is the operator's password; an unknown name takes as long, so that timing reveals no names."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        entry = reading.latest("operator", recipient=name)
    from argon2.exceptions import VerificationError  # noqa: PLC0415 - an extra

    if entry is not None and _is_valid(entry, keys) and entry.body["hash"]:
        enrolled, stored, master = True, str(entry.body["hash"]), keys[_pepper(entry)]
    else:
        enrolled, stored, master = False, _unknown_hash(), Key.from_bytes(bytes(32))
    try:
        return bool(_hasher().verify(stored, _peppered(master, password[:_MAX_LENGTH]))) and enrolled
    except VerificationError:
        return False


def _is_valid(entry: Entry, keys: Mapping[int, Key]) -> bool:
    """Whether an entry allows an operator to sign in; without its key, it cannot be authenticated."""
    return entry.action == "enrolled" and entry.generation in keys and _pepper(entry) in keys


def _pepper(entry: Entry) -> int:
    """The generation of the master key that a password was combined with."""
    return int(entry.body.get(_PEPPER, entry.generation))


def _check(role: str | None, password: str | None, identity: str | None) -> None:
    """Refuse what cannot be a role, a password or an identity."""
    if role is not None and role not in ROLES:
        raise VaultError(f"the role of an operator must be one of {', '.join(ROLES)}; {nearest(role, list(ROLES))}")
    if password is not None and not MIN_LENGTH <= len(password) <= _MAX_LENGTH:
        raise VaultError(
            f"a password must have at least {MIN_LENGTH} and at most {_MAX_LENGTH} characters, got {len(password)}; "
            "choose another one"
        )
    if identity is not None and (
        len(identity) > _MAX_LENGTH or not identity.isprintable() or identity != identity.strip()
    ):
        raise VaultError("an identity must be one line without spaces around it, such as anna@example.org; correct it")


def _check_unused(identity: str, others: Iterable[Entry]) -> None:
    """Two operators with one identity could not be distinguished."""
    for other in others:
        if _folded(other.body.get("identity", "")) == _folded(identity):
            raise VaultError(f"{identity} is the operator {other.recipient} already; dismiss that one first")


def _folded(identity: str) -> str:
    """An e-mail address in small letters, of ASCII alone: others that look the same are other mailboxes."""
    return "".join(one.lower() if one.isascii() else one for one in identity) if "@" in identity else identity


def _unknown(name: str) -> UnknownSubject:
    return UnknownSubject(f"there is no operator called {name!r}; `sfumato operator list` shows all")


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
