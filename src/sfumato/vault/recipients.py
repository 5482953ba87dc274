"""Recipients: who they are, and whether they may receive anything."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Ledger
from sfumato.vault.grants import known
from sfumato.vault.names import checked, is_text


def register(ledger: Ledger, keys: Mapping[int, Key], name: str, note: str) -> Entry:
    """Register a recipient; one that is registered already stays as it is, but for a new note."""
    checked("recipient", name)
    if not is_text(note):
        raise VaultError("a note must be text, and this one holds bytes that are none; write it anew")
    with ledger.writing(keys) as writing:
        before = writing.latest("recipient", recipient=name)
        if before is None or (before.action != "disabled" and note and before.body["note"] != note):
            return writing.append("registered", "recipient", {"note": note}, recipient=name)
        return known(writing, "recipient", name)


def switch(ledger: Ledger, keys: Mapping[int, Key], name: str, action: str) -> Entry:
    """Disable a recipient, or enable it again."""
    with ledger.writing(keys) as writing:
        before = writing.latest("recipient", recipient=name) or known(writing, "recipient", name)
        if (before.action == "disabled") == (action == "disabled"):
            return before
        return writing.append(action, "recipient", before.body, recipient=name)
