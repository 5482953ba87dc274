"""The replacement process: multi-level uniform perturbation (xiao2009) without its history.

Along the retention probability `p`, from 1 downwards, a cell meets events at `P1 = U1`, `P2 = U1·U2`, ..., with `U`
uniform: a Poisson process of rate 1 along `-ln p`. At each event the value is replaced by a uniform draw from the
domain. The copy at `p` shows the value after all events at or above `p`. No event between `p1` and `p2 < p1` has
probability `p2/p1`, which is eq. 10; the list of events is the paper's `history(t)`, made again instead of stored.

A block of 128 bits serves two events: 32 bits for `U` and 32 bits for the replacement of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from sfumato.kernels import Floats, Rows, Words
from sfumato.kernels.ziggurat import gather

EVENTS = 2  # a block
_LOW = np.uint64(0xFFFFFFFF)
_TO_UNIT = 1.0 / (1 << 32)


@njit(cache=True, nogil=True, inline="always")
def _events(
    bits: Words, cell: int, at: float, floor: float, size: int, value: Any
) -> tuple[float, int, int]:  # pragma: no cover
    """Let the two events of a block happen if they come at or above `floor`; the path is down to `at` before them.

    Returns where the path is then, the value, and the event whose replacement draw was rejected (Lemire 2019), or -1.
    """
    wide = np.uint64(size)
    threshold = (np.uint64(1 << 32) - wide) % wide
    rejected = -1
    for event in range(EVENTS):
        word = bits[2 * cell + event]
        at *= (np.float64(word >> np.uint64(32)) + 0.5) * _TO_UNIT
        if at < floor:
            break
        product = (word & _LOW) * wide
        value = np.int64(product >> np.uint64(32))
        rejected = event if (product & _LOW) < threshold else -1
    return at, value, rejected


@njit(cache=True, nogil=True)
def _replace(  # pragma: no cover - compiled
    bits: Words, rows: Rows, passed: Floats, floor: float, size: int, out: Rows, missed: Rows, first: bool
) -> tuple[int, int]:
    """One block of events for each of `rows`, or for all rows if it is the first block.

    `rows[i]` has come down to `passed[i]`. What is not finished moves to the front; rejected draws are listed in
    `missed`. Returns how many of either there are.
    """
    left, misses = 0, 0
    for i in range(bits.shape[0] // 2):
        row = i if first else rows[i]
        at, value, rejected = _events(bits, i, 1.0 if first else passed[i], floor, size, out[row])
        out[row] = value
        if rejected >= 0:
            missed[misses] = EVENTS * row + rejected
            misses += 1
        rows[left], passed[left] = row, at
        left += at >= floor
    return left, misses


def replace(values: Rows, retention: float, size: int, addresses: Words, bits: Callable[[str, Words], Words]) -> Rows:
    """The values after all events at or above `retention`.

    Args:
        values: indices into a domain of `size` values, at most 2³¹.
        addresses: the addresses of the cells.
        bits: `bits(lane, addresses)`, the cells' random bits in a lane.

    """
    out = values.copy()
    rows, missed = np.empty(len(out), np.int64), np.empty(len(out), np.int64)
    passed = np.empty(len(out))
    block, left = 0, len(out)
    while left:
        cells = addresses if block == 0 else gather(addresses, rows[:left])
        left, misses = _replace(bits(f"event/{block}", cells), rows, passed, retention, size, out, missed, block == 0)
        if misses:
            _redraw(missed[:misses], block, size, addresses, bits, out)
        block += 1
    return out


def _redraw(
    missed: Rows, block: int, size: int, addresses: Words, bits: Callable[[str, Words], Words], out: Rows
) -> None:
    """Draw again, from further lanes of the same event, where the replacement draw was rejected."""
    for event in range(EVENTS):
        rows = missed[missed % EVENTS == event] // EVENTS
        turn = 0
        while rows.size:
            words = bits(f"event/{block}/{event}/{turn}", gather(addresses, rows))[::2]
            product = (words >> np.uint64(32)) * np.uint64(size)
            again = (product & _LOW) < np.uint64(((1 << 32) - size) % size)
            out[rows[~again]] = (product >> np.uint64(32))[~again].astype(np.int64)
            rows, turn = rows[again], turn + 1
