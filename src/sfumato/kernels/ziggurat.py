"""Standard normals from addressed bits, by the ziggurat of Marsaglia and Tsang (2000) with 256 layers.

A block of 128 bits holds three draws of 42 bits: 8 choose the layer, 1 the sign, 33 the abscissa. The resolution of a
draw is below `4e-10` standard deviations, far finer than the lattice that the noise is rounded to. About 1.5 % of the
draws need more bits; they come from a further lane of the same slot, so that a draw depends on its own address alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np

from sfumato.kernels import Floats, Mask, Words

_LAYERS = 256
_POSITIONS = 1 << 33
EDGE = 3.6541528853610088  # where the tail begins
_AREA = "0.00492867323397465"  # of each layer
MASK = np.uint64((1 << 42) - 1)
TO_UNIT = 1.0 / (1 << 53)


def _edges() -> list[Decimal]:
    """The right edges `x_i` of the layers, in decimal arithmetic: the same digits on every machine."""
    with localcontext() as context:
        context.prec = 40
        edge, area = Decimal(repr(EDGE)), Decimal(_AREA)
        edges = [area / (-edge * edge / 2).exp(), edge]
        for _ in range(2, _LAYERS):
            height = area / edges[-1] + (-edges[-1] * edges[-1] / 2).exp()
            edges.append((-2 * height.ln()).sqrt())
        return [*edges, Decimal(0)]


_X = _edges()
# The layer and the sign of a draw are its lowest 9 bits, so both tables have a second half for the negative side.
WIDTH = np.array([sign * float(x / _POSITIONS) for sign in (1, -1) for x in _X[:-1]])
INSIDE = np.array([int(inner / outer * _POSITIONS) for outer, inner in pairwise(_X)] * 2, dtype=np.uint64)
HEIGHT = np.array([float((-x * x / 2).exp()) for x in _X])


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

    `kernels.brownian_path` does the same in compiled code, to the last bit.

    Args:
        bits: the blocks of the rows; draw number `word` (0, 1, 2) of each is used.
        addresses: the addresses of the rows, for the few that need more bits.
        more: returns further blocks for some addresses; a third block is the one at the second block as an address.

    """
    drawn = _draws(bits[::2], bits[1::2], word)
    side, position = (drawn & np.uint64(511)).astype(np.intp), drawn >> np.uint64(9)
    out: Floats = (1.0 - weight) * left + weight * right
    late = np.flatnonzero(position >= INSIDE[side])
    base = out[late]
    out += deviation * (position.astype(np.int64).astype(np.float64) * WIDTH[side])
    draws, blocks = drawn[late], np.column_stack([addresses[2 * late], addresses[2 * late + 1]]).reshape(-1)
    while late.size:
        blocks = more(blocks)
        value, accepted, again = _settled(draws, blocks[::2], blocks[1::2])
        out[late[accepted]] = base[accepted] + deviation * value[accepted]
        left_over = ~accepted
        late, base, draws = late[left_over], base[left_over], again[left_over]
        blocks = blocks.reshape(-1, 2)[left_over].reshape(-1)
    return out


def _draws(low: Words, high: Words, word: int) -> Words:
    """The 42 bits of draw `word` in each block."""
    if word == 0:
        return low & MASK
    if word == 1:
        return ((low >> np.uint64(42)) | (high << np.uint64(22))) & MASK
    return high >> np.uint64(22)


def _settled(draws: Words, low: Words, high: Words) -> tuple[Floats, Mask, Words]:
    """The values of draws with further blocks, which of them are accepted, and the draws to go on with if not."""
    layer, position = (draws & np.uint64(255)).astype(np.intp), draws >> np.uint64(9)
    first, second = (((bits >> np.uint64(11)).astype(np.float64) + 0.5) * TO_UNIT for bits in (low, high))
    value = position.astype(np.int64).astype(np.float64) * WIDTH[layer]
    accepted = position < INSIDE[layer]
    tail = ~accepted & (layer == 0)  # beyond the last edge (Marsaglia 1964)
    wedge = ~accepted & (layer > 0)  # between the layer and the curve
    beyond = -_each(math.log, first[tail]) / EDGE
    value[tail] = EDGE + beyond
    accepted[tail] = -2.0 * _each(math.log, second[tail]) > beyond * beyond
    height, inner = HEIGHT[layer[wedge]], HEIGHT[layer[wedge] + 1]
    inside = height + first[wedge] * (inner - height) < _each(math.exp, -0.5 * value[wedge] * value[wedge])
    accepted[wedge] = inside
    again = draws.copy()
    again[np.flatnonzero(wedge)[~inside]] = high[wedge][~inside] >> np.uint64(22)
    value[(again & np.uint64(256)) > 0] *= -1.0
    return value, accepted, again


def _each(function: Callable[[float], float], values: Floats) -> Floats:
    """The C library's function of some numbers, whose last digits compiled code has too, and NumPy's has not."""
    return np.array([function(value) for value in values.tolist()], np.float64)
