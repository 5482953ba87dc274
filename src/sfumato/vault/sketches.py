"""Sketches of a version's records, by which two datasets that share records are recognised.

A sketch has several sets of keyed 64-bit hashes, each cut to its `SIZE` smallest (bottom-k sampling, so that two
sketches keep the same hashes of what they share):

- `record`: the values of all columns; and `value/C`: the values of column C, if they hardly ever repeat;
- `id-record`: the id (without ids, the row number) with the values of all columns;
- `id/C`: the id with the value of column C, in a table that has ids.

Two unrelated tables agree in some hashes by coincidence, as in the ages of the persons with number 17. Each set has the
probability of this, from its own values, and a set in which it is too large is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyarrow import types

from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.stream import Stream
from sfumato.release.layout import TableLayout
from sfumato.release.perturbation import numbered_rows
from sfumato.tables import numeric
from sfumato.tables.record_ids import hashed, record_ids
from sfumato.tables.source import Source

SIZE = 1 << 14
"""The most hashes of a set."""

MIN_SHARE = 0.1
"""The share of the smaller table's records from which two tables overlap."""

_MIN_MATCHES, _Z = 10, 6.0
"""The least number of equal hashes, and of standard deviations above coincidence that show an overlap."""

_MAX_COINCIDENCE = {"record": 0.06, "value": 0.06, "id": 0.02, "id-record": 0.5}
"""The largest probability of agreement by coincidence at which a set of each kind is kept."""


@dataclass(frozen=True)
class HashSet:
    """The smallest hashes of a set, in order, and the probability that an unrelated record has one of them."""

    hashes: Words
    coincidence: float

    def overlap(self, other: HashSet) -> float:
        """The share of the smaller set's records that the other one has too, not by coincidence; 0 if not sure."""
        both = self.hashes, other.hashes
        limit = min([hashes[-1] for hashes in both if len(hashes) == SIZE], default=np.uint64(2**64 - 1))
        mine, theirs = (hashes[hashes <= limit] for hashes in both)
        size, coincidence = min(len(mine), len(theirs)), max(self.coincidence, other.coincidence)
        matches = len(np.intersect1d(mine, theirs, assume_unique=True))
        expected = size * coincidence
        if matches < max(_MIN_MATCHES, expected + _Z * np.sqrt(expected * (1 - coincidence))):
            return 0.0
        share = float((matches / size - coincidence) / (1 - coincidence))
        return share if share >= MIN_SHARE else 0.0


Sketch = dict[str, HashSet]


def overlap(one: Sketch, other: Sketch) -> float:
    """The largest overlap of two sketches in any of their sets."""
    return max((one[name].overlap(other[name]) for name in set(one) & set(other)), default=0.0)


def extended(before: Sketch, more: Sketch) -> Sketch:
    """The sketch of a table and of rows that were appended to it, in the sets that it has."""
    out = {}
    for name, one in before.items():
        new = more[name].hashes if name in more else one.hashes[:0]
        if len(one.hashes) == SIZE:
            new = new[new < one.hashes[-1]]
        if not len(one.hashes):
            out[name] = HashSet(new[:SIZE], one.coincidence)
            continue
        at = np.searchsorted(one.hashes, new)
        fresh = new[(at == len(one.hashes)) | (one.hashes[np.minimum(at, len(one.hashes) - 1)] != new)]
        out[name] = HashSet(np.sort(np.concatenate([one.hashes, fresh]))[:SIZE], one.coincidence)
    return out


def sketch(layout: TableLayout, source: Source, key: Key, *, every: bool = False) -> Sketch:
    """The sketch of a table; the key is the vault's, so that sketches of all its datasets can be compared.

    With `every`, also of sets that agree too often by coincidence.
    """
    secret = key.derive("sketch")
    stream, samples = Stream(secret), dict[str, _Sample]()
    for rows, batch in numbered_rows(layout, source):
        ids = record_ids(batch, layout.ids, rows, secret)
        for name, owners, words in _units(layout, batch, ids, secret):
            hashes = stream.bits(name, stream.addresses(owners, words))[::2]
            lane = name.partition("\0")[0]
            samples.setdefault(lane, _Sample()).add(np.ascontiguousarray(hashes), words)
    found = {name: HashSet(one.kept[:, 0], one.coincidence(name)) for name, one in samples.items() if one.rows}
    return {
        name: one for name, one in found.items() if every or one.coincidence <= _MAX_COINCIDENCE[name.partition("/")[0]]
    }


def _units(
    layout: TableLayout, batch: pa.RecordBatch, ids: Words, key: Key
) -> Iterator[tuple[str, Words, list[Words]]]:
    """The sets that a batch adds to: the lane, the id or 0 of each row, and the words of its values."""
    names = sorted(set(batch.schema.names) - set(layout.ids))
    if not names:
        return
    nobody = np.zeros(batch.num_rows, np.uint64)
    words, missing = zip(*(_words(batch.column(name), name, key) for name in names), strict=True)
    every = "\0" + "\0".join(names)  # tables with other columns have other hashes
    yield f"record{every}", nobody, list(words)
    yield f"id-record{every}", ids, list(words)
    for name, values, null in zip(names, words, missing, strict=True):
        if layout.refers(name):  # sibling tables have the same references, and other records
            continue
        yield f"value/{name}", nobody[~null], [values[~null]]
        if layout.ids:
            yield f"id/{name}", ids[~null], [values[~null]]


def _words(array: pa.Array, name: str, key: Key) -> tuple[Words, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """A word for each value, equal for equal values whatever their type's width, and a mask of missing values."""
    if numeric.is_number(array.type) or numeric.is_temporal(array.type):
        values, null = numeric.read(array)
        missing = np.isnan(values) | (null if null.size else False)
        return np.where(missing, 0.0, values + 0.0).view(np.uint64), missing  # there is one zero
    missing = array.is_null().to_numpy(zero_copy_only=False)
    if types.is_nested(array.type):
        return hashed(pa.RecordBatch.from_arrays([array], names=[name]), [name], key), missing
    encoded = array if types.is_dictionary(array.type) else array.dictionary_encode()
    found = hashed(pa.RecordBatch.from_arrays([encoded.dictionary], names=[name]), [name], key)
    indices = encoded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.append(found, np.uint64(0))[indices], missing


class _Sample:
    """The rows with the smallest hashes of a set, and what they tell about agreement by coincidence."""

    def __init__(self) -> None:
        self.rows, self.kept = 0, np.empty((0, 2), np.uint64)

    def add(self, hashes: Words, words: list[Words]) -> None:
        """Take some rows, by their hashes and the words of their values."""
        self.rows += len(hashes)
        mixed = np.bitwise_xor.reduce([word * np.uint64(2 * i + 1) for i, word in enumerate(words)])
        rows = np.column_stack([hashes, mixed])
        if len(self.kept) == SIZE:
            rows = rows[hashes < self.kept[-1, 0]]
        joined = np.concatenate([self.kept, rows])
        _, first = np.unique(joined[:, 0], return_index=True)
        self.kept = joined[first[:SIZE]]

    def coincidence(self, name: str) -> float:
        """The probability that an unrelated record, from the same distribution, has one of the hashes.

        With an id it is that of two records having the same value. Without, it is `n` times that, and as `n` records
        show, which lose half of it to repetitions.
        """
        count = len(self.kept)
        if name.startswith("id"):
            _, times = np.unique(self.kept[:, 1], return_counts=True)
            return float((times * (times - 1)).sum() / max(count * (count - 1), 1))
        distinct = count if count < SIZE else (SIZE - 1) / (float(self.kept[-1, 0]) / 2.0**64)
        return max(0.0, 2 * (1 - distinct / self.rows))


def write_sketch(target: Any, found: Sketch) -> None:
    """Write a sketch to a file."""
    sets = np.repeat(np.arange(len(found), dtype=np.int32), [len(one.hashes) for one in found.values()])
    hashes = np.concatenate([np.empty(0, np.uint64), *(one.hashes for one in found.values())])
    named = pa.DictionaryArray.from_arrays(pa.array(sets), pa.array(list(found), pa.string()))
    table = pa.table({"set": named, "hash": hashes})
    coincidences = json.dumps({name: one.coincidence for name, one in found.items()})
    pyarrow.parquet.write_table(
        table.replace_schema_metadata({"coincidences": coincidences}),
        target,
        compression="none",
        use_dictionary=["set"],
    )


def read_sketch(content: Any) -> Sketch:
    """Read a sketch from a file."""
    table = pyarrow.parquet.read_table(content)
    column = table.column("set").combine_chunks()
    named = column if types.is_dictionary(column.type) else column.dictionary_encode()
    sets, hashes = named.indices.to_numpy(), table.column("hash").to_numpy()
    numbers = {name: i for i, name in enumerate(named.dictionary.to_pylist())}
    coincidences = json.loads(table.schema.metadata[b"coincidences"])
    return {
        name: HashSet(hashes[sets == numbers.get(name, -1)], coincidence) for name, coincidence in coincidences.items()
    }
