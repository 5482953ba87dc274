"""Grants: which level of which dataset a recipient may have, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sfumato.errors import GrantError, UnknownSubject, nearest
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import LedgerReader, Query
from sfumato.levels import Level
from sfumato.tables.view import View
from sfumato.vault.datasets import Dataset
from sfumato.vault.fingerprints import marked, unmarked

Asked = str | float | Level | None
"""A level as somebody asks for it."""


@dataclass(frozen=True)
class Grant:
    """A grant in force."""

    recipient: str
    dataset: str
    level: str | float
    """As it was granted, a declared name or a fidelity."""
    fidelity: float
    """Of the copy that is made: never higher."""
    columns: tuple[str, ...] | None
    where: str | None
    until: str | None

    @classmethod
    def of(cls, entry: Entry) -> Grant:
        """The grant that an entry speaks of."""
        said = entry.body
        columns = None if said["columns"] is None else tuple(said["columns"])
        return cls(
            entry.recipient, entry.dataset, said["level"], said["fidelity"], columns, said["where"], said["until"]
        )

    def is_over(self, now: datetime) -> bool:
        """Whether its last moment has passed."""
        return self.until is not None and now >= datetime.fromisoformat(self.until)

    @property
    def view(self) -> View:
        """The part of the table that the recipient sees."""
        return View(self.columns, self.where)


def terms(
    reading: LedgerReader, dataset: Dataset, recipient: str, asked: str | float | Level, view: View, until: str | None
) -> dict[str, Any]:
    """What the ledger shall say of a grant; refused if no copy could be made."""
    ladder = dataset.scheme.policy.ladder
    level = ladder.level(asked)
    name = ladder.name(level)
    before = reading.latest("grant", dataset.name, recipient)
    mark = None if before is None else before.body.get("mark")
    if dataset.traced and mark is None:
        restored = reading.entries(Query(action="restored", last=1))
        mark = (restored[0].body["marks"] if restored else 0) + reading.count("grant", dataset.name)
    dataset.scheme.seen(view).check_view(dataset.schema)
    return {
        "level": name or level.fidelity,
        "fidelity": _given(dataset, level, mark),
        "columns": None if view.columns is None else list(view.columns),
        "where": view.where,
        "until": until,
        "mark": mark,
    }


def _given(dataset: Dataset, level: Level, mark: int | None) -> float:
    """The fidelity of the copy that is made where a level is asked for; refused if none could be made."""
    scheme, ladder = dataset.scheme, dataset.scheme.policy.ladder
    if dataset.traced and mark is not None:
        level = unmarked(ladder, level) if ladder.name(level) is None else marked(ladder, level, mark)
    scheme.models(dataset.schema, level)
    return scheme.given(level).fidelity


def below(dataset: Dataset, entry: Entry, asked: str | float | Level) -> tuple[str | float, float]:
    """A level that somebody with a grant asks for, which must not be above it, and the fidelity of that copy.

    It is asked for by its number, so that nobody learns which other levels have names.
    """
    grant = Grant.of(entry)
    granted = dataset.scheme.policy.ladder.level(grant.level)
    try:
        level = granted if asked == grant.level else asked if isinstance(asked, Level) else Level(float(asked))
    except ValueError:
        raise GrantError(
            f"a level must be {grant.level} or a fidelity below {granted.fidelity:g}, got {asked!r}"
        ) from None
    if level.fidelity > granted.fidelity:
        raise GrantError(
            f"a level must not be above that of the grant, {granted.fidelity:g}, got {level.fidelity:g}; ask for less"
        )
    if level == granted:
        return grant.level, grant.fidelity
    return level.fidelity, min(_given(dataset, level, entry.body.get("mark")), grant.fidelity)


def in_force(reading: LedgerReader, recipient: str, dataset: str, now: datetime) -> tuple[Grant, Entry]:
    """The grant that allows a release now, with its entry; else the reason why there is none."""
    known(reading, "recipient", recipient)
    known(reading, "dataset", dataset)
    entry = reading.latest("grant", dataset, recipient)
    hint = f"grant it with `sfumato grant {recipient} {dataset} --level LEVEL`"
    if entry is None:
        raise GrantError(f"{recipient} must have a grant for {dataset}, and has none; {hint}")
    if entry.action == "revoked":
        raise GrantError(f"the grant of {dataset} to {recipient} was revoked on {entry.at[:10]}; {hint}")
    grant = Grant.of(entry)
    if grant.is_over(now):
        raise GrantError(f"the grant of {dataset} to {recipient} ended at {str(grant.until)[:16]} UTC; {hint}")
    return grant, entry


def known(reading: LedgerReader, kind: str, name: str) -> Entry:
    """The latest entry of a dataset, a survey or a recipient; refused if there is none, or if it is disabled."""
    place = "recipient" if kind == "recipient" else "dataset"
    entry = reading.latest(kind, **{place: name})
    if entry is None:
        near = [getattr(found, place) for found in reading.current(kind, first=1000)]
        hint = nearest(name, near) if near else "there is none yet"
        raise UnknownSubject(f"there is no {kind} called {name!r}; {hint}")
    if entry.action == "disabled":
        raise GrantError(f"the recipient {name} was disabled on {entry.at[:10]}; enable it first")
    return entry
