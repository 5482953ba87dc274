"""Adding datasets to a vault, and adding later versions of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Ledger, Query
from sfumato.release.policy import Policy
from sfumato.tables import content_digest
from sfumato.vault.datasets import Dataset, first_version, next_version
from sfumato.vault.grants import require
from sfumato.vault.store import Store, files_in

Progress = Callable[[int], None]

_APPENDED = "appended digest"
"""The key of the digest of the rows that a version appended, by which a repeated command is recognised."""


def add(
    ledger: Ledger,
    keys: Mapping[int, Key],
    store: Store,
    policy: Policy,
    table: Any,
    *,
    traced: bool,
    progress: Progress | None,
) -> Entry:
    """Add a table under the name that its policy gives it; adding the same table again changes nothing."""
    body = first_version(policy, table, store, traced=traced, progress=progress)
    with ledger.writing(keys) as writing:
        before = writing.latest("dataset", policy.dataset)
        if before is None:
            return writing.append("added", "dataset", body, dataset=policy.dataset)
        if before.body == body:
            return before
        recorded = {name for e in writing.entries(Query(dataset=policy.dataset)) for name in files_in(e.body)}
        for name in set(files_in(body)) - recorded:
            store.drop(name)
        raise VaultError(
            f"there is already a dataset called {policy.dataset!r}, with another table or policy; add a later version "
            f"of its table with `sfumato update {policy.dataset} FILE` (the same records under another name would get "
            "independent noise, which can be averaged out)"
        )


def update(
    ledger: Ledger,
    keys: Mapping[int, Key],
    store: Store,
    dataset: str,
    table: Any,
    *,
    replace: bool,
    progress: Progress | None,
) -> Entry:
    """Add the next version of a dataset; the same table again changes nothing."""
    with ledger.reading() as reading:
        before = require(reading, "dataset", dataset)
    now = Dataset.of(before, store)
    body = next_version(now, now.later_source(table), replace=replace, progress=progress)
    return before if body is None else _recorded(ledger, keys, before, body)


def append(
    ledger: Ledger, keys: Mapping[int, Key], store: Store, dataset: str, table: Any, *, progress: Progress | None
) -> Entry:
    """Add a version with more rows than the one before; appending the same rows again changes nothing."""
    with ledger.reading() as reading:
        before = require(reading, "dataset", dataset)
    now = Dataset.of(before, store)
    more = now.later_source(table)
    digest = content_digest.of_batches(map(content_digest.of_batch, more.batches(now.schema.names)))
    if before.body.get(_APPENDED) == digest:
        return before
    with now.source() as source:
        body = next_version(now, source.extended(more), replace=False, progress=progress)
    return before if body is None else _recorded(ledger, keys, before, body | {_APPENDED: digest})


def _recorded(ledger: Ledger, keys: Mapping[int, Key], before: Entry, body: dict[str, Any]) -> Entry:
    """The entry of a version, unless somebody else added one since `before` was read."""
    with ledger.writing(keys) as writing:
        latest = require(writing, "dataset", before.dataset)
        if latest.body == body:
            return latest
        if latest.number != before.number:
            raise VaultError(f"somebody else added a version of {before.dataset} meanwhile; check it, and try again")
        return writing.append("updated", "dataset", body, dataset=before.dataset)
