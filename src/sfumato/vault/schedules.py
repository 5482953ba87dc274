"""Schedules: releases that are due for each version, day, week or month, and how long versions are kept.

A schedule is an entry of the ledger. `run_due` does what is due, once; a timer of the operating system calls it
(`sfumato schedule run`). What it releases is granted, cleared and recorded as any other release is, and running it
twice, or again after it was killed, releases nothing else.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sfumato.errors import NotAppended, SfumatoError, VaultError
from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.tables.database import without_password
from sfumato.vault.encrypted_store import version_of
from sfumato.vault.erasure import VERSIONS
from sfumato.vault.grants import existing, require
from sfumato.vault.store import files_in

if TYPE_CHECKING:
    from sfumato.vault.vault import Vault

EVERY = ("version", "day", "week", "month")
"""When a release is due, if there is a version that was not released: at once, or once in each such period."""

_MOST = 100_000
"""The most versions or days that a rule may state."""

_FIELDS = ("dataset", "recipient", "version", "date")
"""What the name of an output may hold in braces."""


@dataclass(frozen=True)
class Schedule:
    """A scheduled release."""

    recipient: str
    dataset: str
    every: str
    to: str
    new_rows: bool
    version: int | None
    """The version that it released last."""
    ran: str | None
    """When it did."""

    @classmethod
    def of(cls, entry: Entry) -> Schedule:
        """The schedule that an entry records."""
        terms = {name: entry.body[name] for name in ("every", "to", "new_rows", "version", "ran")}
        return cls(entry.recipient, entry.dataset, **terms)

    def is_due(self, now: datetime, version: int) -> bool:
        """Whether there is something new, in a new period."""
        if version == self.version:
            return False
        if self.ran is None or self.every == "version":
            return True
        return _period(self.every, datetime.fromisoformat(self.ran)) != _period(self.every, now)

    def output(self, version: int, now: datetime) -> str:
        """What is written for a version."""
        return self.to.format(dataset=self.dataset, recipient=self.recipient, version=version, date=f"{now:%Y-%m-%d}")


def _period(every: str, at: datetime) -> tuple[int, ...]:
    if every == "week":
        return at.isocalendar()[:2]
    return (at.year, at.month, at.day) if every == "day" else (at.year, at.month)


@dataclass(frozen=True)
class Outcome:
    """What a run did, or could not do, about one schedule or one rule."""

    what: str
    text: str
    failed: bool = False


def schedule(vault: Vault, recipient: str, dataset: str, every: str, to: str, *, new_rows: bool = False) -> Entry:
    """Record that a recipient gets a copy of each new version.

    Args:
        vault: the vault.
        recipient: who gets it.
        dataset: of which it is.
        every: `version`, or the period in which there is at most one: `day`, `week`, `month`.
        to: the output, with `{version}`, `{date}`, `{dataset}` and `{recipient}` where they belong.
        new_rows: whether a copy has the rows alone that were appended since the one before.

    """
    _check_terms(every, to, new_rows=new_rows)
    with vault.ledger.writing(vault.keys()) as writing:
        require(writing, "dataset", dataset)
        require(writing, "recipient", recipient)
        before = writing.latest("schedule", dataset, recipient)
        done = {name: None if before is None else before.body[name] for name in ("version", "ran")}
        body = {"every": every, "to": to, "new_rows": new_rows, **done}
        return writing.append("scheduled", "schedule", body, dataset=dataset, recipient=recipient)


def _check_terms(every: str, to: str, *, new_rows: bool) -> None:
    if every not in EVERY:
        raise VaultError(f"a release is due every {', '.join(EVERY)}, got {every!r}")
    try:
        parsed = [part[1:] for part in string.Formatter().parse(to) if part[1] is not None]
    except ValueError:
        parsed = [("?", "", None)]
    fields = [name for name, _, _ in parsed]
    if any(name not in _FIELDS or spec or conversion for name, spec, conversion in parsed):
        known = ", ".join(f"{{{name}}}" for name in _FIELDS)
        raise VaultError(f"an output may have {known} in its name, got {to!r}")
    if new_rows and "version" not in fields:
        raise VaultError("new rows need an output of their own for each version; write {version} in its name")
    if without_password(to) != to:
        raise VaultError("an output must not hold a password, since the log shows it; configure it for the client")


def unschedule(vault: Vault, recipient: str, dataset: str) -> Entry:
    """End a schedule."""
    with vault.ledger.writing(vault.keys()) as writing:
        before = writing.latest("schedule", dataset, recipient)
        if before is None or before.action == "unscheduled":
            raise VaultError(f"there is no schedule of {dataset} for {recipient}; see `sfumato schedule list`")
        return writing.append("unscheduled", "schedule", before.body, dataset=dataset, recipient=recipient)


def retain(
    vault: Vault, dataset: str = "", *, versions: int | None = None, days: int | None = None, forever: bool = False
) -> Entry:
    """Record how long earlier versions of a dataset are kept or, without a dataset, the records of the access log.

    Args:
        vault: the vault.
        dataset: the dataset.
        versions: the number of versions that are kept, the current one included.
        days: how long a version is kept after it was replaced, or a record of the access log.
        forever: keep everything, as without a rule.

    """
    if forever == (versions is not None or days is not None) or (versions is not None and not dataset):
        raise VaultError("state how many versions or days are kept, or that all are forever; the access log has days")
    if any(number is not None and not 1 <= number <= _MOST for number in (versions, days)):
        raise VaultError(f"1 to {_MOST:,} versions or days are kept, got {days if versions is None else versions}")
    with vault.ledger.writing(vault.keys()) as writing:
        if dataset:
            require(writing, "dataset", dataset)
        return writing.append("retained", "retention", {"versions": versions, "days": days}, dataset=dataset)


def schedules(reading: LedgerReader) -> list[Schedule]:
    """All schedules, sorted by dataset and recipient."""
    names = {kind: _names(reading, kind) for kind in ("dataset", "recipient")}
    found = [Schedule.of(entry) for entry in reading.current("schedule") if entry.action != "unscheduled"]
    return [one for one in found if one.dataset in names["dataset"] and one.recipient in names["recipient"]]


def retentions(reading: LedgerReader) -> list[Entry]:
    """All rules about how long something is kept."""
    names = _names(reading, "dataset")
    found = [entry for entry in reading.current("retention") if any(entry.body.values())]
    return [entry for entry in found if not entry.dataset or entry.dataset in names]


def _names(reading: LedgerReader, kind: str) -> set[str]:
    return {entry.dataset or entry.recipient for entry in existing(reading, kind)}


def run_due(vault: Vault, stage: Callable[[str], None] | None = None) -> list[Outcome]:
    """Release what is due, then erase what is kept no longer; what fails is said, and the rest is done."""
    with vault.ledger.reading(vault.keys()) as reading:
        planned, rules = schedules(reading), retentions(reading)
    outcomes = []
    for one in planned:
        version = vault.dataset(one.dataset).version
        if one.is_due(vault.now(), version):
            what = f"{one.dataset} for {one.recipient}"
            if stage is not None:
                stage(f"releasing {what}")
            outcomes.append(_outcome(what, partial(_release, vault, one, version)))
    for rule in rules:
        what = f"{rule.dataset or 'the access log'} kept no longer"
        outcomes += [_outcome(what, erase) for erase in _erasures(vault, rule)]
    return [one for one in outcomes if one.text]


def _outcome(what: str, act: Callable[[], str]) -> Outcome:
    try:
        return Outcome(what, act())
    except SfumatoError as error:
        return Outcome(what, str(error), failed=True)
    except Exception as error:  # of a driver or a store: one schedule must not stop the others
        return Outcome(what, f"{type(error).__name__}: the output could not be written", failed=True)


def _release(vault: Vault, one: Schedule, version: int) -> str:
    """Release a version, and record that this was done by the schedule."""
    now = vault.now()
    path, manifest = _released(vault, one, one.output(version, now))
    with vault.ledger.writing(vault.keys()) as writing:
        latest = writing.latest("schedule", one.dataset, one.recipient)
        is_same = latest is not None and latest.action != "unscheduled" and Schedule.of(latest) == one
        if latest is not None and is_same:  # else it was changed, ended, or has run meanwhile
            body = {**latest.body, "version": manifest.version, "ran": now.isoformat()}
            writing.append("ran", "schedule", body, dataset=one.dataset, recipient=one.recipient)
    part = f", appended since version {manifest.since}" if manifest.since else ""
    return f"{manifest.rows:,} rows of version {manifest.version}{part} in {path}"


def _released(vault: Vault, one: Schedule, output: str) -> tuple[Any, Any]:
    if one.new_rows and one.version is not None:
        try:
            return vault.release(one.recipient, one.dataset, output, since=one.version)
        except NotAppended:  # an update may have changed any row
            pass
    return vault.release(one.recipient, one.dataset, output)


def _erasures(vault: Vault, rule: Entry) -> Iterator[Callable[[], str]]:
    """What erases all that a rule does not keep."""
    days = rule.body["days"]
    end = None if days is None else vault.now() - timedelta(days=days)
    if rule.dataset:
        yield from (partial(_erase, vault, rule.dataset, number) for number in _versions_over(vault, rule, end))
    elif end is not None:
        yield lambda: "erased what is older" if vault.erase_accesses(f"{end:%Y-%m-%d}") else ""


def _versions_over(vault: Vault, rule: Entry, end: datetime | None) -> list[int]:
    """The versions that a rule does not keep, and of which no version that is kept is made."""
    with vault.ledger.reading(vault.keys()) as reading:
        entries = [one for one in reading.entries(Query(kind="dataset", dataset=rule.dataset)) if "version" in one.body]
        tombstone = reading.latest("version", rule.dataset)
    bodies = {one.body["version"]: one.body for one in entries}
    replaced = {before.body["version"]: after.at for before, after in pairwise(entries)}
    held = set(bodies) - (set() if tombstone is None else set(tombstone.body[VERSIONS]))
    over = {number for number in held if _is_over(number, replaced, rule, end)}
    needed = {part for number in held - over for part in _parts(bodies[number])}
    return sorted(over - needed)


def _is_over(number: int, replaced: dict[int, str], rule: Entry, end: datetime | None) -> bool:
    """Whether a rule does not keep a version."""
    if number not in replaced:
        return False
    many = rule.body["versions"] is not None and number <= max(replaced) + 1 - rule.body["versions"]
    return many or (end is not None and datetime.fromisoformat(replaced[number]) < end)


def _erase(vault: Vault, dataset: str, number: int) -> str:
    vault.erase(dataset, version=number)
    return f"erased version {number}"


def _parts(body: dict[str, Any]) -> set[int]:
    """The versions that the files of one are from."""
    found = {version_of(name) for name in files_in(body)}
    return {number for number in found if number is not None}
