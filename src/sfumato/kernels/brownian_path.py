"""The Brownian path of records at the nodes of a tree, from addresses to normals, in one compiled loop.

Blocks of AES-256 (`kernels.aes`), draws by the ziggurat and bridges follow each other on a few hundred rows at a time,
which stay in the fastest cache of a processor. The normals are those of `kernels.ziggurat`, to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_name
from numba import types
from numba.core import config
from numba.extending import intrinsic

from sfumato.kernels import Floats, Mask, Rows, Words
from sfumato.kernels.aes import SIDE_BY_SIDE, encrypt
from sfumato.kernels.compiled import copy_to, njit
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


@intrinsic
def _entry(typing_context: Any, table: Any, index: Any) -> Any:  # noqa: ARG001 - numba's interface
    """An entry of a table, loaded by itself where vector units gather several in three times the time.

    Processors of Intel's from 2014 to 2021 gather slowly since they were patched against Downfall (CVE-2022-40982).
    AMD's were not: there, gathering takes a fifth off the time of `_fill`.
    """
    signature = table.dtype(table, types.uint64)

    def generate(context: Any, builder: Any, given: Any, values: Any) -> Any:
        data = context.make_array(given.args[0])(context, builder, values[0]).data
        entry = builder.gep(data, [values[1]])
        return builder.load(entry) if gathers_quickly() else builder.load_atomic(entry, "monotonic", 8)

    return signature, generate


def gathers_quickly() -> bool:
    """Whether this processor is known to load several entries of a table at once in less time than one by one."""
    return config.CPU_NAME is None and str(get_host_cpu_name()).startswith("znver")


@intrinsic
def _small(typing_context: Any, number: Any) -> Any:  # noqa: ARG001 - numba's interface
    """The double of a whole number below 2⁵², exactly; AVX2 has no instruction for it, and would go number by number.

    The number is put behind the leading one of 2⁵², which is then taken off.
    """

    def generate(context: Any, builder: Any, given: Any, values: Any) -> Any:  # noqa: ARG001 - numba's interface
        double = ir.DoubleType()
        behind = builder.or_(values[0], ir.Constant(ir.IntType(64), 0x4330000000000000))
        return builder.fsub(builder.bitcast(behind, double), ir.Constant(double, float(1 << 52)))

    return types.float64(types.uint64), generate


@njit(nogil=True)
def _fill(  # pragma: no cover - compiled
    bits: Words, word: int, left: Floats, right: Floats, weight: float, deviation: float, out: Floats, late: Mask
) -> None:
    """Fill `out` as if each draw were accepted, and say which are not; without branches."""
    near = 1.0 - weight
    for row in range(out.shape[0]):
        drawn = _draw(bits[2 * row], bits[2 * row + 1], word)
        side, position = drawn & np.uint64(511), drawn >> np.uint64(9)
        base = near * left[row] + weight * right[row]
        late[row] = position >= _entry(INSIDE, side)
        out[row] = base + deviation * (_small(position) * _entry(WIDTH, side))


@njit(nogil=True)
def _listed(late: Mask, rows: int, pending: Rows) -> Any:  # pragma: no cover - compiled
    """List the late rows and return their number; most groups of eight have none."""
    groups, count = late.view(np.uint64), np.uint64(0)
    for group in range(np.uint64((rows + 7) // 8)):
        if groups[group] != 0:
            first = group * np.uint64(8)
            for row in range(first, min(first + np.uint64(8), np.uint64(rows))):
                pending[count] = row
                count += np.uint64(late[row])
    return np.int64(count)


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
def scratch(nodes: Rows) -> Any:  # pragma: no cover - compiled
    """Arrays for `walk` to work in: to allocate them takes as long as to draw some numbers."""
    room, lanes = 2 * (BLOCK_ROWS + SIDE_BY_SIDE), 1
    for i in range(nodes.shape[0]):
        lanes = max(lanes, nodes[i, 0] + 1)
    bits, blocks = np.empty((lanes, room), np.uint64), np.empty(room, np.uint64)
    late, pending = np.zeros(BLOCK_ROWS, np.bool_), np.empty(BLOCK_ROWS + 1, np.int64)
    return bits, late, pending, np.empty(BLOCK_ROWS, np.uint64), blocks


@njit(nogil=True)
def walk(  # pragma: no cover - compiled
    nodes: Rows,
    weights: Floats,
    stream: int,
    lanes: Words,
    late_lanes: Words,
    addresses: Words,
    arrays: Any,
    path: Floats,
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
        arrays: from `scratch`.
        path: filled, `(node, row)`; its last line is 0.

    """
    node_count, rows = nodes.shape[0], path.shape[1]
    bits, late, pending, draws, blocks = arrays
    lane_count = bits.shape[0]
    for lane in range(lane_count):
        encrypt(lanes, stream * lane_count + lane, addresses, rows, bits[lane])
    for i in range(node_count):
        block, word = bits[nodes[i, 0]], nodes[i, 1]
        left, right = path[nodes[i, 2]], path[nodes[i, 3]]
        weight, deviation = weights[i, 0], weights[i, 1]
        _fill(block, word, left, right, weight, deviation, path[i], late)
        count = _listed(late, rows, pending)
        for k in range(count):
            row = pending[k]
            path[i, row] = (1.0 - weight) * left[row] + weight * right[row]
            draws[k] = _draw(block[2 * row], block[2 * row + 1], word)
            blocks[2 * k], blocks[2 * k + 1] = addresses[2 * row], addresses[2 * row + 1]
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
    arrays = scratch(nodes)
    for start in range(0, total, BLOCK_ROWS):
        size = min(BLOCK_ROWS, total - start)
        copy_to(state, addresses[2 * start : 2 * (start + size)])
        path = np.zeros((nodes.shape[0] + 1, size))
        for stream in range(out.shape[1]):
            walk(nodes, weights, stream, lanes, late_lanes, state, arrays, path)
            for target in range(targets.shape[0]):
                copy_to(out[target, stream, start : start + size], path[targets[target]])
