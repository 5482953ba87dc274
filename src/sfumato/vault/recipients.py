"""Recipients of copies: registering, disabling and listing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import ERASED, Entry
from sfumato.ledger.ledger import Ledger
from sfumato.vault.grants import require
from sfumato.vault.names import is_valid_text, validated_name


@dataclass(frozen=True)
class Recipient:
    """A registered recipient."""

    recipient: str
    note: str
    enabled: bool
    """Whether copies may be released to it."""

    @classmethod
    def of(cls, entry: Entry) -> Recipient:
        """The recipient that an entry is about."""
        return cls(entry.recipient, entry.body["note"], entry.action != "disabled")


def register(ledger: Ledger, keys: Mapping[int, Key], name: str, note: str) -> Entry:
    """Register a recipient; for a registered one, only a new note is recorded."""
    validated_name("recipient", name)
    if not is_valid_text(note):
        raise VaultError("a note must be valid text, and this one has undecodable bytes; rewrite it")
    with ledger.writing(keys) as writing:
        before = writing.latest("recipient", recipient=name)
        if before is not None and before.action == ERASED:
            raise VaultError(
                f"the recipient {name} was erased, and copies that it received still count under that name; choose "
                "another one"
            )
        if before is None or (before.action != "disabled" and note and before.body["note"] != note):
            return writing.append("registered", "recipient", {"note": note}, recipient=name)
        return require(writing, "recipient", name)


def set_state(ledger: Ledger, keys: Mapping[int, Key], name: str, action: str) -> Entry:
    """Disable a recipient, or enable it again; `action` is `disabled` or `enabled`."""
    with ledger.writing(keys) as writing:
        before = writing.latest("recipient", recipient=name)
        if before is None or before.action == ERASED:
            before = require(writing, "recipient", name)
        if (before.action == "disabled") == (action == "disabled"):
            return before
        return writing.append(action, "recipient", before.body, recipient=name)
