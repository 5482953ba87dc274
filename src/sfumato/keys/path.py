"""A virtual Brownian tree: random access to a cell's Wiener process at the noise variance of any level.

The path `W(t)` is indexed by the noise variance `t`. Declared levels are the nodes of a balanced binary tree over `t`;
the first is drawn from `N(0, t)`, every other one from the conditional distribution of the Wiener process given the
nearest levels drawn before it: a Brownian bridge between two neighbours, or an independent increment beyond the last.
The gap between two declared levels is bisected, with one bridge per binary digit; below the lowest level it halves
towards 0, above the highest it doubles.

This is li2012's Algorithm 3 with its conditional (eqs. 17, 18) reduced to the two neighbours on which it depends,
since corner-wave noise (eq. 15) is a Wiener process in `σ²`. A node and its two children share one lane of bits
(`keys.stream`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.errors import LevelError
from sfumato.levels import Ladder, Level

OCTAVES = 40
"""The number of times the gap may halve below the ladder or double above it."""

_SAME = 1e-9
"""The relative difference up to which two times are equal, so that a level read from a manifest finds its own node."""

Slot = tuple[str, int]
"""A lane and the number (0, 1, 2) of a normal in its block."""


@dataclass(frozen=True, eq=False)
class Node:
    """One draw of the path: `W(time) = (1-weight)·W(left) + weight·W(right) + size·N`.

    `N` is the standard normal of the slot. Without a left node the path starts from `W(0) = 0`; without a right node
    the increment is independent.
    """

    slot: Slot
    time: float
    left: Node | None
    right: Node | None
    weight: float
    size: float
    """The conditional standard deviation, given the two neighbours."""


@dataclass(frozen=True)
class Point:
    """A point on the path: the level that is released there, and its node."""

    level: Level
    node: Node


class PathTree:
    """The tree of Brownian bridges over the levels of a ladder."""

    def __init__(self, ladder: Ladder, digits: int = 8) -> None:
        self.declared = tuple(ladder)  # in order of decreasing fidelity, so of increasing time
        self._digits = digits
        self._nodes = self._declare(0, len(self.declared), None, None, "")
        self._times = [node.time for node in self._nodes]

    @property
    def declaration(self) -> list[float]:
        """All parameters of the tree: two trees with equal declarations are equal."""
        return [float(self._digits), *(level.fidelity for level in self.declared)]

    def locate(self, level: Level) -> Point:
        """The first point of the grid at or beyond `level`, so that there is never less noise than requested."""
        above = bisect_left(self._times, level.noise * (1 - _SAME))
        if above < len(self._times) and _same(level.noise, self._times[above]):
            return Point(self.declared[above], self._nodes[above])
        name, left, right = self._gap(level.noise, above)
        steps = 1 << self._digits
        exact = (level.noise - _time(left)) / (right.time - _time(left)) * steps
        nearest = round(exact)
        index = nearest if _same(level.noise, _part(left, right, nearest, steps)) else math.ceil(exact)
        node = self._halve(name, left, right, index)
        return Point(Level.from_noise(node.time), node)

    def distance_to_nearest(self, time: float) -> float:
        """The distance to the nearest other declared level, or to the origin."""
        index = bisect_left(self._times, time * (1 - _SAME))
        near = [*self._times[max(index - 1, 0) : index + 2], 0.0]
        return min(abs(other - time) for other in near if not _same(other, time))

    def _declare(self, start: int, stop: int, left: Node | None, right: Node | None, path: str) -> list[Node]:
        """The nodes of the levels `start:stop`; the middle one is drawn first, then those on either side of it."""
        if start == stop:
            return []
        middle = (start + stop) // 2
        node = _between(left, right, self.declared[middle].noise, _slot("ladder", path))
        before = self._declare(start, middle, left, node, path + "0")
        return [*before, node, *self._declare(middle + 1, stop, node, right, path + "1")]

    def _gap(self, time: float, above: int) -> tuple[str, Node, Node]:
        """The name and the two end nodes of the gap that contains `time`, before the declared level `above`."""
        if 0 < above < len(self._nodes):
            return f"gap/{above - 1}", self._nodes[above - 1], self._nodes[above]
        near = self._nodes[0 if above == 0 else -1]
        for octave in range(OCTAVES):
            if above == 0:
                further = _between(None, near, near.time / 2, (f"halving/{octave // 3}", octave % 3))
                if time > further.time or _same(time, further.time):
                    return f"below/{octave}", further, near
            else:
                further = _between(near, None, near.time * 2, (f"doubling/{octave // 3}", octave % 3))
                if time < further.time or _same(time, further.time):
                    return f"above/{octave}", near, further
            near = further
        raise LevelError(
            f"the noise variance of a level must lie within {OCTAVES} octaves of the declared levels, got fidelity "
            f"{Level.from_noise(time).fidelity!r}; declare a level closer to it"
        )

    def _halve(self, name: str, left: Node, right: Node, index: int) -> Node:
        """The node at step `index` of `2^digits` steps from `left` to `right`, with one bridge per binary digit."""
        steps = 1 << self._digits
        low, high, ends, path = 0, steps, (left, right), ""
        while index not in (low, high):
            middle = (low + high) // 2
            node = _between(*ends, _part(left, right, middle, steps), _slot(name, path))
            if index <= middle:
                high, ends, path = middle, (ends[0], node), path + "0"
            else:
                low, ends, path = middle, (node, ends[1]), path + "1"
        return ends[0] if index == low else ends[1]


def ancestry(nodes: Iterable[Node]) -> list[Node]:
    """The nodes and all nodes they depend on, once each, in topological order."""
    found: dict[Slot, Node] = {}

    def visit(node: Node | None) -> None:
        if node is not None and node.slot not in found:
            visit(node.left)
            visit(node.right)
            found[node.slot] = node

    for node in nodes:
        visit(node)
    return list(found.values())


def _between(left: Node | None, right: Node | None, time: float, slot: Slot) -> Node:
    """The node of the Wiener process at `time`, given its value at `left` and, if present, at `right`."""
    elapsed = time - _time(left)
    if right is None:
        return Node(slot, time, left, None, 0.0, math.sqrt(elapsed))
    span = right.time - _time(left)
    return Node(slot, time, left, right, elapsed / span, math.sqrt(elapsed * (right.time - time) / span))


def _slot(tree: str, path: str) -> Slot:
    """The slot of a node: a node of even depth shares its lane with its two children."""
    head = len(path) // 2 * 2
    return f"{tree}/{path[:head]}", 0 if head == len(path) else 1 + int(path[head])


def _time(node: Node | None) -> float:
    return 0.0 if node is None else node.time


def _part(left: Node, right: Node, index: int, steps: int) -> float:
    return left.time + (right.time - left.time) * (index / steps)


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * other
