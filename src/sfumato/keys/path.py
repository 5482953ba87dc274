"""The path tree: where a level lies on a cell's Brownian path, and which draws make up the path there.

The path `W(t)` runs over the noise variance `t`. Declared levels are the nodes of a balanced binary tree over `t`;
the first is drawn from `N(0, t)`, every other one from the law of Brownian motion given the nearest levels drawn
before it: a bridge between two neighbours, or a free increment beyond the last. Between two declared levels the gap is
halved, one bridge a binary digit; below the lowest it halves towards 0, above the highest it doubles.

This is li2012's Algorithm 3 with its conditional (eqs. 17, 18) reduced to the two neighbours that it really depends
on, since corner-wave noise (eq. 15) is Brownian motion in `σ²`.

Every bridge is linear, so `W(t) = Σ c·N` over the standard normals `N` of the nodes between the root and `t`. The
coefficients depend on the ladder alone. A node and its two children share one lane of bits (`keys.stream`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.errors import LevelError
from sfumato.schema.levels import Ladder, Level

OCTAVES = 40
"""How often the gap may halve below the ladder or double above it."""

_SAME = 1e-9
"""Two times nearer than this, relatively, are one: a level read back from a manifest finds its own place."""

Slot = tuple[str, int]
"""A lane and the number (0, 1, 2) of a normal in its block."""


@dataclass(frozen=True)
class Point:
    """A place on the path: its level, its time, and the path there as a sum of standard normals."""

    level: Level
    time: float
    terms: tuple[tuple[Slot, float], ...]


@dataclass(frozen=True)
class _Node:
    time: float
    terms: dict[Slot, float]


_ORIGIN = _Node(0.0, {})


class PathTree:
    """The path tree of a ladder."""

    def __init__(self, ladder: Ladder, digits: int = 8) -> None:
        self.declared = tuple(ladder)  # by falling fidelity, so by rising time
        self._digits = digits
        self._nodes: list[_Node] = [_ORIGIN] * len(self.declared)
        self._declare(0, len(self.declared), _ORIGIN, None, "")

    @property
    def declaration(self) -> list[float]:
        """What the tree depends on: two trees with equal declarations are equal."""
        return [float(self._digits), *(level.fidelity for level in self.declared)]

    def locate(self, level: Level) -> Point:
        """The first place on the grid at or beyond `level`: never less noise than was asked for."""
        for known, node in zip(self.declared, self._nodes, strict=True):
            if _same(known.noise, level.noise):
                return _point(known, node)
        name, left, right = self._gap(level.noise)
        steps = 1 << self._digits
        exact = (level.noise - left.time) / (right.time - left.time) * steps
        nearest = round(exact)
        index = nearest if _same(_time(left, right, nearest, steps), level.noise) else math.ceil(exact)
        node = self._halve(name, left, right, index)
        return _point(Level.from_noise(node.time), node)

    def _declare(self, start: int, stop: int, left: _Node, right: _Node | None, path: str) -> None:
        """Draw the middle one of the levels `start:stop`, then those on either side of it."""
        if start == stop:
            return
        middle = (start + stop) // 2
        node = _between(left, right, self.declared[middle].noise, _slot("ladder", path))
        self._nodes[middle] = node
        self._declare(start, middle, left, node, path + "0")
        self._declare(middle + 1, stop, node, right, path + "1")

    def _gap(self, time: float) -> tuple[str, _Node, _Node]:
        """The name and the two ends of the gap that `time` lies in."""
        first, last = self._nodes[0], self._nodes[-1]
        if time < first.time:
            for octave in range(OCTAVES):
                half = _between(_ORIGIN, first, first.time / 2, (f"halving/{octave // 3}", octave % 3))
                if time > half.time or _same(time, half.time):
                    return f"below/{octave}", half, first
                first = half
        elif time > last.time:
            for octave in range(OCTAVES):
                double = _between(last, None, last.time * 2, (f"doubling/{octave // 3}", octave % 3))
                if time <= double.time or _same(time, double.time):
                    return f"above/{octave}", last, double
                last = double
        else:
            above = next(i for i, node in enumerate(self._nodes) if node.time > time)
            return f"gap/{above - 1}", self._nodes[above - 1], self._nodes[above]
        raise LevelError(
            f"a level must lie within {OCTAVES} octaves of the declared ones, got the fidelity "
            f"{Level.from_noise(time).fidelity!r}; declare a level nearer to it"
        )

    def _halve(self, name: str, left: _Node, right: _Node, index: int) -> _Node:
        """The node `index` of the `2^digits` steps from `left` to `right`, one bridge a binary digit."""
        low, high = 0, 1 << self._digits
        ends, path = (left, right), ""
        while index not in (low, high):
            middle = (low + high) // 2
            time = _time(left, right, middle, 1 << self._digits)
            node = _between(*ends, time, _slot(name, path))
            if index <= middle:
                high, ends, path = middle, (ends[0], node), path + "0"
            else:
                low, ends, path = middle, (node, ends[1]), path + "1"
        return ends[0] if index == low else ends[1]


def _between(left: _Node, right: _Node | None, time: float, slot: Slot) -> _Node:
    """Brownian motion at `time`, given its value at `left` and, if there is one, at `right`."""
    elapsed = time - left.time
    if right is None:
        return _Node(time, {**left.terms, slot: math.sqrt(elapsed)})
    span = right.time - left.time
    weight = elapsed / span
    terms = {at: (1 - weight) * c for at, c in left.terms.items()}
    for at, c in right.terms.items():
        terms[at] = terms.get(at, 0.0) + weight * c
    terms[slot] = math.sqrt(elapsed * (right.time - time) / span)
    return _Node(time, terms)


def _slot(tree: str, path: str) -> Slot:
    """The slot of a node: a node of even depth shares its lane with its two children."""
    head = len(path) // 2 * 2
    return f"{tree}/{path[:head]}", 0 if head == len(path) else 1 + int(path[head])


def _time(left: _Node, right: _Node, index: int, steps: int) -> float:
    return left.time + (right.time - left.time) * (index / steps)


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * other


def _point(level: Level, node: _Node) -> Point:
    terms = tuple((slot, c) for slot, c in sorted(node.terms.items()) if c != 0.0)
    return Point(level, node.time, terms)
