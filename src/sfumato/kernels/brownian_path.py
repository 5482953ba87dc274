"""The Brownian path of records at the nodes of a tree, from addresses to normals, in one compiled loop.

Blocks of AES-256 (`kernels.aes`), draws by the ziggurat and bridges follow each other on a few hundred rows at a time,
which stay in the fastest cache of a processor. The normals are those of `kernels.ziggurat`, to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from sfumato.kernels import Floats, Mask, Rows, Words
from sfumato.kernels.aes import SIDE_BY_SIDE, encrypt
from sfumato.kernels.ziggurat import EDGE, HEIGHT, INSIDE, MASK, TO_UNIT, WIDTH

BLOCK_ROWS = 512
"""Rows per loop."""


@njit(nogil=True)
def _draw(low: Any, high: Any, word: int) -> Any:  # pragma: no cover - compiled
    """The 42 bits of draw `word` in a block."""
    if word == 0:
        return low & MASK
    if word == 1:
        return ((low >> np.uint64(42)) | (high << np.uint64(22))) & MASK
    return high >> np.uint64(22)


@njit(nogil=True)
def _fill(  # pragma: no cover - compiled
    bits: Words, word: int, left: Floats, right: Floats, weight: float, deviation: float, out: Floats, late: Mask
) -> None:
    """Fill `out` as if each draw were accepted, and mark those that are not; without branches, for vector units."""
    near = 1.0 - weight
    for row in range(out.shape[0]):
        drawn = _draw(bits[2 * row], bits[2 * row + 1], word)
        side, position = drawn & np.uint64(511), drawn >> np.uint64(9)
        base = near * left[row] + weight * right[row]
        late[row] = position >= INSIDE[side]
        out[row] = base + deviation * (np.float64(np.int64(position)) * WIDTH[side])


@njit(nogil=True)
def _settle(draws: Words, bits: Words, rows: Rows, deviation: float, out: Floats) -> int:  # pragma: no cover - compiled
    """Accept or reject each late draw with fresh bits; move those still late to the front; return their count."""
    still = 0
    for i in range(rows.shape[0]):
        drawn = draws[i]
        layer, position = drawn & np.uint64(255), drawn >> np.uint64(9)
        low, high = bits[2 * i], bits[2 * i + 1]
        first = (np.float64(low >> np.uint64(11)) + 0.5) * TO_UNIT
        value = np.float64(np.int64(position)) * WIDTH[layer]
        accepted = True
        if position >= INSIDE[layer]:
            if layer == 0:  # the tail beyond the last edge (Marsaglia 1964)
                second = (np.float64(high >> np.uint64(11)) + 0.5) * TO_UNIT
                beyond = -math.log(first) / EDGE
                value = EDGE + beyond
                accepted = -2.0 * math.log(second) > beyond * beyond
            else:  # the wedge between the layer and the curve
                rise = HEIGHT[layer + np.uint64(1)] - HEIGHT[layer]
                accepted = HEIGHT[layer] + first * rise < math.exp(-0.5 * value * value)
                if not accepted:
                    drawn = high >> np.uint64(22)  # a new draw, for the next round
        if accepted:
            out[rows[i]] += deviation * (-value if drawn & np.uint64(256) else value)
        else:
            draws[still], rows[still] = drawn, rows[i]
            bits[2 * still], bits[2 * still + 1] = low, high
            still += 1
    return still


@njit(nogil=True)
def walk(  # pragma: no cover - compiled
    nodes: Rows, weights: Floats, stream: int, lanes: Words, late_lanes: Words, addresses: Words, path: Floats
) -> None:
    """The path of one stream at all nodes, for at most `BLOCK_ROWS` rows.

    Args:
        nodes: for each node the number of its lane, the number of its draw in a block, and its two neighbours; the
            number of nodes stands for none, where the path is 0.
        weights: for each node the weight of its right neighbour, and the standard deviation of the bridge.
        stream: its number.
        lanes: the expanded keys of all lanes of all streams.
        late_lanes: the expanded keys of all nodes of all streams, for draws that need more bits.
        addresses: of the rows, with room for a multiple of `SIDE_BY_SIDE`.
        path: filled, `(node, row)`; its last line is 0.

    """
    node_count, rows = nodes.shape[0], path.shape[1]
    lane_count = nodes[:, 0].max() + 1
    room = 2 * (rows + SIDE_BY_SIDE)
    bits = np.empty((lane_count, room), np.uint64)
    late = np.empty(rows, np.bool_)
    pending, draws = np.empty(rows, np.int64), np.empty(rows, np.uint64)
    blocks = np.empty(room, np.uint64)
    for lane in range(lane_count):
        encrypt(lanes, stream * lane_count + lane, addresses, rows, bits[lane])
    for i in range(node_count):
        lane, word = nodes[i, 0], nodes[i, 1]
        left, right = path[nodes[i, 2]], path[nodes[i, 3]]
        weight, deviation = weights[i, 0], weights[i, 1]
        _fill(bits[lane], word, left, right, weight, deviation, path[i], late)
        count = 0
        for row in range(rows):
            if late[row]:
                path[i, row] = (1.0 - weight) * left[row] + weight * right[row]
                pending[count], draws[count] = row, _draw(bits[lane, 2 * row], bits[lane, 2 * row + 1], word)
                blocks[2 * count], blocks[2 * count + 1] = addresses[2 * row], addresses[2 * row + 1]
                count += 1
        while count > 0:
            encrypt(late_lanes, stream * node_count + i, blocks, count, blocks)
            count = _settle(draws, blocks, pending[:count], deviation, path[i])


@njit(cache=True, nogil=True)
def walk_rows(  # pragma: no cover - compiled
    nodes: Rows, weights: Floats, targets: Rows, lanes: Words, late_lanes: Words, addresses: Words, out: Floats
) -> None:
    """Fill `out`, `(target, stream, row)`, with the path of each stream at the target nodes, for any number of rows."""
    total = out.shape[2]
    state = np.empty(2 * (BLOCK_ROWS + SIDE_BY_SIDE), np.uint64)
    for start in range(0, total, BLOCK_ROWS):
        size = min(BLOCK_ROWS, total - start)
        state[: 2 * size] = addresses[2 * start : 2 * (start + size)]
        path = np.zeros((nodes.shape[0] + 1, size))
        for stream in range(out.shape[1]):
            walk(nodes, weights, stream, lanes, late_lanes, state, path)
            for target in range(targets.shape[0]):
                out[target, stream, start : start + size] = path[targets[target]]
