"""Some rows of a table of any size, in one pass and little memory, chosen without regard to any order they have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.kernels import Rows, Words


@dataclass(frozen=True)
class Sample:
    """One row in `share`, a power of two, chosen by their places alone; samples of parts merge to that of the whole."""

    kept: tuple[tuple[Words, pa.RecordBatch], ...] = ()
    """Places and rows."""
    share: int = 1

    @classmethod
    def of(cls, batches: Iterable[tuple[Words, pa.RecordBatch]], rows: int) -> Sample:
        """At most so many of all rows."""
        found = cls()
        for places, batch in batches:
            found = found.merged(cls(((places, batch),)), rows)
        return found

    def merged(self, other: Sample, rows: int) -> Sample:
        """At most so many of both, with the smallest share that does."""
        share = max(self.share, other.share)
        both = Sample((*self.thinned(share).kept, *other.thinned(share).kept), share)
        while sum(len(places) for places, _ in both.kept) > rows:
            both = both.thinned(2 * both.share)
        return both

    def thinned(self, share: int) -> Sample:
        """Fewer of its rows."""
        if share == self.share:
            return self
        return Sample(tuple(_thinned(places, batch, share) for places, batch in self.kept), share)

    def rows(self) -> tuple[Words, pa.Table]:
        """The places, and the rows."""
        if not self.kept:
            return np.empty(0, np.uint64), pa.table({})
        batches = [batch for _, batch in self.kept]
        return np.concatenate([places for places, _ in self.kept]), pa.Table.from_batches(batches, batches[0].schema)


def sampled(batches: Iterable[tuple[Words, pa.RecordBatch]], rows: int) -> tuple[Words, pa.Table]:
    """At most so many rows, about half as many if there are more: the same ones for tables of as many rows.

    Args:
        batches: with the place of each row in the table.

    """
    return Sample.of(batches, rows).rows()


def one_in(share: int, rows: int) -> Rows:
    """The places of about one row in so many, at least one of any."""
    chosen = np.flatnonzero(_lots(np.arange(rows, dtype=np.uint64) + np.uint64(1 << 40)) % np.uint64(share) == 0)
    return chosen if len(chosen) else np.arange(min(rows, 1))


def order(rows: int, turn: int = 0) -> Rows:
    """The places of so many rows in an order that has nothing to do with them, another one at each turn."""
    return np.argsort(_lots(np.arange(rows, dtype=np.uint64) + np.uint64((turn + 1) << 44)), kind="stable")


def _lots(numbers: Words) -> Words:
    """A number for each row that has nothing to do with its place (the finaliser of SplitMix64)."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    drawn: Words = mixed ^ (mixed >> np.uint64(31))
    return drawn


def _thinned(places: Words, batch: pa.RecordBatch, share: int) -> tuple[Words, pa.RecordBatch]:
    chosen = np.flatnonzero(_lots(places) % np.uint64(share) == 0)
    if len(chosen) == len(places):
        return places, batch
    return places[chosen], batch.take(pa.array(chosen))
