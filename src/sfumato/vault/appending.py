"""Appending rows to a dataset: what is stored and looked at grows with the new rows, not with the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from sfumato.mechanisms._entity_rows import most_rows
from sfumato.tables.record_ids import record_ids
from sfumato.tables.source import Source
from sfumato.vault.dataset_entries import ENTITY_ROWS, RATIO
from sfumato.vault.datasets import PUBLIC_KEY, Dataset, check_rows, given_fidelities, later_body, measured_ratio
from sfumato.vault.known_ids import ensure_new
from sfumato.vault.record_changes import Changes
from sfumato.vault.running_moments import RunningMoments
from sfumato.vault.stored_rows import MOMENTS, store_moments, store_rows
from sfumato.vault.table_parts import carried


def appended_version(
    dataset: Dataset, more: Source, rows: int, progress: Callable[[int], None] | None
) -> dict[str, Any]:
    """Store rows that a dataset does not have, and return the body of its next version's ledger entry.

    The rows before stay where they are, but for small parts, which are stored again together with the new ones.

    Args:
        dataset: the version before.
        more: the new rows, with the columns of the first version.
        rows: their number.
        progress: called with the number of rows that were stored.

    """
    scheme, store, number = dataset.scheme, dataset.store, dataset.version + 1
    new = more.starting_at(dataset.rows)
    check_rows(scheme, new, traced=False)
    for batch in new.batches(list(scheme.ids)) if scheme.ids else ():
        ids = record_ids(batch, scheme.ids, np.zeros(batch.num_rows, np.uint64), PUBLIC_KEY)  # as `record_digests` has
        ensure_new(store, dataset.parts, ids)
    kept, again = carried(dataset.parts, rows)
    prefix = f"{store.folder(dataset.name)}/{number}"
    with dataset.opened(again) as before:
        tail = new if before is None else before.extended(more).starting_at(sum(part.rows for part in kept))
        stored = store_rows(prefix, scheme, tail, dataset.schema, store, part=number, progress=progress)
    body = later_body(dataset, [*kept, stored])
    moments = _moments(dataset, new)
    if moments is None:
        with Dataset(dataset.name, body, store).source() as whole:
            ratio = measured_ratio(scheme, whole, None)
    else:
        ratio = measured_ratio(scheme, new, moments)
    body |= _entity_rows(dataset, new)
    found = Changes(appended=rows, deleted=0, unchanged=dataset.rows, redrawn=0, changed=0)
    body |= store_moments(prefix, moments, store) | {"changes": asdict(found), RATIO: ratio}
    return body | given_fidelities(scheme, dataset.schema, body)


def _entity_rows(dataset: Dataset, new: Source) -> dict[str, Any]:
    """The most rows that an entity may have: as many as before, and as many as one has of the new ones."""
    policy = dataset.scheme.policy
    column = policy.entity
    if column is None:
        return {}
    models = dataset.scheme.models(dataset.schema, min(policy.ladder))
    before = dataset.body.get(ENTITY_ROWS) or int(max(getattr(model, "entity_rows", 1.0) for model in models))
    return {ENTITY_ROWS: before + most_rows(new.batches([column]), column)}


def _moments(dataset: Dataset, new: Source) -> RunningMoments | None:
    """The running moments with the new rows; nothing where the version before has none."""
    if MOMENTS not in dataset.body:
        return None
    earlier = RunningMoments.loads(dataset.store.read_text(dataset.body[MOMENTS]))
    return earlier.merged(RunningMoments.of(dataset.scheme, new, earlier))
