"""Access tokens: the credentials with which programs sign in to a service, and links that open it once in a browser.

A token is `sfu_ID_SECRET` and is shown once; the ledger stores its hash. The secret has 256 bits, so a plain hash of it
reveals nothing and cannot be guessed. The ledger authenticates the hash, so that write access to the database does not
grant access to the service.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sfumato.errors import UnknownSubject, VaultError, nearest
from sfumato.ledger.chain import ERASED, Entry
from sfumato.vault.grants import require
from sfumato.vault.lifecycle import VaultLifecycle
from sfumato.vault.names import is_valid_text

LINK = "link"
"""The scope of a link: to sign in once, in a browser; programs can do nothing with it."""

RECIPIENT = ("copies", LINK)
"""The possible scopes of a recipient's token: to list its own grants and download its own copies, or a link."""

MEANINGS = {
    "read": "look at everything but original values",
    "write": "add, grant, release, audit",
    "metrics": "read the service's metrics",
    "erase": "erase for good",
    "team": "manage operators",
}
OWNER = tuple(MEANINGS)
"""The possible scopes of an owner's token, with what each allows in `MEANINGS`."""

MAX_DAYS = 3650
"""The longest validity of a token, in days."""

_PATTERN = re.compile(r"sfu_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class Token:
    """The public data of a token."""

    id: str
    holder: str
    """The recipient that it belongs to; empty for the owner."""
    scopes: tuple[str, ...]
    until: str
    note: str
    withdrawn: bool
    opened: str = ""
    """When somebody signed in with a link; empty if nobody did yet, and for tokens of programs."""
    last_use: str = ""
    """When it was used last, to within ten minutes; empty if it never was, or if the access log was erased since."""

    @classmethod
    def of(cls, entry: Entry) -> Token:
        """The token that an entry is about."""
        body, withdrawn = entry.body, entry.action == "withdrawn"
        stated = body["until"], body["note"], withdrawn, body.get("opened", "")
        return cls(entry.dataset, entry.recipient, tuple(body["scopes"]), *stated)

    @property
    def credential(self) -> str:
        """The name of the token in the access log."""
        return f"token {self.id}"

    def is_active(self, now: datetime) -> bool:
        """Whether the token is valid now."""
        return not self.withdrawn and now < datetime.fromisoformat(self.until)


def issue(
    vault: VaultLifecycle, holder: str = "", *, scopes: Iterable[str] | None = None, days: int = 90, note: str = ""
) -> tuple[str, Entry]:
    """A new token for a recipient, or for the owner, and its entry. The token cannot be shown again."""
    allowed, usual = (RECIPIENT, RECIPIENT[:1]) if holder else (OWNER, OWNER[:2])
    chosen = tuple(dict.fromkeys(usual if scopes is None else scopes))
    unknown = [scope for scope in chosen if scope not in allowed]
    if unknown or not chosen:
        raise VaultError(f"a token must have scopes that its holder may have; {nearest(''.join(unknown[:1]), allowed)}")
    if LINK in chosen and chosen != (LINK,):
        raise VaultError(
            "a link must have no other scope than `link`, and got more; issue a token for programs beside it"
        )
    if not 1 <= days <= MAX_DAYS:
        raise VaultError(f"a token must be valid for 1 to {MAX_DAYS} days, got {days}")
    if not is_valid_text(note) or len(note) > 200:
        raise VaultError("the note of a token must be valid text of at most 200 characters; shorten it")
    name, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    until = (vault.now() + timedelta(days=days)).isoformat(timespec="microseconds")
    body = {"hash": _hash(secret), "scopes": list(chosen), "until": until, "note": note}
    with vault.ledger.writing(vault.keys()) as writing:
        if holder:
            require(writing, "recipient", holder)
        return f"sfu_{name}_{secret}", writing.append("issued", "token", body, dataset=name, recipient=holder)


def withdraw(vault: VaultLifecycle, name: str) -> Entry:
    """Withdraw a token, so that it is no longer valid."""
    with vault.ledger.writing(vault.keys()) as writing:
        found = writing.current("token", dataset=name, first=1) if name else []
        if not found:
            raise UnknownSubject(f"there is no token with the id {name!r}; `sfumato token list` shows all")
        if found[0].action == "withdrawn":
            return found[0]
        return writing.append("withdrawn", "token", found[0].body, dataset=name, recipient=found[0].recipient)


def list_tokens(vault: VaultLifecycle, holder: str | None = None) -> list[Token]:
    """All tokens, or those of one holder."""
    with vault.ledger.reading(vault.keys()) as reading:
        found = [Token.of(entry) for entry in reading.current("token", recipient=holder or "")]
        used = reading.latest_accesses([token.credential for token in found])
    own = [token for token in found if holder is None or token.holder == holder]
    return [replace(token, last_use=used.get(token.credential, "")) for token in own]


def authenticate(vault: VaultLifecycle, credential: str) -> Token | None:
    """The token that a credential belongs to; `None` if there is none, or if it is not valid."""
    match = _PATTERN.fullmatch(credential)
    name, secret = match.groups() if match else ("0" * 12, "")
    entry = _active_entry(vault, name)
    expected = "0" * 64 if entry is None else entry.body["hash"]
    return Token.of(entry) if hmac.compare_digest(_hash(secret), expected) and entry is not None else None


def open_link(vault: VaultLifecycle, token: Token) -> bool:
    """Use up a link: whether this was its first use, so that somebody who reads it later cannot sign in with it."""
    with vault.ledger.writing(vault.keys()) as writing:
        entry = writing.latest("token", token.id, token.holder)
        if entry is None or entry.action != "issued":
            return False
        body = {**entry.body, "opened": vault.now().isoformat(timespec="seconds")}
        writing.append("redeemed", "token", body, dataset=token.id, recipient=token.holder)
        return True


def find(vault: VaultLifecycle, name: str) -> Token | None:
    """The token with an id; `None` if there is none, or if it is not valid."""
    entry = _active_entry(vault, name)
    return None if entry is None else Token.of(entry)


def _active_entry(vault: VaultLifecycle, name: str) -> Entry | None:
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        found = reading.current("token", dataset=name, first=1)
        entry = reading.latest("token", name, found[0].recipient if found else "")
        holder = reading.latest("recipient", recipient=found[0].recipient if found else "")
    if entry is None or entry.generation not in keys or not Token.of(entry).is_active(vault.now()):
        return None
    return None if holder is not None and holder.action in ("disabled", ERASED) else entry


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
