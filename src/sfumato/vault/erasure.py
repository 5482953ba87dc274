"""Erasure: the content of datasets, versions and recipients is destroyed, and the ledger keeps a tombstone of each.

The key of the content is deleted in the transaction that records the erasure. Files are deleted afterwards; those that
an interruption leaves, and all copies of them elsewhere, cannot be read without that key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import ERASED, Entry
from sfumato.ledger.ledger import Ledger, LedgerWriter
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.ledger.tables import ANSWERS
from sfumato.vault import data_keys
from sfumato.vault.encrypted_store import EncryptedStore, scope_of, version_of
from sfumato.vault.encryption import recorded_files
from sfumato.vault.grants import existing, require
from sfumato.vault.store import SCOPES, files_in

_SURVEY_REASONS = {
    "drafted": "a draft: nobody could answer yet",
    "opened": "people are answering; close it before it is erased",
    "closed": "for its results: sfumato erase survey NAME",
}

VERSIONS = "versions"
"""The key, in a tombstone of versions, of the numbers of all versions of the dataset that were erased."""


def erase_dataset(
    ledger: Ledger, keys: Mapping[int, Key], store: EncryptedStore, outbox: Path | None, name: str
) -> Entry:
    """Erase all versions of a dataset, its policy and its scheme; grants end, and its name is not used again."""
    with ledger.writing(keys) as writing:
        latest = writing.latest("dataset", name) or require(writing, "dataset", name)
        scopes = {scope_of(file) for file in recorded_files(writing, name)}
        _delete_keys(writing, scopes | data_keys.scopes_of(writing, writing.cipher.token(name)))
        if latest.action != ERASED:
            _revoke(writing, dataset=name)
            latest = writing.append(ERASED, "dataset", {**latest.body, SCOPES: sorted(scopes)}, dataset=name)
    _delete_files(store, name, scopes)
    _delete_copies(outbox, f"{name}/*")
    return latest


def erase_version(ledger: Ledger, keys: Mapping[int, Key], store: EncryptedStore, name: str, number: int) -> Entry:
    """Erase an earlier version of a dataset: its table and its record digests."""
    with ledger.writing(keys) as writing:
        latest_body = require(writing, "dataset", name).body
        current = latest_body["version"]
        if not 1 <= number < current:
            raise VaultError(
                f"only a version before the current one can be erased, and that of {name} is {current}, got {number}; "
                f"add a later version first (`sfumato update {name} FILE`), or erase the whole dataset"
            )
        scopes = {scope_of(file) for file in recorded_files(writing, name) if version_of(file) == number}
        if scopes & set(map(scope_of, files_in(latest_body))):
            raise VaultError(
                f"version {number} of {name} is a part of the current one, which appended rows to it, so that nothing "
                f"of it would be gone; state the table without what must go as the next version (`sfumato update "
                f"{name} FILE`), and erase it then"
            )
        _delete_keys(writing, scopes)
        latest = writing.latest("version", name)
        before = [] if latest is None else latest.body[VERSIONS]
        if latest is None or number not in before:
            body = {"version": number, VERSIONS: sorted([*before, number]), SCOPES: sorted(scopes)}
            latest = writing.append(ERASED, "version", body, dataset=name)
    _delete_files(store, name, scopes)
    return latest


def erase_recipient(ledger: Ledger, keys: Mapping[int, Key], outbox: Path | None, name: str) -> Entry:
    """Erase a recipient with its grants, its tokens and the files of its copies; its name is not used again."""
    with ledger.writing(keys) as writing:
        latest = writing.latest("recipient", recipient=name) or require(writing, "recipient", name)
        if latest.action != ERASED:
            _revoke(writing, recipient=name)
            for token in writing.current("token", recipient=name):
                if token.action != "withdrawn":
                    writing.append("withdrawn", "token", token.body, dataset=token.dataset, recipient=name)
            latest = writing.append(ERASED, "recipient", {"note": ""}, recipient=name)
    _delete_copies(outbox, f"*/{name}.v*")
    return latest


def held_content(
    reading: LedgerReader, datasets: Sequence[Entry], store: EncryptedStore, outbox: Path | None
) -> list[dict[str, Any]]:
    """What the vault still holds, and why: versions of some datasets, answers, uploads, and files of copies."""
    rows = [row for entry in datasets for row in _held_versions(reading, entry)] + _held_answers(reading)
    uploads = {name.split("/")[1] for name in store.names("uploads")}
    if uploads:
        rows.append(_row(f"{len(uploads)} uploads", "in progress, or not used yet; deleted when they expire"))
    accesses = reading.accesses(Query(last=1))
    if accesses:
        [first] = reading.accesses(Query(before=reading.first_access() + 1))
        count = accesses[0].number - first.number + 1
        why = f"who had access, since {first.at[:10]}: sfumato erase accesses --before DAY"
        rows.append(_row(f"{count:,} records of the access log", why))
    copies = [] if outbox is None else _files_of_copies(outbox)
    if copies:
        rows.append(_row(f"{len(copies)} files of copies", f"released to {outbox}; may be deleted, or made again"))
    return rows


def _files_of_copies(outbox: Path) -> list[Path]:
    """The copies in the folder of a vault, without their manifests."""
    found = list(outbox.glob("*/*"))
    if not found:
        return []
    from sfumato.tables.readers import FORMATS

    return [path for path in found if path.suffix in FORMATS]


def _held_versions(reading: LedgerReader, latest: Entry) -> list[dict[str, Any]]:
    """The versions of a dataset that were not erased."""
    name = latest.dataset
    if latest.body["version"] == 1:
        return [_version_row(latest, 1, 0)]
    tombstone = reading.latest("version", name)
    erased = set() if tombstone is None else set(tombstone.body[VERSIONS])
    numbers = {entry.body["version"] for entry in reading.entries(Query(kind="dataset", dataset=name))} - erased
    holders: dict[int, set[str]] = {}
    for entry in reading.entries(Query(kind="release", dataset=name)) if len(numbers) > 1 else ():
        holders.setdefault(entry.body["version"], set()).add(entry.recipient)
    return [_version_row(latest, number, len(holders.get(number, ()))) for number in sorted(numbers)]


def _held_answers(reading: LedgerReader) -> list[dict[str, Any]]:
    """The answers to surveys that were not erased."""
    if ANSWERS not in reading.connection.tables():
        return []
    count = "SELECT survey, count(*) AS answers FROM sfumato_survey_answers GROUP BY survey"
    answers = {str(token): int(number) for token, number in reading.connection.all(count)}
    tokens = {one.dataset: reading.cipher.token(one.dataset) for one in existing(reading, "survey")}
    return [
        _row(f"{answers.get(tokens[one.dataset], 0):,} answers to {one.dataset}", _SURVEY_REASONS.get(one.action, ""))
        for one in existing(reading, "survey")
    ]


def _version_row(latest: Entry, number: int, holders: int) -> dict[str, Any]:
    what, released = f"{latest.dataset} version {number}", f"{holders} recipient{'s' * (holders != 1)}"
    if number == latest.body["version"]:
        return _row(what, "the current version, from which copies are made")
    if holders:
        return _row(what, f"released to {released}: traces leaks, and counts their noise draws per record")
    return _row(what, f"nobody has a copy of it: sfumato erase dataset {latest.dataset} --version {number}")


def _row(what: str, why: str) -> dict[str, Any]:
    return {"still held": what, "why": why}


def _delete_keys(writing: LedgerWriter, scopes: set[str]) -> None:
    for scope in scopes:
        data_keys.erase(writing, scope)


def _revoke(writing: LedgerWriter, dataset: str = "", recipient: str = "") -> None:
    """Revoke all grants of a dataset, or to a recipient."""
    for grant in writing.current("grant", dataset=dataset, recipient=recipient):
        if grant.action != "revoked":
            writing.append("revoked", "grant", grant.body, dataset=grant.dataset, recipient=grant.recipient)


def _delete_files(store: EncryptedStore, dataset: str, scopes: set[str]) -> None:
    for folder in (store.folder(dataset), f"datasets/{dataset}"):  # the latter is that of an earlier version
        for name in store.names(folder):
            if scope_of(name) in scopes:
                store.drop(name)


def _delete_copies(outbox: Path | None, pattern: str) -> None:
    """Delete files of copies in the vault's folder; those that were released elsewhere are out of reach."""
    for path in outbox.glob(pattern) if outbox is not None else ():
        path.unlink(missing_ok=True)
