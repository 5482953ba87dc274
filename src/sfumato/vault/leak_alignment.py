"""Record linkage of a leaked file with the original table: by record ids, by row order, or by nearest values.

A match may depend on the file and on noise that nobody received, never on the copies that are then scored: otherwise a
file would resemble any copy it was matched to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sfumato.errors import VaultError
from sfumato.kernels import Floats, Rows, Words
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.perturbation import identified_rows
from sfumato.tables.record_ids import record_ids
from sfumato.tables.row_order import sort_keys
from sfumato.tables.source import Source
from sfumato.tables.view import View
from sfumato.vault.datasets import Dataset
from sfumato.vault.fingerprints import BAND
from sfumato.vault.traced_columns import TracedColumns, typed

_MAX_SEARCHES = 128
"""The most searches for nearest rows."""

_CLOSE = 2.0**-10
"""How much closer the noise of a search by close values is to that of a copy than in a search by values."""

_MAX_ROWS = 5_000_000
"""The most rows of a table that is searched for nearest rows, since it is held in memory."""


class ReleasedCopy(NamedTuple):
    """A copy of some version: its fidelity, and the part of the table that it contains."""

    fidelity: float
    view: View


@dataclass(frozen=True)
class ReleaseGroup:
    """The copies of one version of a dataset that were made with one key."""

    dataset: Dataset
    key: Key
    holders: Mapping[ReleasedCopy, list[str]]
    """The recipients of each copy of this version."""
    levels: frozenset[float]
    """The fidelities of all copies of any version: an unchanged record has the same noise in all of them."""

    @property
    def dataset_key(self) -> Key:
        """The key from which the noise of the dataset is drawn."""
        return self.dataset.scheme.table_key(self.key)


class MatchMethod(StrEnum):
    """How the rows of a file were matched to the rows of the table."""

    RECORD_IDS = "record ids"
    ROW_ORDER = "row order"
    VALUES = "values"
    CLOSE_VALUES = "close values"


@dataclass(frozen=True)
class Match:
    """Rows of a file with the rows of the table that they were matched to."""

    method: MatchMethod
    copies: frozenset[ReleasedCopy]
    """The copies that can be scored with this match."""
    controls: tuple[Level, ...]
    """Levels that nobody received, whose noise was used to find the match."""
    cells: Floats
    """What the file shows, `(column, row)`."""
    batch: pa.RecordBatch
    """The matched rows of the table."""
    rows: Words
    """Their record ids."""


METHODS = len(MatchMethod)
"""The most matches in which a copy is scored."""


@dataclass(frozen=True)
class Leak:
    """A leaked file: its first rows, and the number of all its rows."""

    head: pa.Table
    rows: int

    @classmethod
    def of(cls, file: Source, most: int, columns: Sequence[str]) -> Leak:
        """Read a file, and rename its columns to those of the table where only case and blanks differ."""
        batches, rows = [], 0
        for batch in file.batches():
            batches += [batch.slice(0, most - rows)] if rows < most else []
            rows += batch.num_rows
        head = pa.Table.from_batches(batches, schema=file.schema)
        ours = {name.strip().casefold(): name for name in columns}
        renamed = [name if name in columns else ours.get(name.strip().casefold(), name) for name in head.column_names]
        return cls(head.rename_columns(renamed) if len(set(renamed)) == len(renamed) else head, rows)


def alignments(group: ReleaseGroup, traced: TracedColumns, leak: Leak) -> Iterator[Match]:
    """The matches of a file's rows with the table's, the most reliable one first."""
    cells = traced.read(leak.head, group.dataset.schema)
    yield from _match_by_ids(group, leak, cells)
    yield from _match_by_order(group, leak, cells)
    yield from _match_by_values(MatchMethod.VALUES, group, traced, cells)


def close_alignments(group: ReleaseGroup, traced: TracedColumns, leak: Leak) -> Iterator[Match]:
    """The matches with noise that is very close to that of a copy, as a file of few columns needs it.

    Where rounding has moved the numbers further than that, the other matches show more.
    """
    cells = traced.read(leak.head, group.dataset.schema)
    yield from _match_by_values(MatchMethod.CLOSE_VALUES, group, traced, cells)


def _match_by_ids(group: ReleaseGroup, leak: Leak, cells: Floats) -> Iterator[Match]:
    """The match of the rows whose record ids are in the table."""
    ids = group.dataset.scheme.ids
    if not ids or any(name not in leak.head.column_names for name in ids):
        return
    ids_of_leak = typed(leak.head.select(list(ids)), {name: group.dataset.schema.field(name).type for name in ids})
    usable = np.flatnonzero(~np.logical_or.reduce([np.asarray(column.is_null()) for column in ids_of_leak.columns]))
    if not usable.size:
        return
    leaked = record_ids(ids_of_leak.take(pa.array(usable)), ids, usable.astype(np.uint64), group.dataset_key)
    order = np.argsort(leaked, kind="stable")
    indices, batches, matched = [], [], []
    with group.dataset.source() as source:
        for batch in source.batches():
            rows = record_ids(batch, ids, np.zeros(batch.num_rows, np.uint64), group.dataset_key)
            first = np.searchsorted(leaked[order], rows)
            hit = np.flatnonzero(leaked[order][np.minimum(first, len(leaked) - 1)] == rows)
            indices.append(usable[order[first[hit]]])
            batches.append(batch.take(pa.array(hit)))
            matched.append(rows[hit])
    if sum(map(len, indices)):
        found, batch = cells[:, np.concatenate(indices)], pa.concat_batches(batches)
        yield Match(MatchMethod.RECORD_IDS, frozenset(group.holders), (), found, batch, np.concatenate(matched))


def _match_by_order(group: ReleaseGroup, leak: Leak, cells: Floats) -> Iterator[Match]:
    """The matches of a file that has as many rows as the copies of a view, in their order."""
    for condition in sorted({copy.view.where for copy in group.holders}, key=str):
        batch, rows, total = _rows_of_view(group, condition, leak.head.num_rows)
        if total == leak.rows and total:
            copies = frozenset(copy for copy in group.holders if copy.view.where == condition)
            yield Match(MatchMethod.ROW_ORDER, copies, (), cells[:, : len(rows)], batch, rows)


def _match_by_values(method: MatchMethod, group: ReleaseGroup, traced: TracedColumns, cells: Floats) -> Iterator[Match]:
    """The matches of each row of the file with the row of the table that has the nearest numbers."""
    if len(traced.columns) < 2 or not 0 < group.dataset.rows <= _MAX_ROWS:
        return
    batch, rows, _ = _rows_of_view(group, None, None)
    for fidelities in _neighbours(sorted({copy.fidelity for copy in group.holders})):
        control = _control_level(group, fidelities, _CLOSE if method == MatchMethod.CLOSE_VALUES else 1.0)
        leaked, original = _nearest(group, traced, cells, (batch, rows), fidelities, control)
        copies = frozenset(copy for copy in group.holders if copy.fidelity in fidelities)
        found = batch.take(pa.array(original))
        yield Match(method, copies, (control,), cells[:, leaked], found, rows[original])


def _rows_of_view(group: ReleaseGroup, condition: str | None, most: int | None) -> tuple[pa.RecordBatch, Words, int]:
    """The first rows of a copy with a condition, with their record ids, and the number of all its rows."""
    scheme = group.dataset.scheme.with_view(View(None, condition))
    most = None if scheme.shuffles else most  # all rows are needed to know the order of a shuffled copy
    parts, total = [], 0
    with group.dataset.source() as source:
        for rows, batch in identified_rows(scheme, source, group.key):
            parts += [(rows, batch)] if most is None or total < most else []
            total += len(rows)
    if not parts:
        return _no_rows(group), np.empty(0, np.uint64), 0
    rows = np.concatenate([ids for ids, _ in parts])[:most]
    batch = pa.concat_batches([batch for _, batch in parts])
    if scheme.shuffles:
        order = np.argsort(sort_keys(rows, group.dataset_key))
        return batch.take(pa.array(order)), rows[order], total
    return batch.slice(0, len(rows)), rows, total


def _no_rows(group: ReleaseGroup) -> pa.RecordBatch:
    schema = group.dataset.schema
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _neighbours(fidelities: list[float]) -> list[list[float]]:
    """The fidelities from the highest on, in groups of neighbours if there are many."""
    falling = fidelities[::-1]
    size = -(-len(falling) // _MAX_SEARCHES)
    return [falling[i : i + size] for i in range(0, len(falling), size)]


def _control_level(group: ReleaseGroup, fidelities: list[float], closeness: float) -> Level:
    """A level with slightly more noise than some copies, which nobody received; a small `closeness` brings it near."""
    end = Level(fidelities[-1]).noise
    later = [Level(fidelity).noise for fidelity in group.levels if fidelity < fidelities[-1]]
    reach = closeness * min([end / BAND, *(time - end for time in later)])
    for part in (2, 4, 3, *range(5, 1000)):
        control = group.dataset.scheme.given(Level.from_noise(end + reach * part / 4))
        if control.fidelity not in group.levels:
            return control
    raise VaultError("too many neighbouring levels were released to match rows by their values; trace a file with ids")


def _nearest(
    group: ReleaseGroup,
    traced: TracedColumns,
    cells: Floats,
    table: tuple[pa.RecordBatch, Words],
    fidelities: list[float],
    control: Level,
) -> tuple[Rows, Rows]:
    """The complete rows of the file, and for each the row of the table that is nearest after control noise."""
    from scipy.spatial import KDTree  # noqa: PLC0415 - it is slow to import

    original, noise = traced.paths(*table, [control], group.dataset_key)
    best = Level(fidelities[0])
    variance = np.diag(traced.shape) * (control.noise - best.noise) + traced.resolution(cells)
    size, shown = np.sqrt(variance)[:, None], traced.at_level(cells, best)
    complete = np.flatnonzero(np.isfinite(cells).all(axis=0))
    distance, nearest = KDTree(((original + noise[0]) / size).T).query((shown / size).T[complete], workers=-1)
    order = np.argsort(distance, kind="stable")
    first = order[np.unique(nearest[order], return_index=True)[1]]  # each row of the table is matched once
    return complete[first], nearest[first]
