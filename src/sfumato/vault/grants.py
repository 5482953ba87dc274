"""Grants: the level at which a recipient may receive a dataset, the part of the table, and the end of the grant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sfumato.errors import GrantError, UnknownSubject, nearest
from sfumato.ledger.chain import ERASED, Entry
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.levels import Level
from sfumato.vault.dataset_entries import GIVEN

if TYPE_CHECKING:
    from sfumato.tables.view import View
    from sfumato.vault.datasets import Dataset
    from sfumato.vault.encrypted_store import EncryptedStore

RequestedLevel = str | float | Level | None
"""A level in a request: a declared name, a fidelity, or `None` for the level of the grant."""

FINGERPRINT, FINGERPRINT_OFFSET = "mark", "marks"
"""The keys in the ledger of a recipient's fingerprint number, and of its offset after a restoration."""


@dataclass(frozen=True)
class Grant:
    """A grant that was not revoked."""

    recipient: str
    dataset: str
    level: str | float
    """The granted level: a declared name or a fidelity."""
    fidelity: float
    """The fidelity of the released copy, which is never above that of the granted level."""
    columns: tuple[str, ...] | None
    where: str | None
    until: str | None

    @classmethod
    def of(cls, entry: Entry) -> Grant:
        """The grant that an entry records."""
        body = entry.body
        columns = None if body["columns"] is None else tuple(body["columns"])
        stated = (body["level"], body["fidelity"], columns, body["where"], body["until"])
        return cls(entry.recipient, entry.dataset, *stated)

    def is_over(self, now: datetime) -> bool:
        """Whether the grant has ended."""
        return self.until is not None and now >= datetime.fromisoformat(self.until)

    @property
    def view(self) -> View:
        """The part of the table that the recipient receives."""
        from sfumato.tables.view import View

        return View(self.columns, self.where)


def granted_view(body: dict[str, Any]) -> View:
    """The part of a table that a grant or a release covers, from the body of its entry."""
    from sfumato.tables.view import View

    return View(None if body["columns"] is None else tuple(body["columns"]), body["where"])


@dataclass(frozen=True)
class Terms:
    """What a grant of a dataset would be: its level and the part of the table, of which a copy can be made."""

    dataset: Entry
    requested: str | float | Level
    columns: tuple[str, ...] | None
    where: str | None
    fitted: Dataset | None
    """The dataset itself, unless its entry says what copies at the requested level have."""

    @classmethod
    def of(
        cls,
        dataset: Entry,
        store: EncryptedStore,
        requested: str | float | Level,
        columns: Iterable[str] | None,
        where: str | None,
    ) -> Terms:
        """The terms for some columns and rows; raises an error if no copy could be released."""
        part = (None if columns is None else tuple(columns), where)
        recorded = part == (None, None) and requested in dict(dataset.body.get(GIVEN, ()))
        if recorded and store.is_readable(dataset.body["scheme"]):
            return cls(dataset, requested, *part, None)
        from sfumato.tables.view import View
        from sfumato.vault.datasets import Dataset

        fitted = Dataset.of(dataset, store)
        fitted.scheme.with_view(View(*part)).check_view(fitted.schema)
        return cls(dataset, requested, *part, fitted)

    def body(self, reading: LedgerReader, recipient: str) -> dict[str, Any]:
        """The body of the grant's ledger entry, but for its end; raises an error if no copy could be released."""
        name = self.dataset.dataset
        before = reading.latest("grant", name, recipient)
        fingerprint = None if before is None else before.body.get(FINGERPRINT)
        body = {"columns": None if self.columns is None else list(self.columns), "where": self.where}
        if self.fitted is None:
            given = {"level": self.requested, "fidelity": dict(self.dataset.body[GIVEN])[self.requested]}
            return body | given | {FINGERPRINT: fingerprint}
        if self.fitted.traced and fingerprint is None:
            restored = [entry for entry in reading.entries(Query(kind="vault")) if entry.action == "restored"]
            offset = restored[-1].body[FINGERPRINT_OFFSET] if restored else 0
            fingerprint = offset + reading.count("grant", name)
        ladder = self.fitted.scheme.policy.ladder
        level = ladder.level(self.requested)
        given = {
            "level": ladder.name(level) or level.fidelity,
            "fidelity": _released_fidelity(self.fitted, level, fingerprint),
        }
        return body | given | {FINGERPRINT: fingerprint}


def _released_fidelity(dataset: Dataset, level: Level, fingerprint: int | None) -> float:
    """The fidelity of the copy that is released for a level; raises an error if none could be."""
    from sfumato.vault.fingerprints import fingerprinted, without_fingerprint

    scheme, ladder = dataset.scheme, dataset.scheme.policy.ladder
    if dataset.traced and fingerprint is not None:
        is_declared = ladder.name(level) is not None
        level = fingerprinted(ladder, level, fingerprint) if is_declared else without_fingerprint(ladder, level)
    scheme.models(dataset.schema, level)
    return scheme.given(level).fidelity


def lower_level(dataset: Dataset, entry: Entry, requested: str | float | Level) -> tuple[str | float, float]:
    """A requested level, which must not be above that of the grant, and the fidelity of its copy.

    Other levels than the granted one are requested as numbers, so that recipients do not learn the declared names.
    """
    grant = Grant.of(entry)
    granted = dataset.scheme.policy.ladder.level(grant.level)
    try:
        level = granted if requested == grant.level else _numeric_level(requested)
    except ValueError:
        raise GrantError(
            f"a level must be {grant.level} or a fidelity below {granted.fidelity:g}, got {requested!r}"
        ) from None
    if level.fidelity > granted.fidelity:
        raise GrantError(
            f"a level must not be above that of the grant, {granted.fidelity:g}, got {level.fidelity:g}; lower it"
        )
    if level == granted:
        return grant.level, grant.fidelity
    return level.fidelity, min(_released_fidelity(dataset, level, entry.body.get(FINGERPRINT)), grant.fidelity)


def _numeric_level(requested: str | float | Level) -> Level:
    return requested if isinstance(requested, Level) else Level(float(requested))


def active_grant(reading: LedgerReader, recipient: str, dataset: str, now: datetime) -> tuple[Grant, Entry]:
    """The grant that allows a release now, with its entry; raises `GrantError` if there is none."""
    require(reading, "recipient", recipient)
    require(reading, "dataset", dataset)
    entry = reading.latest("grant", dataset, recipient)
    advice = f"to grant it, use `sfumato grant {recipient} {dataset} --level LEVEL`"
    if entry is None:
        raise GrantError(f"{recipient} must have a grant for {dataset}, and has none", advice)
    if entry.action == "revoked":
        raise GrantError(f"the grant of {dataset} to {recipient} was revoked on {entry.at[:10]}", advice)
    grant = Grant.of(entry)
    if grant.is_over(now):
        raise GrantError(f"the grant of {dataset} to {recipient} ended at {str(grant.until)[:16]} UTC", advice)
    return grant, entry


def require(reading: LedgerReader, kind: str, name: str) -> Entry:
    """The latest entry of a dataset, a survey or a recipient; raises an error if it is unknown, erased or disabled."""
    field = "recipient" if kind == "recipient" else "dataset"
    entry = reading.latest(kind, **{field: name})
    if entry is None:
        names = [getattr(found, field) for found in existing(reading, kind)[:1000]]
        hint = nearest(name, names) if names else "there is none yet"
        raise UnknownSubject(f"there is no {kind} called {name!r}; {hint}")
    if entry.action == ERASED:
        raise UnknownSubject(f"the {kind} {name} was erased on {entry.at[:10]}; the ledger keeps only that it was")
    if entry.action == "disabled":
        raise GrantError(f"the recipient {name} was disabled on {entry.at[:10]}", "enable it first")
    return entry


def existing(reading: LedgerReader, kind: str) -> list[Entry]:
    """The latest entry about each dataset, survey or recipient that was not erased, sorted by name."""
    return [entry for entry in reading.current(kind) if entry.action != ERASED]
