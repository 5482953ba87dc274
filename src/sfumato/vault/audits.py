"""Audits of what recipients hold of a dataset, or may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from sfumato.audit.audit import audit
from sfumato.audit.exposure import exposure
from sfumato.audit.result import Audit
from sfumato.errors import AttackError, GrantError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.ledger.ledger import Query, Reading
from sfumato.models import GaussianNoise
from sfumato.release.sampling import sampled
from sfumato.schema.levels import Level
from sfumato.schema.view import EVERYTHING, View
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import in_force


@dataclass(frozen=True)
class Holder:
    """A copy that a recipient holds, or may have."""

    recipient: str
    fidelity: float
    generation: int
    view: View = EVERYTHING


def holders_of(reading: Reading, dataset: Dataset, names: list[str] | None, now: datetime) -> dict[str, Holder]:
    """Who holds which copy of this version, or may have one, by a name for it."""
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


def _held(reading: Reading, dataset: Dataset, recipient: str) -> list[Holder]:
    """The copies of this version that were released."""
    releases = reading.entries(Query(kind="release", dataset=dataset.name, recipient=recipient))
    bodies = [entry.body for entry in releases if entry.body["version"] == dataset.version]
    return [
        Holder(
            recipient,
            said["fidelity"],
            said["generation"],
            View(said["columns"] and tuple(said["columns"]), said["where"]),
        )
        for said in bodies
    ]


def _view(columns: list[str] | None, where: str | None) -> View:
    return View(None if columns is None else tuple(columns), where)


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
        places, table = sampled(scheme.numbered(source), rows)
        for holder in holders.values():
            places, table = _seen(places, table, holder.view)
        if table.num_rows < 2:
            raise AttackError("an audit needs records that all colluders see, and there are none; name fewer of them")
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


def _seen(places: Words, table: pa.Table, view: View) -> tuple[Words, pa.Table]:
    """The rows that a view shows."""
    if view.where is None or not table.num_rows:
        return places, table
    [batch] = table.combine_chunks().to_batches()
    seen = view.holds(batch)
    return places[seen], table.filter(pa.array(seen))
