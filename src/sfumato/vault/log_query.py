"""Which entries of the ledger somebody asks for, in the words of a command line or a query string."""

from __future__ import annotations

from sfumato.errors import VaultError, nearest
from sfumato.ledger.ledger import Query
from sfumato.vault.messages import ACTIONS
from sfumato.vault.names import moment, start_of


def asked(
    dataset: str | None,
    recipient: str | None,
    action: str | None,
    since: str | None,
    until: str | None,
    last: int | None,
    before: int | None = None,
) -> Query:
    """The query; refused if it speaks of something that no entry is about, or of a day that is none."""
    if action is not None and action not in ACTIONS:
        raise VaultError(f"no entry is about {action!r}; {nearest(action, ACTIONS)}")
    begin, end = since and start_of(since), moment(until)
    return Query(dataset=dataset, recipient=recipient, action=action, since=begin, until=end, last=last, before=before)
