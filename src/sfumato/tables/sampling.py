"""Row sampling: some rows of a table of any size, in one pass and little memory, independent of their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.kernels import Rows, Words
from sfumato.kernels.hashes import hashes


@dataclass(frozen=True)
class Sample:
    """One row in `share`, a power of two, chosen by row number alone; samples of parts merge to one of the whole."""

    kept: tuple[tuple[Words, pa.RecordBatch], ...] = ()
    """Row numbers and rows."""
    share: int = 1

    @classmethod
    def of(cls, batches: Iterable[tuple[Words, pa.RecordBatch]], rows: int) -> Sample:
        """A sample of at most `rows` of all rows."""
        found = cls()
        for row_numbers, batch in batches:
            found = found.merged(cls(((row_numbers, batch),)), rows)
        return found

    def merged(self, other: Sample, rows: int) -> Sample:
        """A sample of at most `rows` from both, with the smallest thinning that suffices."""
        share = max(self.share, other.share)
        both = Sample((*self.thinned(share).kept, *other.thinned(share).kept), share)
        while sum(len(row_numbers) for row_numbers, _ in both.kept) > rows:
            both = both.thinned(2 * both.share)
        return both

    def thinned(self, share: int) -> Sample:
        """The sample reduced to one row in `share`."""
        if share == self.share:
            return self
        return Sample(tuple(_thinned(row_numbers, batch, share) for row_numbers, batch in self.kept), share)

    def rows(self) -> tuple[Words, pa.Table]:
        """The row numbers, and the rows."""
        if not self.kept:
            return np.empty(0, np.uint64), pa.table({})
        batches = [batch for _, batch in self.kept]
        return np.concatenate([row_numbers for row_numbers, _ in self.kept]), pa.Table.from_batches(
            batches, batches[0].schema
        )


def sampled(batches: Iterable[tuple[Words, pa.RecordBatch]], rows: int) -> tuple[Words, pa.Table]:
    """A sample of at most `rows` rows, and at least half as many if there are more.

    Args:
        batches: the rows with their numbers in the table.
        rows: the size of the sample.

    """
    return Sample.of(batches, rows).rows()


def one_in(share: int, rows: int) -> Rows:
    """The indices of about one row in `share`, at least one."""
    chosen = np.flatnonzero(hashes(np.arange(rows, dtype=np.uint64) + np.uint64(1 << 40)) % np.uint64(share) == 0)
    return chosen if len(chosen) else np.arange(min(rows, 1))


def pseudo_random_order(rows: int, seed: int = 0) -> Rows:
    """A fixed pseudo-random permutation of row indices, another one for each seed."""
    return np.argsort(hashes(np.arange(rows, dtype=np.uint64) + np.uint64((seed + 1) << 44)), kind="stable")


def _thinned(row_numbers: Words, batch: pa.RecordBatch, share: int) -> tuple[Words, pa.RecordBatch]:
    chosen = np.flatnonzero(hashes(row_numbers) % np.uint64(share) == 0)
    if len(chosen) == len(row_numbers):
        return row_numbers, batch
    return row_numbers[chosen], batch.take(pa.array(chosen))
