"""Audits of what recipients hold of a dataset, or may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.audit import audit
from sfumato.audit.outliers import exposure
from sfumato.audit.result import Audit
from sfumato.errors import AttackError, GrantError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.ledger.ledger import LedgerReader, Query
from sfumato.levels import Level
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.tables.sampling import sampled
from sfumato.tables.view import EVERYTHING, View
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import in_force


@dataclass(frozen=True)
class Holder:
    """A copy that a recipient holds, or may have."""

    recipient: str
    fidelity: float
    generation: int
    view: View = EVERYTHING


def holders_of(reading: LedgerReader, dataset: Dataset, names: list[str] | None, now: datetime) -> dict[str, Holder]:
    """Who holds which copy, or may have one, by a name for it."""
    current = reading.head().generation
    grants = [entry.recipient for entry in reading.current("grant", dataset=dataset.name)]
    found: list[Holder] = []
    for recipient in dict.fromkeys(grants if names is None else names):
        held = _held(reading, dataset, recipient)
        try:
            grant, _ = in_force(reading, recipient, dataset.name, now)
            held.append(Holder(recipient, grant.fidelity, current, grant.view))
        except GrantError:
            if names is not None and not held:
                raise
        found += held
    if not found:
        ladder = dataset.scheme.policy.ladder
        return {name: Holder(name, level.fidelity, current) for name, level in ladder.levels.items()}
    return _named(sorted(dict.fromkeys(found), key=lambda holder: -holder.fidelity))


def _held(reading: LedgerReader, dataset: Dataset, recipient: str) -> list[Holder]:
    """The copies that were released, of any version: a record that has not changed since shows the same in them."""
    releases = reading.entries(Query(kind="release", dataset=dataset.name, recipient=recipient))
    return [Holder(recipient, e.body["fidelity"], e.body["generation"], _view(e.body)) for e in releases]


def _view(said: dict[str, Any]) -> View:
    return View(None if said["columns"] is None else tuple(said["columns"]), said["where"])


def _named(holders: Sequence[Holder]) -> dict[str, Holder]:
    """A recipient with several copies is counted."""
    names: dict[str, Holder] = {}
    for holder in holders:
        name, count = holder.recipient, 1
        while name in names:
            count += 1
            name = f"{holder.recipient} ({count})"
        names[name] = holder
    return names


def audit_dataset(
    dataset: Dataset,
    holders: Mapping[str, Holder],
    keys: Mapping[int, Key],
    *,
    attacks: Sequence[str] | None,
    rows: int,
    stage: Callable[[str], None],
) -> Audit:
    """Make the copies of some records anew, bit for bit, and attack them."""
    scheme = dataset.scheme
    with dataset.source() as source:
        stage("reading the table")
        views = list(dict.fromkeys(holder.view for holder in holders.values()))
        places, table = sampled(_shared(scheme.numbered(source), views), rows)
        if table.num_rows < 2:
            names = ", ".join(holders)
            raise AttackError(f"no record is seen by all of {names}; name those who share some, as in --colluders a,b")
        stage("making the copies")
        copies = {
            name: scheme.seen(h.view).copies(places, table, [Level(h.fidelity)], keys[h.generation])[0]
            for name, h in holders.items()
        }
        stage("looking for outliers")
        best = Level(max(holder.fidelity for holder in holders.values()))
        noise = [m for m in scheme.models(dataset.schema, best) if isinstance(m, GaussianNoise)]
        exposed = exposure(lambda: scheme.numbered(source), noise[0], scheme.ids) if noise else None
        targets, count = scheme.policy.targets, int(dataset.body["rows"])
        return audit(table, copies, attacks=attacks, targets=targets, exposure=exposed, rows=count, stage=stage)


def _shared(
    batches: Iterable[tuple[Words, pa.RecordBatch]], views: Sequence[View]
) -> Iterator[tuple[Words, pa.RecordBatch]]:
    """The rows that all views show."""
    for places, batch in batches:
        seen = np.ones(batch.num_rows, np.bool_)
        for view in views:
            seen &= view.holds(batch)
        yield places[seen], batch.filter(pa.array(seen))
