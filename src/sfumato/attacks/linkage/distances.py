"""Record linkage by distances: which released row is which known record when a secret translation hides the lengths.

Once one known record is linked, distances from its row are lengths, and `inner_products` does the rest. To link one,
two rows are sought whose distance is that of two known records: among all pairs of rows where the table is small, else
as triangles within random blocks, in one of which three known records soon meet (the birthday problem).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from sfumato.attacks.linkage.inner_products import AssignmentSearch, ReleasedRows, link
from sfumato.kernels import Floats, Mask, Rows
from sfumato.kernels.evenly_spaced import evenly_spaced

_EXHAUSTIVE = 4e10
"""Multiplications up to which all pairs of rows are compared."""

_TILE = 2048
"""Rows that are compared with others at a time."""

_BINS = 1 << 22
"""Bins of squared distances, by which most pairs of rows are discarded without an exact comparison."""

_BLOCKS = 40
"""Random blocks that are tried: three known records are in more than half of them."""

_FEW_SEEDS = 50
"""The number of seeds below which trying them is cheaper than filtering them."""

_MAX_SEEDS = 20_000
"""Seeds after which the search is abandoned and nothing is claimed."""

_MAX_EDGES = 200_000
"""Pairs of rows at the distance of two known records after which the search in blocks is abandoned."""

_MAX_ACCIDENTAL = -3.0
"""The largest log10 of the expected number of accidental assignments, where not all of them are examined."""

_NO_LINKS = np.empty(0, np.int64), np.empty(0, np.int64)

Label = tuple[int, int]
"""A row and the known record that it may be."""

Seed = tuple[int, int]
"""A known record and a row that it is assumed to be."""


def link_by_distance(known: Floats, rows: Floats, tolerance: float, seed: int = 0) -> tuple[Rows, Rows]:
    """The certain links between known records and released rows, as indices of the records and of the rows.

    Where all pairs of rows are compared, a link holds in every valid assignment; with blocks, in every one that
    contains the seed that was found.
    """
    values, first = np.unique(known, axis=0, return_index=True)
    if len(values) < 3:  # two records can always be exchanged
        return _NO_LINKS
    rows, values = rows - rows.mean(axis=0), values - values.mean(axis=0)
    exhaustive = len(rows) ** 2 * rows.shape[1] <= _EXHAUSTIVE
    if not exhaustive and _accidental_assignments(values, rows, tolerance) > _MAX_ACCIDENTAL:
        return _NO_LINKS
    if exhaustive:
        links = _common_links(values, rows, tolerance, _all_seeds(values, rows, tolerance))
    else:
        links = _first_links(values, rows, tolerance, _block_seeds(values, rows, tolerance, seed))
    pairs = sorted(links.items())
    return first[[record for record, _ in pairs]], np.array([row for _, row in pairs], np.int64)


def _common_links(values: Floats, rows: Floats, tolerance: float, seeds: Iterator[Seed]) -> dict[int, int]:
    """The links that the assignments from all seeds share; none if there are too many seeds."""
    common: dict[int, int] | None = None
    for tried, seed in enumerate(seeds):
        if tried == _MAX_SEEDS:
            return {}
        links = _extend(values, rows, tolerance, *seed)
        if links:
            common = links if common is None else _shared(common, links, rows, tolerance)
        if common == {}:
            break
    return common or {}


def _first_links(values: Floats, rows: Floats, tolerance: float, seeds: Iterator[Seed]) -> dict[int, int]:
    """The links of the first seed that can be extended to an assignment."""
    extended = (_extend(values, rows, tolerance, *seed) for seed in islice(seeds, _MAX_SEEDS))
    return next(filter(None, extended), {})


def _accidental_assignments(values: Floats, rows: Floats, tolerance: float) -> float:
    """An upper bound of the log10 of the expected number of assignments of rows that fit by accident."""
    counts, pairs = _distance_counts(values, rows, _square_tolerance(_squared_distances(values, values), tolerance))
    upper = np.triu_indices(len(values), 1)
    probabilities = np.sort(np.log10((counts[upper] + 1) / pairs))[::-1]
    free = min(len(probabilities), len(values) * rows.shape[1])  # further distances are determined by these
    return float(len(values) * np.log10(len(rows)) + probabilities[:free].sum())


def _extend(values: Floats, rows: Floats, tolerance: float, record: int, row: int) -> dict[int, int]:
    """The certain links of all records once one of them is linked; none if the others do not fit."""
    others = np.delete(np.arange(len(values)), record)
    released = ReleasedRows(rows - rows[row], 2 * tolerance)
    differences = values[others] - values[record]
    candidates = released.candidates(differences)
    if any(len(found) == 0 for found in candidates):
        return {}
    search = AssignmentSearch.of(differences, released, candidates, prune=False)
    try:
        if search.solve(search.active) is None:
            return {}
    except TimeoutError:
        pass  # it must count as possible, without any certain link
    linked, linked_rows = link(differences, released)
    return {record: row, **dict(zip(others[linked].tolist(), linked_rows.tolist(), strict=True))}


def _shared(one: dict[int, int], other: dict[int, int], rows: Floats, tolerance: float) -> dict[int, int]:
    """The links that two assignments share; equal rows count as one."""
    near = 4 * tolerance
    return {i: j for i, j in one.items() if i in other and np.abs(rows[j] - rows[other[i]]).max() <= near}


def _all_seeds(values: Floats, rows: Floats, tolerance: float) -> Iterator[Seed]:
    """The known record with the rarest distances, with every row that has other rows at all these distances."""
    counts, _ = _distance_counts(values, rows)
    record = int(np.log1p(counts).sum(axis=1).argmin())
    squares = np.einsum("ij,ij->i", rows, rows)
    targets = _squared_distances(values[[record]], values)[0]
    tolerances = _square_tolerance(targets, tolerance) + 1e-12 * squares.max()
    left = np.arange(len(rows))
    for other in np.argsort(counts[record]):
        if other == record:
            continue
        before, left = len(left), left[_have_distance(rows, squares, left, targets[other], tolerances[other])]
        if len(left) < _FEW_SEEDS or len(left) > 0.8 * before:  # further filtering costs more than it saves
            break
    yield from ((record, int(row)) for row in left)


def _have_distance(rows: Floats, squares: Floats, some: Rows, target: float, tolerance: float) -> Mask:
    """Which of some rows have another row at a squared distance of `target`."""
    have = np.zeros(len(some), np.bool_)
    for start in range(0, len(some), _TILE):
        part = some[start : start + _TILE]
        errors = rows[part] @ (-2 * rows.T)
        errors += squares[None, :]
        errors += (squares[part] - target)[:, None]
        np.abs(errors, out=errors)
        have[start : start + _TILE] = errors.min(axis=1) <= tolerance
    return have


def _distance_counts(values: Floats, rows: Floats, tolerance: Floats | float = 0.0) -> tuple[Rows, int]:
    """For each pair of known records, how many pairs of a sample of the rows have its distance; and of how many."""
    some = rows[evenly_spaced(len(rows), 2000)]
    observed = np.sort(_squared_distances(some, some)[np.triu_indices(len(some), 1)])
    squares, near = _squared_distances(values, values), np.maximum(tolerance, 1e-9 * observed[-1])
    return np.searchsorted(observed, squares + near) - np.searchsorted(observed, squares - near), len(observed)


def _block_seeds(values: Floats, rows: Floats, tolerance: float, seed: int) -> Iterator[Seed]:
    """Known records with rows of a random block that form, with two other rows, a triangle of known records."""
    rng = np.random.default_rng(seed)
    index = _DistanceIndex(values, tolerance)
    size = min(len(rows), max(3 * len(rows) // len(values), 200))
    for _ in range(_BLOCKS):
        block = rng.permutation(len(rows))[:size]
        neighbours: dict[Label, set[Label]] = {}
        for count, (one, other) in enumerate(index.edges(rows[block])):
            if count == _MAX_EDGES:
                return
            neighbours.setdefault(one, set()).add(other)
            neighbours.setdefault(other, set()).add(one)
        for near in neighbours.values():
            for row, record in near:
                if near & neighbours[row, record]:
                    yield record, int(block[row])


class _DistanceIndex:
    """The squared distances between known records, to be found among very many others."""

    def __init__(self, values: Floats, tolerance: float) -> None:
        self._pairs = np.triu_indices(len(values), 1)
        squares = _squared_distances(values, values)[self._pairs]
        self._order = np.argsort(squares)
        self._targets = squares[self._order]
        self._tolerances = _square_tolerance(squares[self._order], tolerance)
        self._width = max(float(squares.max()) / _BINS, float(self._tolerances.max()))
        self._is_target = np.zeros(_BINS + 3, np.bool_)
        for shift in (-1, 0, 1):
            self._is_target[np.clip((squares / self._width).astype(np.int64) + shift, 0, _BINS + 1)] = True

    def edges(self, block: Floats) -> Iterator[tuple[Label, Label]]:
        """Two rows and the known records that they may be, for every pair of rows at a distance of the index."""
        squares = np.einsum("ij,ij->i", block, block)
        for top in range(0, len(block), _TILE):
            for left in range(top, len(block), _TILE):
                one, other = slice(top, top + _TILE), slice(left, left + _TILE)
                distances = squares[one, None] + squares[None, other] - 2 * block[one] @ block[other].T
                bins = np.minimum(np.maximum(distances, 0) * (1 / self._width), _BINS + 2).astype(np.int32)
                for a, b in np.argwhere(self._is_target[bins]) + np.array([top, left]):
                    if a < b:
                        yield from self._labelled(int(a), int(b), float(((block[a] - block[b]) ** 2).sum()))

    def _labelled(self, a: int, b: int, square: float) -> Iterator[tuple[Label, Label]]:
        """The pairs of known records that two rows at this squared distance may be, both ways round."""
        first = int(np.searchsorted(self._targets, square - self._tolerances[-1]))
        while first < len(self._targets) and self._targets[first] <= square + self._tolerances[-1]:
            if abs(self._targets[first] - square) <= self._tolerances[first]:
                i, j = (int(ends[self._order[first]]) for ends in self._pairs)
                yield (a, i), (b, j)
                yield (a, j), (b, i)
            first += 1


def _squared_distances(one: Floats, other: Floats) -> Floats:
    """The matrix of squared distances between two sets of points."""
    squares = [np.einsum("ij,ij->i", part, part) for part in (one, other)]
    distances: Floats = np.maximum(squares[0][:, None] + squares[1][None, :] - 2 * one @ other.T, 0)
    return distances


def _square_tolerance(squares: Floats, tolerance: float) -> Floats:
    """The largest error of the squared distance of two rows, each of which may be off by `tolerance`."""
    error: Floats = 4 * np.sqrt(squares) * tolerance + 4 * tolerance**2 + 1e-12 * squares
    return error
