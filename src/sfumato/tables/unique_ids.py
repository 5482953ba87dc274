"""Uniqueness of record ids: a table in which two records have the same id is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np

from sfumato.errors import SourceError
from sfumato.kernels import Words
from sfumato.tables.partitioned import Part
from sfumato.tables.partitioner import partition_by_id


def ensure_distinct(read: Callable[[], Iterable[Words]]) -> None:
    """Refuse ids of which two are equal; `read` yields them in batches, and may be called twice.

    Increasing ids are distinct, and seeing that takes no memory. Others are read again and partitioned.
    """
    if _are_increasing(read()):
        return
    for rows in partition_by_id(ids[:, None] for ids in read()):
        ids = rows[:, 0]
        repeated = np.flatnonzero(ids[1:] == ids[:-1])
        if repeated.size:
            raise SourceError(
                f"a record id must occur once, and {int(ids[repeated[0]].astype(np.int64))} (an integer id, or the "
                "hash of another one) occurs again; remove the repeated record, or add a column to the id"
            )


def ensure_disjoint(parts: Sequence[Part], rows: Iterable[int]) -> None:
    """Refuse files whose row numbers overlap; each begins at a hash of the file's name.

    Args:
        parts: the files.
        rows: the number of rows of each file.

    """
    spans = sorted(zip((part.start for part in parts), rows, (part.name for part in parts), strict=True))
    around = [*spans, (spans[0][0] + 2**64, *spans[0][1:])]
    for (start, count, name), (following, _, other) in pairwise(around):
        if start + count > following:
            raise SourceError(
                f"the row numbers of files must not overlap, and those of {name!r} and {other!r} happen to; rename one "
                "of the files"
            )


def _are_increasing(batches: Iterable[Words]) -> bool:
    last = np.iinfo(np.int64).min
    for ids in batches:
        signed = ids.view(np.int64)
        if signed.size and not (signed[0] > last and (signed[1:] > signed[:-1]).all()):
            return False
        last = signed[-1] if signed.size else last
    return True
