"""Rows of entities: how much columns vary between patients or households, and how much between the rows of one.

The covariances are those of a random-effects model, `x = μ + b + e` with one `b` per entity and one `e` per row, by the
analysis of variance. They are measured on at most so many entities as fit in memory: those with the smallest hashes,
whichever rows are read first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.kernels import Floats, Rows, Words
from sfumato.keys.key import Key
from sfumato.mechanisms import Summary
from sfumato.tables.record_ids import hashed

_CELLS = 1 << 22
"""The most numbers that a summary keeps, over all entities."""

MOST_ROWS = 1 << 20
"""The most rows of one entity: sums of more products would not be exact."""

FEWEST = 30
"""The fewest entities with several rows from which it can be told how rows of one entity vary."""

ENTITY_ROWS = "entity_rows"
"""The key of a scheme's state that holds the rows per entity."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EntityRows(Summary):
    """The number of rows of each entity and, over its complete rows, the sums and products of their integers."""

    ids: Words
    """Hashes of the entities, in order."""
    rows: Counts
    complete: Counts
    sums: Counts
    """One row per entity, one column per column of the table."""
    products: Counts
    """The lower triangles of the cross products, one row per entity."""
    low: Floats
    high: Floats
    """The ends of each column within an entity; infinite where it has no value there."""

    @classmethod
    def of(cls, ids: Words, integers: Floats, values: Floats) -> EntityRows:
        """The rows of a batch: integers per row and column as in `exact_moments`, and the values, NaN where null."""
        order = np.argsort(ids, kind="stable")
        entities, starts = np.unique(ids[order], return_index=True)
        there = np.flatnonzero(~np.isnan(values).any(axis=1))
        present = np.zeros(len(ids), np.int64)
        present[there] = 1
        whole = np.zeros(integers.shape, np.int64)
        whole[there] = integers[there]
        whole = whole[order]
        lower = np.tril_indices(values.shape[1])
        low, high = (np.where(np.isnan(values), end, values)[order] for end in (math.inf, -math.inf))
        found = cls(
            entities,
            np.diff(np.append(starts, len(ids))).astype(np.int64),
            _totals(present[order], starts),
            _totals(whole, starts),
            _totals(whole[:, lower[0]] * whole[:, lower[1]], starts),
            np.minimum.reduceat(low, starts, axis=0) if len(ids) else low,
            np.maximum.reduceat(high, starts, axis=0) if len(ids) else high,
        )
        return found.sampled()

    @classmethod
    def counted(cls, ids: Words) -> EntityRows:
        """The rows of a batch, of which no columns are looked at."""
        nothing = np.empty((len(ids), 0))
        return cls.of(ids, nothing, nothing)

    def merge(self, other: Self) -> Self:
        entities, into = np.unique(np.concatenate([self.ids, other.ids]), return_inverse=True)
        count, (ours, theirs) = len(entities), (into[: len(self.ids)], into[len(self.ids) :])

        def added(one: Counts, more: Counts) -> Counts:
            out = np.zeros((count, *one.shape[1:]), np.int64)
            out[ours] += one
            out[theirs] += more
            return out

        low, high = (np.full((count, self.low.shape[1]), end) for end in (math.inf, -math.inf))
        low[ours], high[ours] = self.low, self.high
        low[theirs], high[theirs] = np.minimum(low[theirs], other.low), np.maximum(high[theirs], other.high)
        rows, complete = added(self.rows, other.rows), added(self.complete, other.complete)
        sums, products = added(self.sums, other.sums), added(self.products, other.products)
        return type(self)(entities, rows, complete, sums, products, low, high).sampled()

    def sampled(self) -> Self:
        """The entities with the smallest hashes, as many as may be kept."""
        if self.rows.max(initial=0) > MOST_ROWS:
            raise SourceError(f"an entity must have at most {MOST_ROWS:,} rows, and one has more; drop the role entity")
        most = _CELLS // (self.sums.shape[1] + self.products.shape[1] + 2)
        if len(self.ids) <= most:
            return self
        return type(self)(*(getattr(self, name)[:most] for name in self.__dataclass_fields__))

    @property
    def most_rows(self) -> float:
        """The largest number of rows of an entity, rounded up."""
        return rounded_up(int(self.rows.max(initial=1)))

    @property
    def repeated(self) -> npt.NDArray[np.bool_]:
        """Which entities have several complete rows."""
        several: npt.NDArray[np.bool_] = self.complete >= 2
        return several

    def constant(self) -> tuple[bool, ...]:
        """Which columns have one value in each entity."""
        return tuple(np.all(self.low >= self.high, axis=0).tolist())

    def components(self) -> tuple[Floats, Floats]:
        """The covariances between entities and within them, of the integers.

        The mean product of two rows of an entity estimates the first without bias, and the products of deviations from
        its mean the second; in the first an entity counts as one, however many rows it has.
        """
        several = self.repeated
        count, width = self.complete[several].astype(np.float64), self.sums.shape[1]
        centre = self.sums.sum(axis=0) / max(int(self.complete.sum()), 1)
        sums = self.sums[several] - count[:, None] * centre
        lower = np.tril_indices(width)
        both = self.sums[several][:, lower[0]] * centre[lower[1]] + self.sums[several][:, lower[1]] * centre[lower[0]]
        products = self.products[several] - both + count[:, None] * (centre[lower[0]] * centre[lower[1]])
        outer = sums[:, lower[0]] * sums[:, lower[1]]
        between = ((outer - products) / (count * (count - 1))[:, None]).mean(axis=0)
        within = (products - outer / count[:, None]).sum(axis=0) / (count - 1).sum()
        return _whole(between, width), _whole(within, width)


def most_rows(batches: Iterable[pa.RecordBatch], column: str) -> int:
    """The largest number of rows of an entity, of a sample where there are very many."""
    found: EntityRows | None = None
    for batch in batches:
        nothing = np.zeros((batch.num_rows, 0))
        here = EntityRows.of(entity_hashes(batch, column), nothing.astype(np.int64), nothing)
        found = here if found is None else found.merge(here)
    return 1 if found is None else int(found.rows.max(initial=1))


def rounded_up(rows: int) -> float:
    """A power of two that is at least a number of rows: it is published, and one person's."""
    return float(1 << (rows - 1).bit_length())


def entity_hashes(batch: pa.RecordBatch, column: str) -> Words:
    """Hashes of the entities that the rows of a batch belong to, by which some of them are chosen."""
    if batch.column(column).null_count:
        raise SourceError(f"every record must have an entity, and column {column!r} has nulls; fill or drop those rows")
    return hashed(batch, [column], Key.from_bytes(bytes(32)))


def _totals(values: Counts, starts: Rows) -> Counts:
    """The sums over the rows of each entity."""
    totals: Counts = np.add.reduceat(values, starts, axis=0) if len(values) else values
    return totals


def _whole(lower: Floats, width: int) -> Floats:
    """The symmetric matrix with this lower triangle."""
    out = np.zeros((width, width))
    out[np.tril_indices(width)] = lower
    return out + np.tril(out, -1).T
