"""Record linkage by inner products: which released row is which known record (giannella2010, section IV-A).

A rotation without translation preserves lengths and inner products. The paper scans all rows at every node of its
search, and all `2^a` subsets of the known records. Here rows of the right length are found by bisection, candidates
that are incompatible with every candidate of another record are removed before the search (arc consistency), and the
links that all assignments share are found with one search per record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.kernels import Floats, Mask, Rows

_LARGEST_MATRIX = 3000
"""The number of candidates up to which the compatibility of all pairs is computed at once."""

_MAX_NODES = 20_000
"""Nodes after which a search is abandoned; links that it should have decided are not claimed."""


@dataclass(frozen=True)
class ReleasedRows:
    """Rotated rows of a copy, indexed by their length."""

    rows: Floats
    tolerance: float
    """The largest distance of a row from the exact image of its record: half a lattice step in every direction."""

    @cached_property
    def _squares(self) -> Floats:
        squares: Floats = np.einsum("ij,ij->i", self.rows, self.rows)
        return squares

    def candidates(self, known: Floats) -> list[Rows]:
        """For each known record, the indices of the rows of its length."""
        squares = np.einsum("ij,ij->i", known, known)
        tolerance = _square_tolerance(np.sqrt(squares), self.tolerance)
        low, high = squares - tolerance, squares + tolerance
        # most rows have the length of no record: only the others are sorted
        opened = np.searchsorted(np.sort(low), self._squares, side="right")
        some = np.flatnonzero(opened > np.searchsorted(np.sort(high), self._squares, side="left"))
        order = some[np.argsort(self._squares[some])]
        first = np.searchsorted(self._squares[order], low, side="left")
        last = np.searchsorted(self._squares[order], high, side="right")
        return [order[a:b] for a, b in zip(first, np.maximum(last, first), strict=True)]

    def distinct(self, rows: Rows) -> Rows:
        """The first of each set of equal rows: which of them belongs to a record makes no difference."""
        if len(rows) < 2:
            return rows
        _, first = np.unique(np.round(self.rows[rows] / max(4 * self.tolerance, 1e-300)), axis=0, return_index=True)
        return rows[np.sort(first)]


@dataclass(frozen=True)
class AssignmentSearch:
    """A search for assignments of known records to rows; a node is a pair of a record and a candidate row."""

    count: int
    """The number of known records."""
    records: Rows
    """The record of each node."""
    rows: Rows
    """The row of each node."""
    compatible: Callable[[int], Mask]
    """The nodes that can be in one assignment with a node."""
    active: Mask
    """The nodes that are still possible."""

    @classmethod
    def of(
        cls, known: Floats, released: ReleasedRows, candidates: list[Rows], *, prune: bool = True
    ) -> AssignmentSearch:
        """The search over these candidates; pruning removes nodes by arc consistency beforehand."""
        records = np.repeat(np.arange(len(known)), [len(rows) for rows in candidates])
        rows = np.concatenate([*candidates, np.empty(0, np.int64)])
        images, products = released.rows[rows], known @ known.T
        length = np.sqrt(np.diag(products))
        tolerance = released.tolerance * (length[:, None] + length[None, :]) + released.tolerance**2
        tolerance += 1e-12 * np.outer(length, length)

        def compatible(node: int) -> Mask:
            record = records[node]
            near: Mask = np.abs(images @ images[node] - products[record, records]) <= tolerance[record, records]
            near[records == record] = False
            near[node] = True
            return near

        active = np.ones(len(records), np.bool_)
        if not prune or len(records) > _LARGEST_MATRIX:
            return cls(len(known), records, rows, compatible, active)
        pairs = np.ix_(records, records)
        matrix = np.abs(images @ images.T - products[pairs]) <= tolerance[pairs]
        matrix &= records[:, None] != records[None, :]
        np.fill_diagonal(matrix, True)
        return cls(len(known), records, rows, lambda node: matrix[node], _arc_consistent(matrix, records, len(known)))

    def solve(self, active: Mask) -> Rows | None:
        """One assignment of all records, as a node for each: depth first, the record with fewest candidates next."""
        budget = [_MAX_NODES]
        nodes = np.full(self.count, -1)
        return nodes if self._descend(active, nodes, budget) else None

    def _descend(self, active: Mask, nodes: Rows, budget: list[int]) -> bool:
        remaining = np.bincount(self.records[active], minlength=self.count)
        if (remaining == 0).any():
            return False
        while True:  # records with one candidate need no branching
            unassigned = np.where(nodes < 0, remaining, np.iinfo(np.int64).max)
            record = int(unassigned.argmin())
            if nodes[record] >= 0:
                return True
            if remaining[record] > 1:
                break
            nodes[record] = int(np.flatnonzero(active & (self.records == record))[0])
            active = active & self.compatible(nodes[record])
            remaining = np.bincount(self.records[active], minlength=self.count)
            if (remaining == 0).any():
                return False
        for node in np.flatnonzero(active & (self.records == record)):
            budget[0] -= 1
            if budget[0] < 0:
                raise TimeoutError
            extended = nodes.copy()
            extended[record] = node
            if self._descend(active & self.compatible(int(node)), extended, budget):
                nodes[:] = extended
                return True
        return False

    def backbone(self) -> Rows | None:
        """The nodes that all assignments of all records share; the true assignment is among them, so they are correct.

        The backbone contains the paper's maximal uniquely valid assignment, and may be larger. It is None if no
        assignment fits: then some of the known records are not in the copy.
        """
        try:
            first = self.solve(self.active)
        except TimeoutError:
            return np.empty(0, np.int64)
        if first is None:
            return None
        certain = np.ones(self.count, np.bool_)
        for record in range(self.count):
            if not certain[record] or (self.active & (self.records == record)).sum() == 1:
                continue
            without = self.active.copy()
            without[first[record]] = False
            try:
                second = self.solve(without)
            except TimeoutError:  # undecided
                certain[record] = False
                continue
            if second is not None:
                certain &= first == second
        return first[certain]

    def least_compatible(self) -> int:
        """The record whose best candidate is compatible with candidates of the fewest other records."""
        best = np.zeros(self.count, np.int64)
        for node, record in enumerate(self.records):
            others = len(np.unique(self.records[self.compatible(node)]))
            best[record] = max(best[record], others)
        return int(best.argmin())


def _arc_consistent(matrix: Mask, records: Rows, count: int) -> Mask:
    """The nodes that are compatible with a node of every other record, among nodes that are so too."""
    member = (records[:, None] == np.arange(count)).astype(np.float32)
    pairs, active = matrix.astype(np.float32), np.ones(len(records), np.bool_)
    while True:
        kept: Mask = active & (pairs @ (member * active[:, None]) > 0).all(axis=1)
        if kept.sum() == active.sum():
            return kept
        active = kept


def _square_tolerance(length: Floats, tolerance: float) -> Floats:
    """The largest error of a squared length."""
    error: Floats = 2 * length * tolerance + tolerance**2 + 1e-12 * length**2
    return error


def link(known: Floats, released: ReleasedRows) -> tuple[Rows, Rows]:
    """The certain links between known records and released rows, as indices of the records and of the rows.

    Known records are assumed to be in the copy. Records whose length no row has are not, and are left out; if no
    assignment of all the others fits, the least compatible ones are left out as well.
    """
    values, first = np.unique(known, axis=0, return_index=True)
    candidates = [released.distinct(rows) for rows in released.candidates(values)]
    present = np.array([len(rows) > 0 for rows in candidates], np.bool_)
    if not present.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    kept = np.flatnonzero(present)
    while len(kept):
        search = AssignmentSearch.of(values[kept], released, [candidates[i] for i in kept])
        nodes = search.backbone()
        if nodes is not None:
            return first[kept[search.records[nodes]]], search.rows[nodes]
        if len(search.records) > _LARGEST_MATRIX:
            break
        kept = np.delete(kept, search.least_compatible())
    return np.empty(0, np.int64), np.empty(0, np.int64)


def uniquely_valid(known: Floats, released: ReleasedRows) -> Rows:
    """The paper's maximal uniquely valid set of known records (Theorem 4.1): those linked without help of others."""
    kept = np.arange(len(known))
    while len(kept):
        linked, _ = link(known[kept], released)
        if len(linked) == len(kept):
            break
        kept = np.sort(kept[linked])
    return kept
