"""Changes of records between versions of a dataset, and the residual error after repeated noise draws.

Each version has a file of its records as 64-bit hashes: of the id, of the values that determine the noise of the
numbers and of each joint category, and of everything else. The file is partitioned by a hash
of the id, one row group per partition, and versions are compared by partition, in bounded memory; a small file has one
row group.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import VaultError
from sfumato.kernels import Floats, Rows, Words
from sfumato.release.perturbation import joint_schemes, record_digests
from sfumato.release.scheme import TableScheme
from sfumato.tables.partitioner import PARTITIONS, partition_by_id, split_by_id
from sfumato.tables.source import Source
from sfumato.vault.encrypted_store import EncryptedStore

UNDIVIDED = 1 << 16
"""Files of at most this number of records have one row group, which is divided when it is read."""

MAX_LOST = 0.05
"""The share of a version's records that the next one may lose without being asked to; see `loss_refusal`."""


def write_records(scheme: TableScheme, source: Source, target: Any) -> None:
    """Write the file of the record hashes of a version."""
    names = ["record", *(f"draws{i}" for i in range(len(joint_schemes(scheme)))), "rest"]
    schema = pa.schema([(name, pa.uint64()) for name in names])
    digests = record_digests(scheme, source)
    few, rest = _first_rows(digests)
    with pyarrow.parquet.ParquetWriter(target, schema, use_dictionary=False, compression="none") as file:
        for part in [few] if rest is None else partition_by_id(chain([few], rest)):
            words = part if part.size else np.empty((0, len(names)), np.uint64)
            columns = [pa.array(np.ascontiguousarray(words[:, i])) for i in range(len(names))]
            file.write_table(pa.table(columns, schema=schema), row_group_size=max(len(words), 1))


def _first_rows(digests: Iterator[Words]) -> tuple[Words, Iterator[Words] | None]:
    """The first rows, and the others if there are more than go into one row group."""
    found: list[Words] = []
    for batch in digests:
        found.append(batch)
        if sum(map(len, found)) > UNDIVIDED:
            return np.concatenate(found), digests
    return np.concatenate(found) if found else np.empty((0, 0), np.uint64), None


def _parts(store: EncryptedStore, files: Sequence[dict[str, str]]) -> Iterator[list[Words]]:
    """The corresponding partitions of several files."""
    with contextlib.ExitStack() as stack:
        opened = []
        for file in files:
            content = stack.enter_context(stack.enter_context(store.open(file))())
            opened.append(stack.enter_context(pyarrow.parquet.ParquetFile(content)))
        whole = [split_by_id(_words(file, 0)) if file.num_row_groups < PARTITIONS else None for file in opened]
        for part in range(PARTITIONS):
            yield [
                _words(file, part) if split is None else split[part] for file, split in zip(opened, whole, strict=True)
            ]


def _words(file: Any, group: int) -> Words:
    words: Words = np.column_stack([column.to_numpy() for column in file.read_row_group(group).columns])
    return words


@dataclass(frozen=True)
class Changes:
    """The number of records that changed between two versions."""

    appended: int
    deleted: int
    unchanged: int
    redrawn: int
    """Records with new noise in unchanged cells: one changed number redraws the noise of all numbers of its record."""
    changed: int
    """All changed records, including the redrawn ones."""


def compare_versions(
    store: EncryptedStore, before: Sequence[dict[str, str]], after: Sequence[dict[str, str]]
) -> Changes:
    """Compare two versions by the files of their record hashes; each may have several."""
    totals: Counter[str] = Counter()
    for words in _parts(store, [*before, *after]):
        old, new = np.concatenate(words[: len(before)]), np.concatenate(words[len(before) :])
        _, i, j = np.intersect1d(old[:, 0], new[:, 0], assume_unique=True, return_indices=True)
        differs = old[i] != new[j]
        totals["appended"] += len(new) - len(j)
        totals["deleted"] += len(old) - len(i)
        totals["redrawn"] += int(differs[:, 1:-1].any(axis=1).sum())
        totals["changed"] += int(differs.any(axis=1).sum())
        totals["unchanged"] += int((~differs.any(axis=1)).sum())
    return Changes(**totals)


def loss_refusal(dataset: str, rows: int, found: Changes, *, has_ids: bool) -> VaultError | None:
    """The reason against a version that loses too many of its records or, without ids, moves them to other rows."""
    allowed = MAX_LOST * rows
    if found.deleted > allowed:
        return VaultError(
            f"an update must keep at least {1 - MAX_LOST:.0%} of the records, and this table lacks {found.deleted:,} "
            f"of the {rows:,} records of {dataset}; add new rows with `sfumato append {dataset} FILE`, or give up the "
            "missing records with --replace"
        )
    if not has_ids and found.changed > allowed:
        return VaultError(
            f"records without an id column are known by their row number, so that an update must leave them in their "
            f"rows, and {found.changed:,} of the {rows:,} rows of {dataset} would change and get new noise, which "
            "recipients of both versions can average; keep the order of the rows, and add new ones at the end, or add "
            "the table under a policy with an id column. --replace accepts the new noise"
        )
    return None


@dataclass(frozen=True)
class HeldCopy:
    """A copy that a recipient holds."""

    records: str
    """The name of the file with the record hashes of its version."""
    digest: str
    """The digest of that file."""
    generation: int
    """The generation of the master key that its noise was drawn with."""
    noise: float
    """The variance of its noise relative to the data's variance, in the direction where this is smallest."""


def exposure(
    store: EncryptedStore | None,
    copies: Sequence[HeldCopy],
    *,
    numbers: bool,
    elsewhere: Sequence[Sequence[HeldCopy]] = (),
) -> dict[str, Any]:
    """The number of independent noise draws that records received in these copies, and the residual error.

    Averaging independent draws at noise `σi²` leaves `1/(1+Σ1/σi²)` of a record's variance (li2012, Theorem 3); copies
    that share a draw lie on one path, where only the best of them counts. Where the key of a version is lost, all
    records are assumed to have been in it with noise of their own.

    Args:
        store: the store; `None` if nothing in it can be read.
        copies: the copies.
        numbers: whether some columns have additive noise; their hash is then the first unit.
        elsewhere: copies of each other dataset that shares records with this one. Which records these are is not
            known, so that each record counts as the most exposed one there.

    """
    draws, smallest = _draws(store, copies)
    for others in elsewhere:
        more, error = _draws(store, others)
        draws = Counter({times + max(more, default=0): count for times, count in draws.items()})
        smallest = 1 / (1 / smallest + 1 / error - 1)
    histogram = {str(times): draws[times] for times in sorted(draws)}
    return {"draws": histogram, "error": smallest if numbers else None}


def _draws(store: EncryptedStore | None, copies: Sequence[HeldCopy]) -> tuple[Counter[int], float]:
    """How many records received how many draws in these copies, and the smallest residual error of any record."""
    best: dict[tuple[str, str, int], float] = {}
    for copy in copies:
        draw = copy.records, copy.digest, copy.generation
        best[draw] = min(copy.noise, best.get(draw, math.inf))
    known = {} if store is None else {draw: best[draw] for draw in best if store.is_readable(_file(draw))}
    unknown = [noise for draw, noise in best.items() if draw not in known]
    precision = sum(1 / noise for noise in unknown)
    draws, smallest = Counter({len(unknown): 0}), 1 / (1 + precision)
    if store is not None and known:
        draws.clear()
        for parts in _parts(store, list(map(_file, known))):
            counts, errors = _draws_per_record(parts, [generation for _, _, generation in known], list(known.values()))
            draws.update((counts + len(unknown)).tolist())
            smallest = min([smallest, *(1 / (1 / errors + precision)).tolist()])
    return draws, smallest


def _file(draw: tuple[str, str, int]) -> dict[str, str]:
    return {"name": draw[0], "sha256": draw[1]}


def _draws_per_record(parts: list[Words], generations: list[int], noises: list[float]) -> tuple[Rows, Floats]:
    """For each record of a partition, the most draws of any unit, and the residual error of the first unit."""
    ids = np.concatenate([part[:, 0] for part in parts])
    units = parts[0].shape[1] - 2
    if not ids.size or not units:
        return np.ones(len(np.unique(ids)), np.int64), np.empty(0)
    precision = np.concatenate([np.full(len(part), 1 / noise) for part, noise in zip(parts, noises, strict=True)])
    found = []
    for unit in range(1, 1 + units):
        mixed = [part[:, unit] ^ np.uint64(number << 40) for part, number in zip(parts, generations, strict=True)]
        found.append(_distinct_draws(ids, np.concatenate(mixed), precision))
    return np.max([counts for counts, _ in found], axis=0), found[0][1]


def _distinct_draws(ids: Words, draw: Words, precision: Floats) -> tuple[Rows, Floats]:
    """The number of distinct draws of each record, and `1/(1+Σ1/σi²)` over them, each with its smallest noise."""
    order = np.lexsort((draw, ids))
    ids, draw, precision = ids[order], draw[order], precision[order]
    fresh = np.flatnonzero(np.concatenate([[True], (ids[1:] != ids[:-1]) | (draw[1:] != draw[:-1])]))
    best, owners = np.maximum.reduceat(precision, fresh), ids[fresh]
    starts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
    return np.diff(np.append(starts, len(owners))), 1 / (1 + np.add.reduceat(best, starts))
