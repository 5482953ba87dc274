"""Tokens: what a program shows to a service to be known. The ledger keeps a hash; the token is seen once.

A token is `sfu_ID_SECRET`, with a secret of 256 bits: so much that a plain hash of it tells nothing, and nobody can
guess it. The ledger vouches for the hash, so that who can write to the database cannot let himself in.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sfumato.errors import UnknownSubject, VaultError, nearest
from sfumato.ledger.chain import Entry
from sfumato.vault.grants import known
from sfumato.vault.names import is_text

if TYPE_CHECKING:
    from sfumato.vault.vault import Vault

RECIPIENT = ("copies",)
"""What a recipient's token allows: to see its own grants and fetch its own copies."""

OWNER = ("read", "write", "metrics")
"""What an owner's token may allow: to look, to change things, to read the service's figures."""

LONGEST = 3650
"""Days."""

_SHAPE = re.compile(r"sfu_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Token:
    """What is known of a token."""

    id: str
    holder: str
    """A recipient, or nobody: then it is the owner's."""
    scopes: tuple[str, ...]
    until: str
    note: str
    withdrawn: bool

    @classmethod
    def of(cls, entry: Entry) -> Token:
        """The token that an entry speaks of."""
        said = entry.body
        withdrawn = entry.action == "withdrawn"
        return cls(entry.dataset, entry.recipient, tuple(said["scopes"]), said["until"], said["note"], withdrawn)

    def in_force(self, now: datetime) -> bool:
        """Whether it opens anything now."""
        return not self.withdrawn and now < datetime.fromisoformat(self.until)


def issue(
    vault: Vault, holder: str = "", *, scopes: Iterable[str] | None = None, days: int = 90, note: str = ""
) -> tuple[str, Entry]:
    """A new token for a recipient, or for the owner, and its entry. It cannot be shown again."""
    allowed = RECIPIENT if holder else OWNER
    chosen = tuple(dict.fromkeys(allowed[:2] if scopes is None else scopes))
    strange = [scope for scope in chosen if scope not in allowed]
    if strange or not chosen:
        raise VaultError(f"a token must have scopes among its holder's; {nearest(''.join(strange[:1]), allowed)}")
    if not 1 <= days <= LONGEST:
        raise VaultError(f"a token must last between 1 and {LONGEST} days, got {days}")
    if not is_text(note) or len(note) > 200:
        raise VaultError("a token's note must be text of at most 200 letters; shorten it")
    name, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    until = (vault.now() + timedelta(days=days)).isoformat(timespec="microseconds")
    body = {"hash": _hash(secret), "scopes": list(chosen), "until": until, "note": note}
    with vault.ledger.writing(vault.keys()) as writing:
        if holder:
            known(writing, "recipient", holder)
        return f"sfu_{name}_{secret}", writing.append("issued", "token", body, dataset=name, recipient=holder)


def withdraw(vault: Vault, name: str) -> Entry:
    """Let a token open nothing any more."""
    with vault.ledger.writing(vault.keys()) as writing:
        found = writing.current("token", dataset=name, first=1) if name else []
        if not found:
            raise UnknownSubject(f"there is no token with the id {name!r}; `sfumato token list` shows all")
        if found[0].action == "withdrawn":
            return found[0]
        return writing.append("withdrawn", "token", found[0].body, dataset=name, recipient=found[0].recipient)


def listed(vault: Vault, holder: str | None = None) -> list[Token]:
    """All tokens, or those of one holder."""
    with vault.ledger.reading() as reading:
        found = map(Token.of, reading.current("token", recipient=holder or ""))
        return [token for token in found if holder is None or token.holder == holder]


def bearer(vault: Vault, shown: str) -> Token | None:
    """Whose token this is, if it is one that is in force."""
    match = _SHAPE.fullmatch(shown)
    name, secret = match.groups() if match else ("0" * 12, "")
    entry = _in_force(vault, name)
    expected = "0" * 64 if entry is None else entry.body["hash"]
    return Token.of(entry) if hmac.compare_digest(_hash(secret), expected) and entry is not None else None


def named(vault: Vault, name: str) -> Token | None:
    """The token with an id, if it is in force."""
    entry = _in_force(vault, name)
    return None if entry is None else Token.of(entry)


def _in_force(vault: Vault, name: str) -> Entry | None:
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        found = reading.current("token", dataset=name, first=1)
        entry = reading.latest("token", name, found[0].recipient if found else "")
        holder = reading.latest("recipient", recipient=found[0].recipient if found else "")
    if entry is None or entry.generation not in keys or not Token.of(entry).in_force(vault.now()):
        return None
    return None if holder is not None and holder.action == "disabled" else entry


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
