"""Records dealt into parts by their ids, in memory that does not grow with the table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise

import numpy as np

from sfumato.errors import SourceError
from sfumato.kernels import Words
from sfumato.tables.partitioned import Part

PARTS = 256
_SPOOL = 1 << 18  # bytes a part may hold in memory before it goes to disk
_MIX = np.uint64(0x9E3779B97F4A7C15)


def deal(batches: Iterable[Words]) -> Iterator[Words]:
    """The same rows in `PARTS` parts, each sorted by its first column, the id; equal ids are in the same part.

    A batch has one row a record and a fixed number of columns. Parts lie on disk where they are large.
    """
    width = 1
    with ExitStack() as stack:
        parts = [stack.enter_context(tempfile.SpooledTemporaryFile(max_size=_SPOOL)) for _ in range(PARTS)]
        for rows in batches:
            width = rows.shape[1]
            part = (rows[:, 0] * _MIX) >> np.uint64(56)
            order = np.argsort(part, kind="stable")
            bounds = np.searchsorted(part[order], np.arange(PARTS + 1, dtype=np.uint64))
            dealt = rows[order]
            for i, file in enumerate(parts):
                file.write(dealt[bounds[i] : bounds[i + 1]].tobytes())
        for file in parts:
            file.seek(0)
            held = np.frombuffer(file.read(), np.uint64).reshape(-1, width)
            yield held[np.argsort(held[:, 0], kind="stable")]


def ensure_distinct(read: Callable[[], Iterable[Words]]) -> None:
    """Refuse ids of which two are equal; `read` gives them, in batches, as often as it is called.

    Ids that rise are distinct, and seeing that takes no memory. Others are read again and dealt into parts.
    """
    if _rising(read()):
        return
    for part in deal(ids[:, None] for ids in read()):
        held = part[:, 0]
        twice = np.flatnonzero(held[1:] == held[:-1])
        if twice.size:
            raise SourceError(
                f"a record id must occur once, and {int(held[twice[0]].astype(np.int64))} (an integer id, or the "
                "hash of another one) occurs again; remove the repeated record, or add a column to the id"
            )


def ensure_apart(parts: Sequence[Part], rows: Iterable[int]) -> None:
    """Refuse files whose rows' places overlap: they begin at a hash of the file's name, and nothing is left to chance.

    Args:
        rows: how many each file has.

    """
    found = zip((part.start for part in parts), rows, (part.name for part in parts), strict=True)
    spans = sorted(found)
    around = [*spans, (spans[0][0] + 2**64, *spans[0][1:])]
    for (start, count, name), (following, _, other) in pairwise(around):
        if start + count > following:
            raise SourceError(
                f"the places of rows must not overlap, and those of {name!r} and {other!r} do, by chance; rename one "
                "of the files"
            )


def _rising(batches: Iterable[Words]) -> bool:
    last = np.iinfo(np.int64).min
    for ids in batches:
        signed = ids.view(np.int64)
        if signed.size and not (signed[0] > last and (signed[1:] > signed[:-1]).all()):
            return False
        last = signed[-1] if signed.size else last
    return True
