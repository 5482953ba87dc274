"""Some rows of a table of any size, in one pass and little memory, chosen without regard to any order they have."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from sfumato.kernels import Rows, Words


def sampled(batches: Iterable[tuple[Words, pa.RecordBatch]], rows: int) -> tuple[Words, pa.Table]:
    """At most so many rows, about half as many if there are more: the same ones for tables of as many rows.

    Args:
        batches: with the place of each row in the table.

    """
    kept: list[tuple[Words, Words, pa.RecordBatch]] = []
    seen, share, total = 0, 1, 0
    schema: pa.Schema | None = None
    for places, batch in batches:
        schema = batch.schema
        lots = _lots(np.arange(seen, seen + batch.num_rows, dtype=np.uint64))
        seen += batch.num_rows
        kept.append(_thinned(lots, places, batch, share))
        total += len(kept[-1][0])
        while total > rows:
            share *= 2
            kept = [_thinned(*part, share) for part in kept]
            total = sum(len(part[0]) for part in kept)
    if schema is None:
        return np.empty(0, np.uint64), pa.table({})
    return np.concatenate([part[1] for part in kept]), pa.Table.from_batches([part[2] for part in kept], schema)


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


def _thinned(lots: Words, places: Words, batch: pa.RecordBatch, share: int) -> tuple[Words, Words, pa.RecordBatch]:
    chosen = np.flatnonzero(lots % np.uint64(share) == 0)
    if len(chosen) == len(lots):
        return lots, places, batch
    return lots[chosen], places[chosen], batch.take(pa.array(chosen))
