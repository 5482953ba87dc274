"""Adding datasets to a vault, and adding later versions of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Ledger, Query
from sfumato.release.policy import Policy
from sfumato.vault.datasets import Dataset, first_version, next_version
from sfumato.vault.encrypted_store import EncryptedStore
from sfumato.vault.grants import require
from sfumato.vault.store import files_in

Progress = Callable[[int], None]

_TERMS = ("columns", "levels", "traced", "schema")
"""What grants rely on, and a new start must therefore keep."""


def add(
    ledger: Ledger,
    keys: Mapping[int, Key],
    store: EncryptedStore,
    policy: Policy,
    table: Any,
    *,
    traced: bool,
    progress: Progress | None,
) -> Entry:
    """Add a table under the name that its policy gives it; adding the same table again changes nothing.

    A dataset whose key was lost, so that nobody can read its table, starts anew with its next version.
    """
    with ledger.reading(keys) as reading:
        before = reading.latest("dataset", policy.dataset)
    unreadable = before is not None and not store.is_readable(before.body["scheme"])
    number = _start_number(before, unreadable=unreadable)
    body = first_version(policy, table, store, traced=traced, progress=progress, number=number)
    with ledger.writing(keys) as writing:
        latest = writing.latest("dataset", policy.dataset)
        if latest is None:
            return writing.append("added", "dataset", body, dataset=policy.dataset)
        if unreadable and latest == before and all(latest.body[name] == body[name] for name in _TERMS):
            return writing.append("added", "dataset", body, dataset=policy.dataset)
        if _resolved(latest.body, store) == body:
            return latest
        recorded = {name for e in writing.entries(Query(dataset=policy.dataset)) for name in files_in(e.body)}
        for name in set(files_in(body)) - recorded:
            store.drop(name)
        raise VaultError(
            f"a table that is added again must have the columns, roles and levels that {policy.dataset!r} had, since "
            "grants rely on them, and this one has others; correct the policy"
            if unreadable
            else f"there is already a dataset called {policy.dataset!r}, with another table or policy; add a later "
            f"version of its table with `sfumato update {policy.dataset} FILE` (the same records under another name "
            "would get independent noise, which can be averaged out)"
        )


def update(
    ledger: Ledger,
    keys: Mapping[int, Key],
    store: EncryptedStore,
    dataset: str,
    table: Any,
    *,
    progress: Progress | None,
) -> Entry:
    """Add the next version of a dataset; the same table again changes nothing."""
    with ledger.reading() as reading:
        before = require(reading, "dataset", dataset)
    body = next_version(Dataset.of(before, store), table, progress=progress)
    if body is None:
        return before
    with ledger.writing(keys) as writing:
        latest = require(writing, "dataset", dataset)
        if latest.body == body:
            return latest
        if latest.number != before.number:
            raise VaultError(f"somebody else added a version of {dataset} meanwhile; check it, and try again")
        return writing.append("updated", "dataset", body, dataset=dataset)


def _start_number(before: Entry | None, *, unreadable: bool) -> int:
    """The number of the version that adding a table makes, or made before, if it is the same table."""
    if before is None or not (unreadable or before.action == "added"):
        return 1
    return int(before.body["version"]) + unreadable


def _resolved(body: dict[str, Any], store: EncryptedStore) -> dict[str, Any]:
    """The body of an entry, with the files that replaced the plain ones of an earlier version."""
    files = files_in(body)
    return {
        name: store.resolved(value) if isinstance(value, dict) and value.get("name") in files else value
        for name, value in body.items()
    }
