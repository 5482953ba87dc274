"""Which released row is which known record, when only distances survive: a secret translation hides the lengths.

Once one known record is found, distances from it are lengths, and `_linking` does the rest. To find one, two rows are
sought whose distance is that of two known records: all pairs of rows where the table is small, else triangles within
random blocks, in one of which three known records soon meet, as birthdays do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.attacks.linkage.inner_products import Rotated, Search, link
from sfumato.kernels import Floats, Mask, Rows

_ALL = 4e10
"""Multiplications up to which all pairs of rows are compared."""

_TILE = 2048
"""Rows that are compared with others at a time."""

_BINS = 1 << 22
"""Into which squared distances are sorted, to leave out most of those that nobody looks for."""

_BLOCKS = 40
"""Blocks that are tried: three known records are in more than half of them."""

_FEW = 50
"""Seeds so few that they are better tried than thinned out."""

_SEEDS = 20_000
"""Seeds after which nothing is claimed."""

_EDGES = 200_000
"""Pairs of rows at a wanted distance after which a block is given up."""

_SURE = -3.0
"""The logarithm of how many assignments may fit by chance where not all of them are looked at."""

_NOTHING = np.empty(0, np.int64), np.empty(0, np.int64)


def link_by_distance(known: Floats, rows: Floats, tolerance: float, seed: int = 0) -> tuple[Rows, Rows]:
    """Which known records are surely which released rows.

    Where all pairs of rows are compared, what is claimed holds in every assignment; with blocks, in every one that
    starts from the seed that was found.
    """
    values, first = np.unique(known, axis=0, return_index=True)
    if len(values) < 3:  # two can always change places
        return _NOTHING
    rows, values = rows - rows.mean(axis=0), values - values.mean(axis=0)
    exact = len(rows) ** 2 * rows.shape[1] <= _ALL
    if not exact and _by_chance(values, rows, tolerance) > _SURE:
        return _NOTHING
    seeds = _all_seeds(values, rows, tolerance) if exact else _block_seeds(values, rows, tolerance, seed)
    common: dict[int, int] | None = None
    for tried, (record, row) in enumerate(seeds):
        if tried == _SEEDS:
            return _NOTHING
        found = _extend(values, rows, tolerance, record, row)
        if not found:
            continue
        common = found if common is None else _agreed(common, found, rows, tolerance)
        if not exact or not common:
            break
    pairs = sorted((common or {}).items())
    return first[[record for record, _ in pairs]], np.array([row for _, row in pairs], np.int64)


def _by_chance(values: Floats, rows: Floats, tolerance: float) -> float:
    """The logarithm, to base 10, of how many assignments of rows would fit by chance, at most."""
    counts, pairs = _counts(values, rows, _room(_squares(values, values), tolerance))
    upper = np.triu_indices(len(values), 1)
    chances = np.sort(np.log10((counts[upper] + 1) / pairs))[::-1]
    free = min(len(chances), len(values) * rows.shape[1])  # beyond so many, distances follow from others
    return float(len(values) * np.log10(len(rows)) + chances[:free].sum())


def _extend(values: Floats, rows: Floats, tolerance: float, record: int, row: int) -> dict[int, int]:
    """What is sure of all records once one of them is placed; nothing if the others cannot follow."""
    others = np.delete(np.arange(len(values)), record)
    moved = Rotated(rows - rows[row], 2 * tolerance)
    apart = values[others] - values[record]
    candidates = moved.candidates(apart)
    if any(len(found) == 0 for found in candidates):
        return {}
    search = Search.of(apart, moved, candidates, prune=False)
    try:
        if search.solve(search.alive) is None:
            return {}
    except TimeoutError:
        pass  # then it must count as possible, with nothing sure
    linked, places = link(apart, moved)
    return {record: row, **dict(zip(others[linked].tolist(), places.tolist(), strict=True))}


def _agreed(one: dict[int, int], other: dict[int, int], rows: Floats, tolerance: float) -> dict[int, int]:
    """The links that two assignments share; equal rows are one."""
    near = 4 * tolerance
    return {i: j for i, j in one.items() if i in other and np.abs(rows[j] - rows[other[i]]).max() <= near}


def _all_seeds(values: Floats, rows: Floats, tolerance: float) -> Iterator[tuple[int, int]]:
    """Every row that has others at all the distances of one known record, the one with the rarest distances."""
    counts, _ = _counts(values, rows)
    record = int(np.log1p(counts).sum(axis=1).argmin())
    lengths = np.einsum("ij,ij->i", rows, rows)
    square = _squares(values[[record]], values)[0]
    room = _room(square, tolerance) + 1e-12 * lengths.max()
    left = np.arange(len(rows))
    for other in np.argsort(counts[record]):
        if other == record:
            continue
        before, left = len(left), left[_have(rows, lengths, left, square[other], room[other])]
        if len(left) < _FEW or len(left) > 0.8 * before:  # looking on costs more than it saves
            break
    yield from ((record, int(row)) for row in left)


def _have(rows: Floats, lengths: Floats, some: Rows, square: float, room: float) -> Mask:
    """Which of some rows have another at a distance."""
    have = np.zeros(len(some), np.bool_)
    for start in range(0, len(some), _TILE):
        part = some[start : start + _TILE]
        apart = rows[part] @ (-2 * rows.T)
        apart += lengths[None, :]
        apart += (lengths[part] - square)[:, None]
        np.abs(apart, out=apart)
        have[start : start + _TILE] = apart.min(axis=1) <= room
    return have


def _counts(values: Floats, rows: Floats, room: Floats | float = 0.0) -> tuple[Rows, int]:
    """How many pairs of a sample of the rows are as far apart as each pair of known records, and of how many."""
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), 2000)).astype(np.int64)]
    seen = np.sort(_squares(some, some)[np.triu_indices(len(some), 1)])
    square, near = _squares(values, values), np.maximum(room, 1e-9 * seen[-1])
    return np.searchsorted(seen, square + near) - np.searchsorted(seen, square - near), len(seen)


def _block_seeds(values: Floats, rows: Floats, tolerance: float, seed: int) -> Iterator[tuple[int, int]]:
    """Rows that lie, with two others of a random block, as three known records do."""
    rng = np.random.default_rng(seed)
    wanted = _Wanted(values, tolerance)
    size = min(len(rows), max(3 * len(rows) // len(values), 200))
    for _ in range(_BLOCKS):
        block = rng.permutation(len(rows))[:size]
        beside: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for count, (one, other) in enumerate(wanted.edges(rows[block])):
            if count == _EDGES:
                return
            beside.setdefault(one, set()).add(other)
            beside.setdefault(other, set()).add(one)
        for near in beside.values():
            for place, record in near:
                if near & beside[place, record]:
                    yield record, int(block[place])


class _Wanted:
    """The distances between known records, to be looked for among very many others."""

    def __init__(self, values: Floats, tolerance: float) -> None:
        self._pairs = np.triu_indices(len(values), 1)
        squares = _squares(values, values)[self._pairs]
        self._order = np.argsort(squares)
        self._targets, self._rooms = squares[self._order], _room(squares[self._order], tolerance)
        self._width = max(float(squares.max()) / _BINS, float(self._rooms.max()))
        self._marked = np.zeros(_BINS + 3, np.bool_)
        for shift in (-1, 0, 1):
            self._marked[np.clip((squares / self._width).astype(np.int64) + shift, 0, _BINS + 1)] = True

    def edges(self, block: Floats) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Two rows and the known records they may be, for every pair of rows at a wanted distance."""
        squares = np.einsum("ij,ij->i", block, block)
        for top in range(0, len(block), _TILE):
            for left in range(top, len(block), _TILE):
                one, other = slice(top, top + _TILE), slice(left, left + _TILE)
                apart = squares[one, None] + squares[None, other] - 2 * block[one] @ block[other].T
                bins = np.minimum(np.maximum(apart, 0) * (1 / self._width), _BINS + 2).astype(np.int32)
                for a, b in np.argwhere(self._marked[bins]) + np.array([top, left]):
                    if a < b:
                        yield from self._labelled(int(a), int(b), float(((block[a] - block[b]) ** 2).sum()))

    def _labelled(self, a: int, b: int, square: float) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        first = int(np.searchsorted(self._targets, square - self._rooms[-1]))
        while first < len(self._targets) and self._targets[first] <= square + self._rooms[-1]:
            if abs(self._targets[first] - square) <= self._rooms[first]:
                i, j = (int(ends[self._order[first]]) for ends in self._pairs)
                yield (a, i), (b, j)
                yield (a, j), (b, i)
            first += 1


def _squares(one: Floats, other: Floats) -> Floats:
    """Squared distances."""
    lengths = [np.einsum("ij,ij->i", part, part) for part in (one, other)]
    apart: Floats = np.maximum(lengths[0][:, None] + lengths[1][None, :] - 2 * one @ other.T, 0)
    return apart


def _room(squares: Floats, tolerance: float) -> Floats:
    """How far the squared distance of two rows may be off: both may be."""
    room: Floats = 4 * np.sqrt(squares) * tolerance + 4 * tolerance**2 + 1e-12 * squares
    return room
