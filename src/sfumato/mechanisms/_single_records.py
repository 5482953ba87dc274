"""Perturbation of one record at a time, for streams: the bits of a batch, without the arrays of one.

A call takes microseconds, since the keys of all lanes are ready, and a record needs a few blocks of random bits only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.kernels import NULL, Floats
from sfumato.kernels.lattice import LARGEST
from sfumato.kernels.ziggurat import EDGE, HEIGHT, INSIDE, TO_UNIT, WIDTH
from sfumato.keys.path import Node, Point, ancestry
from sfumato.keys.stream import Lane, Stream
from sfumato.mechanisms._brownian_noise import late_lane

Block = Callable[[bytes], bytes]

_PAIR = Struct("<QQ")
_WORD, _HALF, _DRAW = (1 << 64) - 1, (1 << 32) - 1, (1 << 42) - 1
_TO_UNIT = 1.0 / (1 << 32)
_NULL = int(NULL)

_INSIDE: list[int] = INSIDE.tolist()
_WIDTH: list[float] = WIDTH.tolist()
_HEIGHT: list[float] = HEIGHT.tolist()

Values = Sequence[Any]
"""The values of a record, in the order of a scheme's columns; none where missing."""


class Unusual(Exception):
    """A record that is not perturbed here: it has a value that is no number, or is to be refused."""


def record_id(lane: Lane, texts: Sequence[bytes]) -> int:
    """The id of a record from the texts of its id columns, as `tables.record_ids` hashes them."""
    first = second = 0
    for text in texts:
        first, second = _PAIR.unpack(lane.block(_PAIR.pack(first ^ len(text), second)))
        for start in range(0, len(text), 16):
            one, other = _PAIR.unpack(text[start : start + 16].ljust(16, b"\0"))
            first, second = _PAIR.unpack(lane.block(_PAIR.pack(first ^ one, second ^ other)))
    return int(first)


class SingleNoise:
    """Gaussian noise for one record: `Y = X + L·W(t)` on the lattice, as `_gaussian_scheme` adds it."""

    def __init__(
        self,
        records: Stream,
        streams: Sequence[Stream],
        point: Point,
        factor: Floats,
        steps: Sequence[float],
        bounds: Sequence[tuple[float, float]],
        kinds: Sequence[pa.DataType],
    ) -> None:
        nodes = ancestry([point.node])
        lanes = list(dict.fromkeys(node.slot[0] for node in nodes))
        self._absorb = records.lane("record").block
        self._streams, self._nodes = streams, nodes
        self._blocks = [[stream.lane(lane).block for lane in lanes] for stream in streams]
        self._program = [_instruction(node, nodes, lanes) for node in nodes]
        self._origin = [0.0] * (len(nodes) + 1)  # the last one stays, and is where the path begins
        self._factor = [line[: i + 1] for i, line in enumerate(factor.tolist())]
        self._scales = [(1.0 / step, step, *ends) for step, ends in zip(steps, bounds, strict=True)]
        self._whole = [types.is_integer(kind) for kind in kinds]

    def __call__(self, record: int, values: Values) -> list[Any]:
        points, words = self._on_lattice(values)
        first, second = record, words[0]
        for i in range(1, len(words), 2):
            first, second = _PAIR.unpack(self._absorb(_PAIR.pack(first, second)))
            first, second = first ^ words[i], second ^ words[min(i + 1, len(words) - 1)]
        address = _PAIR.pack(first, second)
        paths = [self._path(i, address) for i in range(len(words))]
        out: list[Any] = []
        for i, value in enumerate(values):
            if value is None:
                out.append(None)
                continue
            noise = 0.0
            for weight, path in zip(self._factor[i], paths):  # noqa: B905 - a triangle
                noise += weight * path
            shown = (points[i] + round(noise)) * self._scales[i][1]
            if not shown and not self._whole[i]:
                raise Unusual  # arrays may have a negative zero there
            out.append(int(shown) if self._whole[i] else shown)
        return out

    def _on_lattice(self, values: Values) -> tuple[list[int], list[int]]:
        points: list[int] = []
        words: list[int] = []
        for value, (inverse, _, low, high) in zip(values, self._scales, strict=True):
            if value is None:
                points.append(0)
                words.append(_NULL)
                continue
            if type(value) is not float:
                if type(value) is not int:
                    raise Unusual
                value = float(value)  # noqa: PLW2901
            clipped = low if value < low else min(value, high)
            if not -LARGEST < clipped * inverse < LARGEST or not -math.inf < value < math.inf:
                raise Unusual
            point = round(clipped * inverse)
            points.append(point)
            words.append(point & _WORD)
        return points, words

    def _path(self, column: int, address: bytes) -> float:
        """The path of one column at the level."""
        bits = [int.from_bytes(block(address), "little") for block in self._blocks[column]]
        found = self._origin.copy()
        at = 0
        for lane, shift, left, right, near, weight, size in self._program:
            draw = bits[lane] >> shift & _DRAW
            side, position = draw & 511, draw >> 9
            inside = position < _INSIDE[side]
            value = position * _WIDTH[side] if inside else self._late(column, self._nodes[at], draw, address)
            found[at] = near * found[left] + weight * found[right] + size * value
            at += 1
        return found[at - 1]

    def _late(self, column: int, node: Node, draw: int, block: bytes) -> float:
        """The normal of a draw that needs more bits than its own."""
        lane, value = self._streams[column].lane(late_lane(node.slot)), None
        while value is None:
            block = lane.block(block)
            value, draw = _settled(draw, *_PAIR.unpack(block))
        return value


def _settled(draw: int, low: int, high: int) -> tuple[float | None, int]:
    """The value of a draw by a further block, as `kernels.ziggurat` settles it; if it has none, the next draw."""
    layer, position = draw & 255, draw >> 9
    value = position * _WIDTH[layer]
    first = ((low >> 11) + 0.5) * TO_UNIT
    if position < _INSIDE[layer]:
        accepted = True
    elif layer == 0:  # the tail
        beyond = -math.log(first) / EDGE
        value = EDGE + beyond
        accepted = -2.0 * math.log(((high >> 11) + 0.5) * TO_UNIT) > beyond * beyond
    else:  # the wedge
        height, inner = _HEIGHT[layer], _HEIGHT[layer + 1]
        accepted = height + first * (inner - height) < math.exp(-0.5 * value * value)
        draw = draw if accepted else high >> 22
    return (None if not accepted else -value if draw & 256 else value), draw


def _instruction(
    node: Node, nodes: Sequence[Node], lanes: Sequence[str]
) -> tuple[int, int, int, int, float, float, float]:
    """How the value at a node follows from its bits and from the values at earlier ones, by their indices.

    A block of 128 bits holds three draws of 42; the second begins at bit 42, the third ends with the last bit.
    """
    at = {one.slot: i for i, one in enumerate(nodes)}
    left, right = (-1 if end is None else at[end.slot] for end in (node.left, node.right))
    shift = (0, 42, 86)[node.slot[1]]
    return lanes.index(node.slot[0]), shift, left, right, 1.0 - node.weight, node.weight, node.size


class SingleReplacement:
    """Random replacement for one record, as `kernels.replacement` and `_uniform_scheme` do it."""

    def __init__(self, stream: Stream, domains: Sequence[Sequence[Any]], retention: float, perturbs_null: bool) -> None:
        self._stream, self._domains, self._floor, self._perturbs_null = stream, domains, retention, perturbs_null
        self._codes = [{value: i for i, value in enumerate(domain)} for domain in domains]
        self._sizes = [len(domain) + perturbs_null for domain in domains]
        self._size = math.prod(self._sizes)
        self._threshold = ((1 << 32) - self._size) % self._size
        self._lanes: list[Block] = []

    def __call__(self, record: int, values: Values) -> list[Any]:
        total = 0
        missing = 0
        for value, codes, size in zip(values, self._codes, self._sizes, strict=True):
            if value is None:
                missing += 1
                code = size - 1 if self._perturbs_null else 0
            else:
                try:
                    code = codes[value]
                except (KeyError, TypeError):
                    raise Unusual from None
            total = total * size + code
        absent = missing == len(values) and not self._perturbs_null
        total = self._replaced(total, _PAIR.pack(record, _NULL if absent else total))
        if len(values) == 1 and not missing and not self._perturbs_null:
            return [self._domains[0][total]]
        out: list[Any] = []
        for value, domain, size in zip(reversed(values), reversed(self._domains), reversed(self._sizes), strict=True):
            total, code = divmod(total, size)
            gone = code >= len(domain) if self._perturbs_null else value is None
            out.append(None if gone else domain[code])
        return out[::-1]

    def _replaced(self, value: int, address: bytes) -> int:
        """The value after all events at or above the retention."""
        at, number = 1.0, 0
        while at >= self._floor:
            rejected = -1
            for event, word in enumerate(_PAIR.unpack(self._lane(number)(address))):
                at *= ((word >> 32) + 0.5) * _TO_UNIT
                if at < self._floor:
                    break
                product = (word & _HALF) * self._size
                value = product >> 32
                rejected = event if product & _HALF < self._threshold else -1
            if rejected >= 0:
                value = self._redrawn(number, rejected, address)
            number += 1
        return value

    def _lane(self, number: int) -> Block:
        while len(self._lanes) <= number:
            self._lanes.append(self._stream.lane(f"event/{len(self._lanes)}").block)
        return self._lanes[number]

    def _redrawn(self, number: int, event: int, address: bytes) -> int:
        attempt = 0
        while True:
            word, _ = _PAIR.unpack(self._stream.lane(f"event/{number}/{event}/{attempt}").block(address))
            product = (word >> 32) * self._size
            if product & _HALF >= self._threshold:
                return int(product >> 32)
            attempt += 1
