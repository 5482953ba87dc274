"""Records over time: what changed between two versions of a dataset, and how often a recipient saw a record anew.

Beside each version lies a file of its records in 64-bit words: the id, what the noise of its numbers and of joint
categories depends on, and everything else. It is dealt into parts by id, one row group a part, and versions are
compared part by part, in flat memory.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sfumato.kernels import Floats, Rows, Words
from sfumato.release.scheme import TableScheme
from sfumato.tables.partitioner import PARTS, deal
from sfumato.tables.source import Source
from sfumato.vault.store import Store, altered


def write_records(scheme: TableScheme, source: Source, path: Path) -> None:
    """Write the file of a version's records."""
    names = ["record", *(f"draws{i}" for i in range(len(scheme.units))), "rest"]
    schema = pa.schema([(name, pa.uint64()) for name in names])
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=False, compression="none") as file:
        for part in deal(scheme.records(source)):
            words = part if part.size else np.empty((0, len(names)), np.uint64)
            columns = [pa.array(np.ascontiguousarray(words[:, i])) for i in range(len(names))]
            file.write_table(pa.table(columns, schema=schema), row_group_size=max(len(words), 1))


def _parts(store: Store, files: Sequence[dict[str, str]]) -> Iterator[list[Words]]:
    """The parts of several files, side by side."""
    with contextlib.ExitStack() as stack:
        opened = []
        for file in files:
            if not store.is_whole(file):
                raise altered(file["name"])
            path = stack.enter_context(store.fetch(file["name"]))
            opened.append(stack.enter_context(pyarrow.parquet.ParquetFile(path)))
        for part in range(PARTS):
            tables = [records.read_row_group(part) for records in opened]
            yield [np.column_stack([column.to_numpy() for column in table.columns]) for table in tables]


@dataclass(frozen=True)
class Changes:
    """What became of the records between two versions."""

    appended: int
    deleted: int
    unchanged: int
    redrawn: int
    """Records with fresh noise for cells that did not change: with a changed number, all their numbers."""
    changed: int
    """All changed records, the redrawn ones among them."""


def changes(store: Store, before: dict[str, str], after: dict[str, str]) -> Changes:
    """Compare two versions by the files of their records."""
    totals: Counter[str] = Counter()
    for old, new in _parts(store, [before, after]):
        _, i, j = np.intersect1d(old[:, 0], new[:, 0], assume_unique=True, return_indices=True)
        other = old[i] != new[j]
        totals["appended"] += len(new) - len(j)
        totals["deleted"] += len(old) - len(i)
        totals["redrawn"] += int(other[:, 1:-1].any(axis=1).sum())
        totals["changed"] += int(other.any(axis=1).sum())
        totals["unchanged"] += int((~other.any(axis=1)).sum())
    return Changes(**totals)


@dataclass(frozen=True)
class Seen:
    """A copy that a recipient holds: the file of its version's records, its key's generation, and its noise.

    The noise is its variance in units of the variance that the data have where they have most of it.
    """

    records: str
    digest: str
    generation: int
    noise: float


def exposure(store: Store, copies: Sequence[Seen], *, numbers: bool) -> dict[str, Any]:
    """How often records were drawn anew in these copies, and what averaging leaves of the variance of their numbers.

    Draws of one record at noise `σi²` leave the best linear attacker `1/(1+Σ1/σi²)` of its variance (li2012,
    Theorem 3); copies that share a draw lie on one path, where the best of them counts alone.

    Args:
        numbers: whether there are any; they are the first unit that is drawn together.

    """
    best: dict[tuple[str, str, int], float] = {}
    for copy in copies:
        place = copy.records, copy.digest, copy.generation
        best[place] = min(copy.noise, best.get(place, math.inf))
    files = [{"name": name, "sha256": digest} for name, digest, _ in best]
    turns = [generation for _, _, generation in best]
    draws: Counter[int] = Counter()
    least = 1.0
    for parts in _parts(store, files):
        most, left = _drawn(parts, turns, list(best.values()))
        draws.update(most.tolist())
        least = min([least, *left.tolist()])
    shown = {str(times): draws[times] for times in sorted(draws)}
    return {"draws": shown, "error": least if numbers else None}


def _drawn(parts: list[Words], turns: list[int], noises: list[float]) -> tuple[Rows, Floats]:
    """For each record of a part, the most draws of any unit, and the error that those of the first leave together."""
    ids = np.concatenate([part[:, 0] for part in parts])
    units = parts[0].shape[1] - 2
    if not ids.size or not units:
        return np.ones(len(np.unique(ids)), np.int64), np.empty(0)
    gain = np.concatenate([np.full(len(part), 1 / noise) for part, noise in zip(parts, noises, strict=True)])
    found = []
    for unit in range(1, 1 + units):
        mixed = [part[:, unit] ^ np.uint64(turn << 40) for part, turn in zip(parts, turns, strict=True)]
        found.append(_counted(ids, np.concatenate(mixed), gain))
    return np.max([counts for counts, _ in found], axis=0), found[0][1]


def _counted(ids: Words, draw: Words, gain: Floats) -> tuple[Rows, Floats]:
    """The number of distinct draws of each record, and `1/(1+Σgain)` over them, each with its best gain."""
    order = np.lexsort((draw, ids))
    ids, draw, gain = ids[order], draw[order], gain[order]
    fresh = np.flatnonzero(np.concatenate([[True], (ids[1:] != ids[:-1]) | (draw[1:] != draw[:-1])]))
    best, owners = np.maximum.reduceat(gain, fresh), ids[fresh]
    starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
    return np.diff(np.append(starts, len(owners))), 1 / (1 + np.add.reduceat(best, starts))
