"""Which released row is which known record, when lengths and inner products survive (giannella2010, section IV-A).

The paper scans all rows at every node of its search, and all `2^a` subsets of the known records. Here the rows of the
right length are found by bisection, candidates without a partner among those of another record fall out before any
search, and what all assignments agree on is found with one search a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.kernels import Floats, Mask, Rows

_MATRIX = 3000
"""Candidates up to which the compatibility of all pairs is worked out at once."""

_NODES = 20_000
"""Nodes after which a search is given up: what it was to decide is then not claimed."""


@dataclass(frozen=True)
class Rotated:
    """Released rows, ready to be searched by their lengths."""

    rows: Floats
    tolerance: float
    """How far a row may be from where the motion puts it: half a lattice step in every direction."""

    @cached_property
    def _squares(self) -> Floats:
        squares: Floats = np.einsum("ij,ij->i", self.rows, self.rows)
        return squares

    def candidates(self, known: Floats) -> list[Rows]:
        """For each known record, the rows of its length."""
        squares = np.einsum("ij,ij->i", known, known)
        room = _room(np.sqrt(squares), self.tolerance)
        low, high = squares - room, squares + room
        # most rows have the length of no record: only the others are sorted
        begun = np.searchsorted(np.sort(low), self._squares, side="right")
        some = np.flatnonzero(begun > np.searchsorted(np.sort(high), self._squares, side="left"))
        order = some[np.argsort(self._squares[some])]
        first = np.searchsorted(self._squares[order], low, side="left")
        last = np.searchsorted(self._squares[order], high, side="right")
        return [order[a:b] for a, b in zip(first, np.maximum(last, first), strict=True)]

    def distinct(self, rows: Rows) -> Rows:
        """Equal rows are one: which of them a record became makes no difference."""
        if len(rows) < 2:
            return rows
        _, first = np.unique(np.round(self.rows[rows] / max(4 * self.tolerance, 1e-300)), axis=0, return_index=True)
        return rows[np.sort(first)]


@dataclass(frozen=True)
class Search:
    """All ways to assign known records to rows: nodes are pairs of a record and a candidate."""

    count: int
    owner: Rows
    """The record of each node."""
    row: Rows
    """The candidate of each node."""
    fits: Callable[[int], Mask]
    """Which nodes can stand beside one."""
    alive: Mask

    @classmethod
    def of(cls, known: Floats, released: Rotated, candidates: list[Rows], *, prune: bool = True) -> Search:
        """Nodes without a partner for some other record can be left out beforehand (arc consistency)."""
        owner = np.repeat(np.arange(len(known)), [len(rows) for rows in candidates])
        row = np.concatenate([*candidates, np.empty(0, np.int64)])
        seen, products = released.rows[row], known @ known.T
        length = np.sqrt(np.diag(products))
        room = released.tolerance * (length[:, None] + length[None, :]) + released.tolerance**2
        room += 1e-12 * np.outer(length, length)

        def fits(node: int) -> Mask:
            record = owner[node]
            near: Mask = np.abs(seen @ seen[node] - products[record, owner]) <= room[record, owner]
            near[owner == record] = False
            near[node] = True
            return near

        alive = np.ones(len(owner), np.bool_)
        if not prune or len(owner) > _MATRIX:
            return cls(len(known), owner, row, fits, alive)
        every = np.abs(seen @ seen.T - products[np.ix_(owner, owner)]) <= room[np.ix_(owner, owner)]
        every &= owner[:, None] != owner[None, :]
        np.fill_diagonal(every, True)
        return cls(len(known), owner, row, lambda node: every[node], _supported(every, owner, len(known)))

    def solve(self, alive: Mask) -> Rows | None:
        """One assignment of all records, as a node for each: depth first, the record with fewest candidates next."""
        left = [_NODES]
        nodes = np.full(self.count, -1)
        return nodes if self._descend(alive, nodes, left) else None

    def _descend(self, alive: Mask, nodes: Rows, left: list[int]) -> bool:
        open_ = np.bincount(self.owner[alive], minlength=self.count)
        if (open_ == 0).any():
            return False
        while True:  # records with one candidate need no branching
            rest = np.where(nodes < 0, open_, np.iinfo(np.int64).max)
            record = int(rest.argmin())
            if nodes[record] >= 0:
                return True
            if open_[record] > 1:
                break
            nodes[record] = int(np.flatnonzero(alive & (self.owner == record))[0])
            alive = alive & self.fits(nodes[record])
            open_ = np.bincount(self.owner[alive], minlength=self.count)
            if (open_ == 0).any():
                return False
        for node in np.flatnonzero(alive & (self.owner == record)):
            left[0] -= 1
            if left[0] < 0:
                raise TimeoutError
            tried = nodes.copy()
            tried[record] = node
            if self._descend(alive & self.fits(int(node)), tried, left):
                nodes[:] = tried
                return True
        return False

    def backbone(self) -> Rows | None:
        """The nodes that all assignments of all records have in common; the right ones are among those, so it is right.

        It contains the paper's maximal uniquely valid assignment, and may be larger. None, if no assignment fits: then
        some records are not there.
        """
        try:
            first = self.solve(self.alive)
        except TimeoutError:
            return np.empty(0, np.int64)
        if first is None:
            return None
        sure = np.ones(self.count, np.bool_)
        for record in range(self.count):
            if not sure[record] or (self.alive & (self.owner == record)).sum() == 1:
                continue
            other = self.alive.copy()
            other[first[record]] = False
            try:
                second = self.solve(other)
            except TimeoutError:  # undecided
                sure[record] = False
                continue
            if second is not None:
                sure &= first == second
        return first[sure]

    def weakest(self) -> int:
        """The record whose best candidate fits those of the fewest others."""
        best = np.zeros(self.count, np.int64)
        for node, record in enumerate(self.owner):
            beside = len(np.unique(self.owner[self.fits(node)]))
            best[record] = max(best[record], beside)
        return int(best.argmin())


def _supported(every: Mask, owner: Rows, count: int) -> Mask:
    """The nodes that have a partner for every other record, among nodes that have one."""
    member = (owner[:, None] == np.arange(count)).astype(np.float32)
    pairs, alive = every.astype(np.float32), np.ones(len(owner), np.bool_)
    while True:
        kept: Mask = alive & (pairs @ (member * alive[:, None]) > 0).all(axis=1)
        if kept.sum() == alive.sum():
            return kept
        alive = kept


def _room(length: Floats, tolerance: float) -> Floats:
    """How far a squared length may be off."""
    room: Floats = 2 * length * tolerance + tolerance**2 + 1e-12 * length**2
    return room


def link(known: Floats, released: Rotated) -> tuple[Rows, Rows]:
    """Which known records are surely which released rows, as their places among each.

    Known records are taken to be in the copy. Those of which no row has the length are not, and are left out; and where
    no assignment of all the others fits, so are those that fit least.
    """
    values, first = np.unique(known, axis=0, return_index=True)
    candidates = [released.distinct(rows) for rows in released.candidates(values)]
    there = np.array([len(rows) > 0 for rows in candidates], np.bool_)
    if not there.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    places = np.flatnonzero(there)
    while len(places):
        search = Search.of(values[places], released, [candidates[i] for i in places])
        nodes = search.backbone()
        if nodes is not None:
            return first[places[search.owner[nodes]]], search.row[nodes]
        if len(search.owner) > _MATRIX:
            break
        places = np.delete(places, search.weakest())
    return np.empty(0, np.int64), np.empty(0, np.int64)


def uniquely_valid(known: Floats, released: Rotated) -> Rows:
    """The paper's maximal uniquely valid set (Theorem 4.1): what is left when nothing outside of it may help."""
    kept = np.arange(len(known))
    while len(kept):
        found, _ = link(known[kept], released)
        if len(found) == len(kept):
            break
        kept = np.sort(kept[found])
    return kept
