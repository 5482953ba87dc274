"""Recording a dataset: its first version, and the later ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Ledger, Query
from sfumato.policy.document import Policy
from sfumato.vault.datasets import Dataset, prepare, succeed
from sfumato.vault.grants import known
from sfumato.vault.store import Store, files_in

Progress = Callable[[int], None]


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
    """Keep a table under its policy's name for it; the same again changes nothing."""
    body = prepare(policy, table, store, traced=traced, progress=progress)
    with ledger.writing(keys) as writing:
        before = writing.latest("dataset", policy.dataset)
        if before is None:
            return writing.append("added", "dataset", body, dataset=policy.dataset)
        if before.body == body:
            return before
        known_files = {name for e in writing.entries(Query(dataset=policy.dataset)) for name in files_in(e.body)}
        for name in set(files_in(body)) - known_files:
            store.drop(name)
        raise VaultError(
            f"there is a dataset called {policy.dataset!r} already, with another table or policy; bring a later "
            f"version of its table with `sfumato update {policy.dataset} FILE` (the same records under another "
            "name would get independent noise, which can be averaged)"
        )


def update(
    ledger: Ledger, keys: Mapping[int, Key], store: Store, dataset: str, table: Any, *, progress: Progress | None
) -> Entry:
    """Keep the next version of a dataset; the same table again changes nothing."""
    with ledger.reading() as reading:
        before = known(reading, "dataset", dataset)
    body = succeed(Dataset.of(before, store), table, progress=progress)
    if body is None:
        return before
    with ledger.writing(keys) as writing:
        latest = known(writing, "dataset", dataset)
        if latest.body == body:
            return latest
        if latest.number != before.number:
            raise VaultError(f"somebody else brought a version of {dataset} meanwhile; look at it, and try again")
        return writing.append("updated", "dataset", body, dataset=dataset)
