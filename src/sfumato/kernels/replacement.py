"""Multi-level uniform perturbation of categories (xiao2009) as a replacement process, without a stored history.

Along the retention probability `p`, from 1 downwards, a cell meets events at `P1 = U1`, `P2 = U1·U2`, ..., with `U`
uniform: a Poisson process of rate 1 along `-ln p`. At each event the value is replaced by a uniform draw from the
domain. The copy at `p` has the value after all events at or above `p`. No event between `p1` and `p2 < p1` has
probability `p2/p1`, which is eq. 10; the list of events is the paper's `history(t)`, recomputed instead of stored.

A block of 128 bits serves two events: 32 bits for `U` and 32 bits for the replacement of each.
`kernels.replacement_loop` does the same in compiled code, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.kernels import Mask, Rows, Words

EVENTS = 2  # per block
LOW = np.uint64(0xFFFFFFFF)
TO_UNIT = 1.0 / (1 << 32)

Bits = Callable[[str, Words], Words]
"""The random bits of some addresses in the lane of a name."""


def replace(values: Rows, retention: float, size: int, addresses: Words, bits: Bits) -> Rows:
    """The perturbed values: those after all events at or above `retention`.

    Args:
        values: indices into a domain of `size` values, at most 2³¹.
        addresses: the addresses of the cells.
        bits: returns the cells' random bits in a lane.

    """
    out = values.copy()
    cells, rows, reached = addresses.reshape(-1, 2), np.arange(len(out)), np.ones(len(out))
    block = 0
    while rows.size:
        random = bits(event_lane(block), addresses if block == 0 else cells[rows].reshape(-1))
        active = np.arange(len(rows))
        rejected = np.full(len(rows), -1)
        for event in range(EVENTS):
            word = random[event::EVENTS][active]
            reached[active] *= ((word >> np.uint64(32)).astype(np.float64) + 0.5) * TO_UNIT
            goes_on = reached[active] >= retention
            active, word = active[goes_on], word[goes_on]
            out[rows[active]], is_rejected = _drawn(word & LOW, size)
            rejected[active] = np.where(is_rejected, event, -1)
        for event in range(EVENTS):
            _redraw(rows[rejected == event], f"{event_lane(block)}/{event}", size, cells, bits, out)
        rows, reached, block = rows[active], reached[active], block + 1
    return out


def event_lane(block: int) -> str:
    """The lane of a block of events."""
    return f"event/{block}"


def _redraw(rows: Rows, lane: str, size: int, cells: Words, bits: Bits, out: Rows) -> None:
    """Redraw rejected replacements from further lanes of the same event (rejection sampling)."""
    attempt = 0
    while rows.size:
        words = bits(f"{lane}/{attempt}", cells[rows].reshape(-1))[::2]
        out[rows], is_rejected = _drawn(words >> np.uint64(32), size)
        rows, attempt = rows[is_rejected], attempt + 1


def _drawn(bits: Words, size: int) -> tuple[Rows, Mask]:
    """Values of a domain from 32 random bits each, and which of them must be drawn again (Lemire 2019)."""
    product = bits * np.uint64(size)
    return (product >> np.uint64(32)).astype(np.int64), (product & LOW) < np.uint64(((1 << 32) - size) % size)
