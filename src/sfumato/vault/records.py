"""Records over time: what changed between two versions of a dataset, and how often a recipient saw a record anew.

Beside each version lies a file of its records: id, what the noise of its numbers depends on, and everything else, in
64-bit words, dealt into parts by id, one row group a part. Versions are compared part by part, in flat memory.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sfumato.kernels import Floats, Rows, Words
from sfumato.release.dealing import PARTS, deal
from sfumato.release.plan import TableScheme
from sfumato.schema.table import Source
from sfumato.vault.store import Store

_COLUMNS = ("record", "numbers", "rest")


def write_records(scheme: TableScheme, source: Source, path: Path) -> None:
    """Write the file of a version's records."""
    schema = pa.schema([(name, pa.uint64()) for name in _COLUMNS])
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=False, compression="none") as file:
        for part in deal(np.column_stack(words) for words in scheme.records(source)):
            columns = [pa.array(np.ascontiguousarray(part[:, i])) for i in range(part.shape[1])]
            columns = columns if len(columns) == len(_COLUMNS) else [pa.array([], pa.uint64())] * len(_COLUMNS)
            file.write_table(pa.table(columns, schema=schema), row_group_size=max(len(part), 1))


def _parts(store: Store, names: Sequence[str]) -> Iterator[list[Words]]:
    """The parts of several files, side by side."""
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(store.fetch(name)) for name in names]
        files = [stack.enter_context(pyarrow.parquet.ParquetFile(path)) for path in paths]
        for part in range(PARTS):
            tables = [file.read_row_group(part) for file in files]
            yield [np.column_stack([column.to_numpy() for column in table.columns]) for table in tables]


@dataclass(frozen=True)
class Changes:
    """What became of the records between two versions."""

    appended: int
    deleted: int
    unchanged: int
    redrawn: int
    """Records with a changed number: fresh noise for all their numbers."""
    changed: int
    """All changed records, the redrawn ones among them."""


def changes(store: Store, before: str, after: str) -> Changes:
    """Compare two versions by the files of their records."""
    totals: Counter[str] = Counter()
    for old, new in _parts(store, [before, after]):
        _, i, j = np.intersect1d(old[:, 0], new[:, 0], assume_unique=True, return_indices=True)
        numbers, rest = old[i, 1] != new[j, 1], old[i, 2] != new[j, 2]
        totals["appended"] += len(new) - len(j)
        totals["deleted"] += len(old) - len(i)
        totals["redrawn"] += int(numbers.sum())
        totals["changed"] += int((numbers | rest).sum())
        totals["unchanged"] += int((~(numbers | rest)).sum())
    return Changes(**totals)


@dataclass(frozen=True)
class Seen:
    """A copy that a recipient holds: the file of its version's records, its noise variance, its key's generation."""

    records: str
    noise: float
    generation: int


def exposure(store: Store, copies: Sequence[Seen]) -> dict[str, Any]:
    """How often the numbers of each record were drawn anew in these copies, and what averaging them leaves.

    Draws of one record at noise `σi²` leave the best linear attacker `1/(1+Σ1/σi²)` of its variance (li2012,
    Theorem 3); copies that share a draw lie on one path, where the best of them counts alone.
    """
    draws: Counter[int] = Counter()
    least = 1.0
    for parts in _parts(store, [copy.records for copy in copies]):
        counts, left = _drawn(parts, copies)
        draws.update(counts.tolist())
        least = min([least, *left.tolist()])
    return {"draws": {str(times): draws[times] for times in sorted(draws)}, "error": least}


def _drawn(parts: list[Words], copies: Sequence[Seen]) -> tuple[Rows, Floats]:
    """For each record of a part, the number of its draws and the error that they leave together."""
    ids = np.concatenate([part[:, 0] for part in parts])
    if not ids.size:
        return np.empty(0, np.int64), np.empty(0)
    mixed = [part[:, 1] ^ np.uint64(copy.generation << 40) for part, copy in zip(parts, copies, strict=True)]
    draw = np.concatenate(mixed)
    gain = np.concatenate([np.full(len(part), 1 / copy.noise) for part, copy in zip(parts, copies, strict=True)])
    order = np.lexsort((draw, ids))
    ids, draw, gain = ids[order], draw[order], gain[order]
    fresh = np.flatnonzero(np.concatenate([[True], (ids[1:] != ids[:-1]) | (draw[1:] != draw[:-1])]))
    best, owners = np.maximum.reduceat(gain, fresh), ids[fresh]
    starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
    counts = np.diff(np.append(starts, len(owners)))
    return counts, 1 / (1 + np.add.reduceat(best, starts))
