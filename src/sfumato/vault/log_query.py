"""Ledger queries from the options of the command line or the parameters of a URL."""

from __future__ import annotations

from sfumato.errors import VaultError, nearest
from sfumato.ledger.reader import Query
from sfumato.vault.messages import ACTIONS
from sfumato.vault.names import parse_end, parse_start


def parse_query(
    dataset: str | None,
    recipient: str | None,
    action: str | None,
    since: str | None,
    until: str | None,
    last: int | None,
    before: int | None = None,
) -> Query:
    """The query for some filters; raises `VaultError` for an unknown action or an invalid date."""
    if action is not None and action not in ACTIONS:
        raise VaultError(f"an action must be one that the ledger records, got {action!r}; {nearest(action, ACTIONS)}")
    begin, end = since and parse_start(since), parse_end(until)
    return Query(dataset=dataset, recipient=recipient, action=action, since=begin, until=end, last=last, before=before)
