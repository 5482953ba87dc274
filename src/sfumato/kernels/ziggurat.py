"""Standard normals from addressed bits, by the ziggurat of Marsaglia and Tsang (2000) with 256 layers.

A block of 128 bits holds three draws of 42 bits: 8 choose the layer, 1 the sign, 33 the abscissa. The resolution of a
draw is below `4e-10` standard deviations, far finer than the lattice that the noise is rounded to. About 0.7 % of the
draws need more bits; they come from a further lane of the same slot, so that a draw depends on its own address alone.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from sfumato.kernels import Floats, Rows, Words

_LAYERS = 256
_POSITIONS = 1 << 33
_EDGE = 3.6541528853610088  # where the tail begins
_AREA = "0.00492867323397465"  # of each layer
_MASK = np.uint64((1 << 42) - 1)
_TO_UNIT = 1.0 / (1 << 53)


def _edges() -> list[Decimal]:
    """The right edges `x_i` of the layers, in decimal arithmetic: the same digits on every machine."""
    with localcontext() as context:
        context.prec = 40
        edge, area = Decimal(repr(_EDGE)), Decimal(_AREA)
        edges = [area / (-edge * edge / 2).exp(), edge]
        for _ in range(2, _LAYERS):
            height = area / edges[-1] + (-edges[-1] * edges[-1] / 2).exp()
            edges.append((-2 * height.ln()).sqrt())
        return [*edges, Decimal(0)]


_X = _edges()
# The layer and the sign of a draw are its lowest 9 bits, so both tables have a second half for the negative side.
WIDTH = np.array([sign * float(x / _POSITIONS) for sign in (1, -1) for x in _X[:-1]])
INSIDE = np.array([int(inner / outer * _POSITIONS) for outer, inner in pairwise(_X)] * 2, dtype=np.uint64)
_HEIGHT = np.array([float((-x * x / 2).exp()) for x in _X])


@njit(cache=True, nogil=True, inline="always")
def _draw(bits: Words, row: int, word: int) -> Any:  # pragma: no cover - compiled
    """The 42 bits of draw `word` in the block of `row`."""
    low, high = bits[2 * row], bits[2 * row + 1]
    if word == 0:
        return low & _MASK
    if word == 1:
        return ((low >> np.uint64(42)) | (high << np.uint64(22))) & _MASK
    return high >> np.uint64(22)


@njit(cache=True, nogil=True)
def _fill(  # pragma: no cover - compiled
    bits: Words, word: int, left: Floats, right: Floats, weight: float, deviation: float, out: Floats, pending: Rows
) -> int:
    """Fill `out` where the first draw is accepted; list the other rows in `pending`, and return how many there are."""
    near = 1.0 - weight
    count = 0
    for row in range(out.shape[0]):
        draw = _draw(bits, row, word)
        side = draw & np.uint64(511)
        position = draw >> np.uint64(9)
        base = near * left[row] + weight * right[row]
        if position < INSIDE[side]:
            out[row] = base + deviation * (np.float64(np.int64(position)) * WIDTH[side])
        else:
            out[row] = base
            pending[count] = row
            count += 1
    return count


@njit(cache=True, nogil=True)
def gather(words: Words, rows: Rows) -> Words:  # pragma: no cover - compiled
    """The two words of each listed row."""
    out = np.empty(2 * rows.shape[0], np.uint64)
    for i in range(rows.shape[0]):
        out[2 * i] = words[2 * rows[i]]
        out[2 * i + 1] = words[2 * rows[i] + 1]
    return out


@njit(cache=True, nogil=True)
def _settle(draws: Words, bits: Words, rows: Rows, deviation: float, out: Floats) -> int:  # pragma: no cover - compiled
    """Accept or reject each pending draw with fresh bits; move those still pending to the front; return their count."""
    still = 0
    for i in range(rows.shape[0]):
        draw = draws[i]
        layer = draw & np.uint64(255)
        position = draw >> np.uint64(9)
        low, high = bits[2 * i], bits[2 * i + 1]
        first = (np.float64(low >> np.uint64(11)) + 0.5) * _TO_UNIT
        value = np.float64(np.int64(position)) * WIDTH[layer]
        accepted = True
        if position >= INSIDE[layer]:
            if layer == 0:  # the tail beyond the last edge (Marsaglia 1964)
                second = (np.float64(high >> np.uint64(11)) + 0.5) * _TO_UNIT
                beyond = -np.log(first) / _EDGE
                value = _EDGE + beyond
                accepted = -2.0 * np.log(second) > beyond * beyond
            else:  # the wedge between the layer and the curve
                rise = _HEIGHT[layer + np.uint64(1)] - _HEIGHT[layer]
                accepted = _HEIGHT[layer] + first * rise < np.exp(-0.5 * value * value)
                if not accepted:
                    draw = high >> np.uint64(22)  # a new draw, for the next round
        if accepted:
            out[rows[i]] += deviation * (-value if draw & np.uint64(256) else value)
        else:
            draws[still], rows[still] = draw, rows[i]
            bits[2 * still], bits[2 * still + 1] = low, high
            still += 1
    return still


@njit(cache=True, nogil=True)
def _pending(  # pragma: no cover - compiled
    bits: Words, word: int, addresses: Words, rows: Rows
) -> tuple[Words, Words]:
    """The draws of the listed rows, and the addresses of further bits for them."""
    draws = np.empty(rows.shape[0], np.uint64)
    for i in range(rows.shape[0]):
        draws[i] = _draw(bits, rows[i], word)
    return draws, gather(addresses, rows)


def bridge(
    left: Floats,
    right: Floats,
    weight: float,
    deviation: float,
    bits: Words,
    word: int,
    addresses: Words,
    more: Callable[[Words], Words],
) -> Floats:
    """The Brownian bridge `(1-weight)·left + weight·right + deviation·N`, with one standard normal `N` per row.

    Drawing and interpolation are one loop, since this is where a release spends its time.

    Args:
        bits: the blocks of the rows; draw number `word` (0, 1, 2) of each is used.
        addresses: the addresses of the rows, for the few that need more bits.
        more: returns further blocks for some addresses; a third block is the one at the second block as an address.

    """
    out = np.empty(bits.shape[0] // 2)
    pending = np.empty(out.shape[0] + 1, np.int64)
    rows = pending[: _fill(bits, word, left, right, weight, deviation, out, pending)]
    draws, blocks = _pending(bits, word, addresses, rows)
    while rows.size:
        blocks = more(blocks)
        count = _settle(draws, blocks, rows, deviation, out)
        rows, draws, blocks = rows[:count], draws[:count], blocks[: 2 * count]
    return out
