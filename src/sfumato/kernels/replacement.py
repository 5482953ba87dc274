"""Multi-level uniform perturbation of categories (xiao2009) as a replacement process, without a stored history.

Along the retention probability `p`, from 1 downwards, a cell meets events at `P1 = U1`, `P2 = U1·U2`, ..., with `U`
uniform: a Poisson process of rate 1 along `-ln p`. At each event the value is replaced by a uniform draw from the
domain. The copy at `p` has the value after all events at or above `p`. No event between `p1` and `p2 < p1` has
probability `p2/p1`, which is eq. 10; the list of events is the paper's `history(t)`, recomputed instead of stored.

A block of 128 bits serves two events: 32 bits for `U` and 32 bits for the replacement of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from sfumato.kernels import Floats, Rows, Words
from sfumato.kernels.ziggurat import gather

EVENTS = 2  # per block
_LOW = np.uint64(0xFFFFFFFF)
_TO_UNIT = 1.0 / (1 << 32)


@njit(cache=True, nogil=True, inline="always")
def _events(
    bits: Words, cell: int, at: float, floor: float, size: int, value: Any
) -> tuple[float, int, int]:  # pragma: no cover
    """Apply the two events of a block that lie at or above `floor`; before them the process has reached `at`.

    Returns the position reached, the value, and the event whose replacement draw was rejected (Lemire 2019), or -1.
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
    bits: Words, rows: Rows, reached: Floats, floor: float, size: int, out: Rows, rejections: Rows, first: bool
) -> tuple[int, int]:
    """Apply one block of events to each of `rows`, or to all rows if it is the first block.

    `rows[i]` has reached `reached[i]`. Unfinished rows move to the front; rejected draws are listed in `rejections`.
    Returns the number of unfinished rows and of rejected draws.
    """
    unfinished, rejected_count = 0, 0
    for i in range(bits.shape[0] // 2):
        row = i if first else rows[i]
        at, value, rejected = _events(bits, i, 1.0 if first else reached[i], floor, size, out[row])
        out[row] = value
        if rejected >= 0:
            rejections[rejected_count] = EVENTS * row + rejected
            rejected_count += 1
        rows[unfinished], reached[unfinished] = row, at
        unfinished += at >= floor
    return unfinished, rejected_count


def replace(values: Rows, retention: float, size: int, addresses: Words, bits: Callable[[str, Words], Words]) -> Rows:
    """The perturbed values: those after all events at or above `retention`.

    Args:
        values: indices into a domain of `size` values, at most 2³¹.
        addresses: the addresses of the cells.
        bits: `bits(lane, addresses)` returns the cells' random bits in a lane.

    """
    out = values.copy()
    rows, rejections = np.empty(len(out), np.int64), np.empty(len(out), np.int64)
    reached = np.empty(len(out))
    block, unfinished = 0, len(out)
    while unfinished:
        cells = addresses if block == 0 else gather(addresses, rows[:unfinished])
        random = bits(f"event/{block}", cells)
        unfinished, count = _replace(random, rows, reached, retention, size, out, rejections, block == 0)
        if count:
            _redraw(rejections[:count], block, size, addresses, bits, out)
        block += 1
    return out


def _redraw(
    rejections: Rows, block: int, size: int, addresses: Words, bits: Callable[[str, Words], Words], out: Rows
) -> None:
    """Redraw rejected replacements from further lanes of the same event (rejection sampling)."""
    for event in range(EVENTS):
        rows = rejections[rejections % EVENTS == event] // EVENTS
        attempt = 0
        while rows.size:
            words = bits(f"event/{block}/{event}/{attempt}", gather(addresses, rows))[::2]
            product = (words >> np.uint64(32)) * np.uint64(size)
            is_rejected = (product & _LOW) < np.uint64(((1 << 32) - size) % size)
            out[rows[~is_rejected]] = (product >> np.uint64(32))[~is_rejected].astype(np.int64)
            rows, attempt = rows[is_rejected], attempt + 1
