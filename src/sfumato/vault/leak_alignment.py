"""Alignment: which row of a table each row of a leaked file is, by its ids, its place, or its numbers.

A match may depend on the file and on noise that nobody was given, never on the copies it shall tell of: else a file
would look like whatever it was matched to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.errors import VaultError
from sfumato.kernels import Floats, Rows, Words
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.tables import numeric
from sfumato.tables.record_ids import record_ids
from sfumato.tables.row_order import lots
from sfumato.tables.source import Source
from sfumato.tables.view import View
from sfumato.vault.datasets import Dataset
from sfumato.vault.fingerprints import BAND

_SEARCHES = 128
"""How often at most the nearest rows are looked for."""

_MOST_ROWS = 5_000_000
"""Of a table in which rows are looked for by their numbers: it is held in memory."""


Copy = tuple[float, View]
"""A fidelity, and the part of the table that is shown."""


@dataclass(frozen=True)
class Issue:
    """The copies of one version that were made with one key."""

    dataset: Dataset
    key: Key
    holders: Mapping[Copy, list[str]]
    """Who has which copy of this version."""
    levels: frozenset[float]
    """The fidelities of all copies of any version: a record that did not change has the same noise in all."""


@dataclass(frozen=True)
class Match:
    """Rows of a file beside the rows of the table that they are."""

    how: str
    """By `ids`, `places` or `numbers`."""
    copies: frozenset[Copy]
    """What it can tell of."""
    probes: tuple[Level, ...]
    """Levels that nobody was given, whose noise was used to find the match."""
    cells: Floats
    """The file's numbers, `(column, row)`."""
    batch: pa.RecordBatch
    rows: Words
    """The table's rows and their record ids."""


WAYS = 3
"""In how many ways rows are told, at most, for a copy."""


def alignments(issue: Issue, scheme: GaussianScheme, leak: Leak, columns: Sequence[str]) -> Iterator[Match]:
    """The ways in which the rows can be told, the surest first."""
    kinds = {field.name: field.type for field in issue.dataset.schema}
    cells = np.array([_numbers(leak.head.column(name), kinds[name]) for name in columns])
    ids = issue.dataset.scheme.ids
    if ids and all(name in leak.head.column_names for name in ids):
        found = _identified(issue, leak.head, ids, kinds)
        if found is not None:
            yield Match("ids", frozenset(issue.holders), (), cells[:, found[0]], found[1], found[2])
    for condition in sorted({view.where for _, view in issue.holders}, key=str):
        batch, rows, total = _shown(issue, condition, leak.head.num_rows)
        if total == leak.rows and total:
            copies = frozenset(copy for copy in issue.holders if copy[1].where == condition)
            yield Match("places", copies, (), cells[:, : len(rows)], batch, rows)
    if len(columns) > 1 and 0 < issue.dataset.body["rows"] <= _MOST_ROWS:
        batch, rows, _ = _shown(issue, None, None)
        for group in _groups(sorted({fidelity for fidelity, _ in issue.holders})):
            probe = _probe(issue, group)
            here, there = _nearest(issue, scheme, columns, cells, (batch, rows), group, probe)
            copies = frozenset(copy for copy in issue.holders if copy[0] in group)
            yield Match("numbers", copies, (probe,), cells[:, here], batch.take(pa.array(there)), rows[there])


@dataclass(frozen=True)
class Leak:
    """A file that was found: its first rows, and how many there are."""

    head: pa.Table
    rows: int

    @classmethod
    def of(cls, file: Source, most: int, known: Sequence[str]) -> Leak:
        """Read a file to its end, and keep its first rows, with columns called as ours if case and blanks differ."""
        kept, rows = [], 0
        for batch in file.batches():
            kept += [batch.slice(0, most - rows)] if rows < most else []
            rows += batch.num_rows
        head = pa.Table.from_batches(kept, schema=file.schema)
        ours = {name.strip().casefold(): name for name in known}
        renamed = [name if name in known else ours.get(name.strip().casefold(), name) for name in head.column_names]
        return cls(head.rename_columns(renamed) if len(set(renamed)) == len(renamed) else head, rows)


def _identified(
    issue: Issue, head: pa.Table, ids: tuple[str, ...], kinds: Mapping[str, pa.DataType]
) -> tuple[Rows, pa.RecordBatch, Words] | None:
    """The rows whose ids are in the table: their places in the file, and themselves with their record ids."""
    secret = issue.key.derive("dataset", issue.dataset.name)
    named = _typed(head.select(list(ids)), kinds)
    usable = np.flatnonzero(~np.logical_or.reduce([np.asarray(column.is_null()) for column in named.columns]))
    if not usable.size:
        return None
    known = record_ids(named.take(pa.array(usable)), ids, usable.astype(np.uint64), secret)
    order = np.argsort(known, kind="stable")
    places, parts, marks = [], [], []
    with issue.dataset.source() as source:
        for batch in source.batches():
            rows = record_ids(batch, ids, np.zeros(batch.num_rows, np.uint64), secret)
            first = np.searchsorted(known[order], rows)
            hit = np.flatnonzero(known[order][np.minimum(first, len(known) - 1)] == rows)
            places.append(usable[order[first[hit]]])
            parts.append(batch.take(pa.array(hit)))
            marks.append(rows[hit])
    if not sum(map(len, places)):
        return None
    return np.concatenate(places), pa.concat_batches(parts), np.concatenate(marks)


def _shown(issue: Issue, condition: str | None, most: int | None) -> tuple[pa.RecordBatch, Words, int]:
    """The first rows of the table that fit a condition, with their record ids, and how many fit it."""
    scheme = issue.dataset.scheme.seen(View(None, condition))
    most = None if scheme.shuffles else most  # which rows come first is known when all are
    kept, total = [], 0
    with issue.dataset.source() as source:
        for rows, batch in scheme.rows(source, issue.key):
            kept += [(rows, batch)] if most is None or total < most else []
            total += len(rows)
        names = [name for name in source.schema.names if not kept or name in kept[0][1].schema.names]
    if not kept:
        fields = pa.schema([issue.dataset.schema.field(name) for name in names])
        return (
            pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in fields], schema=fields),
            np.empty(0, np.uint64),
            0,
        )
    rows, batch = np.concatenate([rows for rows, _ in kept])[:most], pa.concat_batches([batch for _, batch in kept])
    if scheme.shuffles:
        order = np.argsort(lots(rows, issue.key.derive("dataset", issue.dataset.name)))
        return batch.take(pa.array(order)), rows[order], total
    return batch.slice(0, len(rows)), rows, total


def _groups(fidelities: list[float]) -> list[list[float]]:
    """The copies from the most faithful on, some neighbours together if they are many."""
    falling = fidelities[::-1]
    size = -(-len(falling) // _SEARCHES)
    return [falling[i : i + size] for i in range(0, len(falling), size)]


def _probe(issue: Issue, group: list[float]) -> Level:
    """A level just beyond a group of copies, which nobody was given."""
    end = Level(group[-1]).noise
    later = [Level(fidelity).noise for fidelity in issue.levels if fidelity < group[-1]]
    reach = min([end / BAND, *(time - end for time in later)])
    for part in (2, 4, 3, *range(5, 1000)):
        probe = issue.dataset.scheme.given(Level.from_noise(end + reach * part / 4))
        if probe.fidelity not in issue.levels:
            return probe
    raise VaultError("too many neighbouring levels were given for rows to be told by their numbers alone")


def _nearest(
    issue: Issue,
    scheme: GaussianScheme,
    columns: Sequence[str],
    cells: Floats,
    table: tuple[pa.RecordBatch, Words],
    group: list[float],
    probe: Level,
) -> tuple[Rows, Rows]:
    """The rows of the file that have all their numbers, and the rows of the table whose blurred ones are nearest."""
    from scipy.spatial import KDTree  # noqa: PLC0415 - it takes long to import

    original, noise = scheme.paths(*table, [probe], issue.key.derive("dataset", issue.dataset.name))
    places = [scheme.columns.index(name) for name in columns]
    apart = (scheme.factor[places] ** 2).sum(axis=1) * (probe.noise - Level(group[0]).noise)
    size = np.sqrt(apart + [_grain(line) ** 2 / 12 for line in cells])[:, None]
    here = np.flatnonzero(np.isfinite(cells).all(axis=0))
    far, there = KDTree(((original + noise[0])[places] / size).T).query((cells / size).T[here], workers=-1)
    order = np.argsort(far, kind="stable")
    first = order[np.unique(there[order], return_index=True)[1]]  # a row of the table counts once
    return here[first], there[first]


def _grain(numbers: Floats) -> float:
    """The power of ten to which most of a column's numbers were rounded; 0 if they were not."""
    whole = numbers[np.isfinite(numbers) & (numbers != 0)]
    grain = np.zeros_like(whole)
    for power in range(-9, 10):
        steps = whole / 10.0**power
        exact = np.abs(steps - np.rint(steps)) <= 1e-13 * np.abs(steps)
        grain[exact & (np.abs(steps) > 0.5)] = 10.0**power
    return float(np.median(grain)) if grain.size else 0.0


def _typed(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """The columns in the types of the table, null where a cell has none."""
    arrays = []
    for name in table.column_names:
        array = table.column(name).combine_chunks()
        arrays.append(_cast(array, kinds[name]))
    return pa.RecordBatch.from_arrays(arrays, names=table.column_names)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in another type, null where a cell cannot be."""
    try:
        return array.cast(kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([_cell(value, kind) for value in array], kind)


def _cell(value: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return value.cast(kind, safe=False).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        return None


def _numbers(column: pa.ChunkedArray, kind: pa.DataType) -> Floats:
    """A column's numbers, NaN where a cell has none."""
    array = column.combine_chunks()
    wanted = kind if types.is_temporal(kind) else pa.float64()
    cast = _cast(array, wanted) if not numeric.is_number(array.type) or types.is_temporal(kind) else array
    values, null = numeric.read(cast)
    return np.where(null, np.nan, values) if len(null) else values
