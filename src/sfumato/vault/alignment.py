"""Alignment: which row of a table each row of a leaked file is, by its ids, its place, or its numbers.

A match may depend on the file and on noise that nobody was given, never on the copies it shall tell of: else a file
would look like whatever it was matched to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.errors import VaultError
from sfumato.kernels import Floats, Rows, Words
from sfumato.keys.identity import record_ids
from sfumato.keys.key import Key
from sfumato.mechanisms._shaped import ShapedNoise
from sfumato.schema import numeric
from sfumato.schema.levels import Level
from sfumato.schema.view import View
from sfumato.vault.datasets import Dataset
from sfumato.vault.marks import BAND

_SEARCHES = 128
"""How often at most the nearest rows are looked for."""


@dataclass(frozen=True)
class Issue:
    """One version, and who has which level of this or another version that was made with the same key."""

    dataset: Dataset
    key: Key
    holders: Mapping[float, list[str]]
    """Recipients by the fidelity of their copy."""
    names: Mapping[float, str | float]
    conditions: frozenset[str | None]
    """Of the rows that recipients see."""


@dataclass(frozen=True)
class Match:
    """Rows of a file beside the rows of the table that they are."""

    fidelities: frozenset[float]
    """The copies that it can tell of."""
    probes: tuple[Level, ...]
    """Levels that nobody was given, whose noise was used to find the match."""
    cells: Floats
    """The file's numbers, `(column, row)`."""
    batch: pa.RecordBatch
    rows: Words
    """The table's rows and their record ids."""


def alignments(issue: Issue, scheme: ShapedNoise, head: pa.Table, columns: Sequence[str]) -> Iterator[Match]:
    """The ways in which the rows can be told, the surest first."""
    every = frozenset(issue.holders)
    kinds = {field.name: field.type for field in issue.dataset.schema}
    cells = np.array([_numbers(head.column(name), kinds[name]) for name in columns])
    ids = issue.dataset.scheme.ids
    needed = [*scheme.columns, *ids]
    if ids and all(name in head.column_names for name in ids):
        found = _identified(issue, head, ids, kinds)
        if found is not None:
            yield Match(every, (), cells[:, found[0]], found[1].select(needed), found[2])
    for condition in issue.conditions:
        batch, rows = _whole(issue, needed, condition)
        if head.num_rows == len(rows):
            yield Match(every, (), cells, batch, rows)
    batch, rows = _whole(issue, needed, None)
    if len(columns) > 1:
        for group in _groups(sorted(issue.holders)):
            probe = _probe(issue, group)
            here, there = _nearest(issue, scheme, columns, cells, (batch, rows), group, probe)
            yield Match(frozenset(group), (probe,), cells[:, here], batch.take(pa.array(there)), rows[there])


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


def _whole(issue: Issue, needed: list[str], condition: str | None) -> tuple[pa.RecordBatch, Words]:
    """The rows of the table that fit a condition, with their record ids."""
    scheme = issue.dataset.scheme.seen(View(None, condition))
    with issue.dataset.source() as source:
        parts = list(scheme.rows(source, issue.key))
    rows = np.concatenate([rows for rows, _ in parts]) if parts else np.empty(0, np.uint64)
    fields = pa.schema([issue.dataset.schema.field(name) for name in needed])
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=fields)
    return pa.concat_batches([empty, *(batch.select(needed) for _, batch in parts)]), rows


def _groups(fidelities: list[float]) -> list[list[float]]:
    """The copies from the most faithful on, some neighbours together if they are many."""
    falling = fidelities[::-1]
    size = -(-len(falling) // _SEARCHES)
    return [falling[i : i + size] for i in range(0, len(falling), size)]


def _probe(issue: Issue, group: list[float]) -> Level:
    """A level just beyond a group of copies, which nobody was given."""
    end = Level(group[-1]).noise
    later = [Level(fidelity).noise for fidelity in issue.holders if fidelity < group[-1]]
    reach = min([end / BAND, *(time - end for time in later)])
    for part in (2, 4, 3, *range(5, 1000)):
        probe = issue.dataset.scheme.given(Level.from_noise(end + reach * part / 4))
        if probe.fidelity not in issue.holders:
            return probe
    raise VaultError("too many neighbouring levels were given for rows to be told by their numbers alone")


def _nearest(
    issue: Issue,
    scheme: ShapedNoise,
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
    try:
        return array.cast(kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(array), kind)


def _numbers(column: pa.ChunkedArray, kind: pa.DataType) -> Floats:
    """A column's numbers, NaN where a cell has none."""
    array = column.combine_chunks()
    wanted = kind if types.is_temporal(kind) else pa.float64()
    cast = _cast(array, wanted) if not numeric.is_number(array.type) or types.is_temporal(kind) else array
    values, null = numeric.read(cast)
    return np.where(null, np.nan, values) if len(null) else values
