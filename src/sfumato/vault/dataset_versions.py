"""Adding datasets to a vault, and adding later versions of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import ERASED, Entry
from sfumato.ledger.ledger import Ledger, LedgerWriter
from sfumato.ledger.reader import LedgerReader
from sfumato.release.policy import Policy
from sfumato.tables import content_digest
from sfumato.tables.content_digest import SHA256
from sfumato.tables.source import Source
from sfumato.vault.appending import appended_version
from sfumato.vault.dataset_entries import APPENDED, GIVEN, OVERLAPS, TABLE
from sfumato.vault.datasets import Dataset, first_version, next_version
from sfumato.vault.encrypted_store import EncryptedStore
from sfumato.vault.encryption import discard_files
from sfumato.vault.grants import existing, require
from sfumato.vault.overlaps import OverlapCheck, without_sketch
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
    replace: bool,
    accept_overlap: str | None,
    progress: Progress | None,
) -> Entry:
    """Add a table under the name that its policy gives it; adding the same table again changes nothing.

    A dataset whose key was lost, so that nobody can read its table, starts anew with its next version. So does, with
    `replace`, one that nobody has a copy of: two policies for the same records would share their noise.
    """
    before = _before(ledger, keys, policy, replace=replace)
    unreadable = _is_unreadable(before, store, replace=replace)
    fitted = partial(first_version, policy, table, store, traced=traced, progress=progress)
    number = _start_number(before, unreadable=unreadable)
    stored = fitted(number=number)
    replaced = replace and before is not None and _differs(before, stored, store)
    if replaced and before is not None and number == before.body["version"]:
        discard_files(ledger, keys, store, policy.dataset, files_in(stored))
        stored = fitted(number=number + 1)
    with _overlap_check(ledger, keys, Dataset(policy.dataset, stored, store), accept_overlap) as (writing, body):
        latest = writing.latest("dataset", policy.dataset)
        if replaced and latest == before:
            _require_unreleased(writing, policy.dataset)
        elif latest is not None and not (unreadable and latest == before and _keeps_terms(latest, body)):
            return _found_again(latest, body, store, unreadable=unreadable)
        return writing.append("added", "dataset", body, dataset=policy.dataset)


def _before(ledger: Ledger, keys: Mapping[int, Key], policy: Policy, *, replace: bool) -> Entry | None:
    """The latest entry about a dataset that is to be added; refused where its name cannot be used."""
    with ledger.reading(keys) as reading:
        before = reading.latest("dataset", policy.dataset)
        if before is None:
            _check_name(reading, policy)
        elif before.action == ERASED:
            raise VaultError(
                f"the dataset {policy.dataset} was erased, and its name is not used again, since copies of it may be "
                "held; choose another one: `dataset` in the policy"
            )
        elif replace:
            _require_unreleased(reading, policy.dataset)
    return before


def _is_unreadable(before: Entry | None, store: EncryptedStore, *, replace: bool) -> bool:
    """Whether a dataset starts anew, since its key was lost; a later version of a readable one is not added again."""
    unreadable = before is not None and not store.is_readable(before.body["scheme"])
    if before is not None and before.action != "added" and not (unreadable or replace):
        raise _taken(before.dataset)
    return unreadable


def _keeps_terms(before: Entry, body: dict[str, Any]) -> bool:
    """Whether a new start has what grants rely on."""
    return all(before.body[name] == body[name] for name in _TERMS)


def _found_again(latest: Entry, body: dict[str, Any], store: EncryptedStore, *, unreadable: bool) -> Entry:
    """The entry of a dataset that was added before, if this is the same one; refused otherwise."""
    if _is_same(latest.body, body, store):
        return latest
    if unreadable:
        raise VaultError(
            f"a table that is added again must have the columns, roles and levels that {latest.dataset!r} had, since "
            "grants rely on them, and this one has others; correct the policy"
        )
    raise _taken(latest.dataset)


def _taken(dataset: str) -> VaultError:
    return VaultError(
        f"there is already a dataset called {dataset!r}, with another table or policy; add a later version of its "
        f"table with `sfumato update {dataset} FILE`, or, as long as nobody has a grant or a copy, replace it "
        "(`sfumato add --replace`); the same records under another name would get independent noise, which can be "
        "averaged out"
    )


def _is_same(recorded: dict[str, Any], body: dict[str, Any], store: EncryptedStore) -> bool:
    """Whether an entry records this very version."""
    fidelities = {GIVEN: body[GIVEN]}  # which entries of earlier versions do not have, and follows from the rest
    return without_sketch(_resolved(recorded, store) | fidelities) == without_sketch(body)


def _require_unreleased(reading: LedgerReader, dataset: str) -> None:
    """Raise `VaultError` if a dataset cannot be replaced, since somebody has a copy of it, or may have one soon."""
    require(reading, "dataset", dataset)
    holders = sorted({entry.recipient for entry in reading.current("release", dataset=dataset)})
    granted = [entry.recipient for entry in reading.current("grant", dataset=dataset) if entry.action == "granted"]
    if holders:
        raise VaultError(
            f"a dataset can be replaced only while nobody has a copy of it, and {', '.join(holders)} received one of "
            f"{dataset}; add a later version of its table (`sfumato update {dataset} FILE`), or choose another name"
        )
    if granted:
        raise VaultError(
            f"a dataset can be replaced only while nobody has a grant, and {', '.join(granted)} may receive {dataset}; "
            f"revoke it first (`sfumato revoke {granted[0]} {dataset}`)"
        )


def _check_name(reading: LedgerReader, policy: Policy) -> None:
    """Refuse one name for a dataset and for one of several tables: commands would mean only one of them."""
    known = {entry.dataset: entry.body.get(TABLE) for entry in existing(reading, "dataset")}
    group = policy.dataset.removesuffix(f".{policy.table}") if policy.table else policy.dataset
    tables = [name for name, table in known.items() if table and name == f"{group}.{table}"]
    if (policy.table and group in known) or (not policy.table and tables):
        raise VaultError(
            f"{group!r} must be the name of one dataset, or of one of several tables, and there is the other already; "
            "choose another name"
        )


def update(
    ledger: Ledger,
    keys: Mapping[int, Key],
    store: EncryptedStore,
    dataset: str,
    table: Any,
    *,
    replace: bool,
    accept_overlap: str | None,
    progress: Progress | None,
) -> Entry:
    """Add the next version of a dataset; the same table again changes nothing."""
    with ledger.reading(keys) as reading:
        before = require(reading, "dataset", dataset)
    now = Dataset.of(before, store)
    body = next_version(now, now.later_source(table), may_lose=replace, progress=progress)
    return before if body is None else _recorded(ledger, keys, before, Dataset(dataset, body, store), accept_overlap)


def append(
    ledger: Ledger,
    keys: Mapping[int, Key],
    store: EncryptedStore,
    dataset: str,
    table: Any,
    *,
    accept_overlap: str | None,
    progress: Progress | None,
) -> Entry:
    """Add a version with more rows than the one before; appending the same rows again changes nothing."""
    with ledger.reading(keys) as reading:
        before = require(reading, "dataset", dataset)
    now = Dataset.of(before, store.pinned())
    more = now.later_source(table)
    batches = [(batch.num_rows, content_digest.of_batch(batch, SHA256)) for batch in more.batches(now.schema.names)]
    digest = content_digest.of_batches((one for _, one in batches), SHA256)
    rows = sum(count for count, _ in batches)
    if before.body.get(APPENDED) == digest or not rows:
        return before
    body = appended_version(now, more, rows, progress)
    version = Dataset(dataset, body | {APPENDED: digest}, now.store)
    return _recorded(ledger, keys, before, version, accept_overlap, (now, more.starting_at(now.rows)))


def _recorded(
    ledger: Ledger,
    keys: Mapping[int, Key],
    before: Entry,
    version: Dataset,
    accept_overlap: str | None,
    appended: tuple[Dataset, Source] | None = None,
) -> Entry:
    """The entry of a version, unless somebody else added one since `before` was read."""
    with _overlap_check(ledger, keys, version, accept_overlap, appended) as (writing, body):
        latest = require(writing, "dataset", before.dataset)
        if without_sketch(latest.body) == without_sketch(body):
            return latest
        if latest.number != before.number:
            raise VaultError(f"somebody else added a version of {before.dataset} meanwhile; check it, and try again")
        return writing.append("updated", "dataset", body, dataset=before.dataset)


@contextlib.contextmanager
def _overlap_check(
    ledger: Ledger,
    keys: Mapping[int, Key],
    version: Dataset,
    reason: str | None,
    appended: tuple[Dataset, Source] | None = None,
) -> Iterator[tuple[LedgerWriter, dict[str, Any]]]:
    """A transaction that records a version, and the body of its entry; refused if other datasets have its records.

    The files of a version that is refused are deleted, unless an entry refers to them.
    """
    with ledger.reading(keys) as reading:
        generation, others = reading.verified_head().generation, existing(reading, "dataset")
    check = OverlapCheck(version, keys[generation], generation, reason, appended)
    try:
        check.check(others)  # before the transaction, since other writers wait for it
        with ledger.writing(keys) as writing:
            check.check(existing(writing, "dataset"))
            _require_readable(version.store.pinned(), check.body)  # as they are now
            yield writing, check.body
    except VaultError:
        discard_files(ledger, keys, version.store, version.name, files_in(check.body))
        raise


def _require_readable(store: EncryptedStore, body: dict[str, Any]) -> None:
    """Raise `VaultError` if the key of a file of a version was replaced since it was written."""
    files = [{"name": name, "sha256": digest} for name, digest in files_in(body).items()]
    if not all(map(store.is_readable, files)):
        raise VaultError("the vault's master key was replaced meanwhile; run the same command again")


def _start_number(before: Entry | None, *, unreadable: bool) -> int:
    """The number of the version that adding a table makes, or made before, if it is the same table."""
    if before is None:
        return 1
    return int(before.body["version"]) + (unreadable or before.action != "added")


def _differs(before: Entry, stored: dict[str, Any], store: EncryptedStore) -> bool:
    """Whether a version is another one than that of an entry; overlaps that its owner accepted are looked for later."""
    return not _is_same({name: value for name, value in before.body.items() if name != OVERLAPS}, stored, store)


def _resolved(body: dict[str, Any], store: EncryptedStore) -> dict[str, Any]:
    """The body of an entry, with the files that replaced its own."""
    files = files_in(body)
    return {
        name: store.resolved(value) if isinstance(value, dict) and value.get("name") in files else value
        for name, value in body.items()
    }
