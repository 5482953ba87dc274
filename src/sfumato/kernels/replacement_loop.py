"""Random replacement in one compiled loop, from values to copies: addresses, blocks of AES-256 and events.

It is what `kernels.replacement` does array by array, to the last bit. The few cells that need more than that, a draw
that is rejected or an unlikely number of events, are listed and left to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.kernels import Floats, Mask, Rows, Words
from sfumato.kernels.aes import SCHEDULE, SIDE_BY_SIDE, encrypt
from sfumato.kernels.compiled import copy_to, njit
from sfumato.kernels.replacement import LOW, TO_UNIT

_BLOCK_ROWS = 1024
"""Rows per loop."""


@njit(nogil=True)
def _apply(  # pragma: no cover - compiled
    bits: Words, floor: float, size: int, reached: Floats, values: Rows, goes_on: Mask, rejected: Mask
) -> None:
    """Apply the two events of a block to each cell; without branches, which no processor could foresee."""
    wide = np.uint64(size) & LOW  # which vector units multiply in one instruction
    threshold = (np.uint64(1 << 32) - wide) % wide
    for i in range(values.shape[0]):
        word, other = bits[2 * i], bits[2 * i + 1]
        first = reached[i] * ((np.float64(np.int64(word >> np.uint64(32))) + 0.5) * TO_UNIT)
        second = first * ((np.float64(np.int64(other >> np.uint64(32))) + 0.5) * TO_UNIT)
        product, later = (word & LOW) * wide, (other & LOW) * wide
        is_replaced, again = first >= floor, second >= floor
        value = np.int64(product >> np.uint64(32)) if is_replaced else values[i]
        values[i] = np.int64(later >> np.uint64(32)) if again else value
        last = later if again else product
        rejected[i] = (last & LOW) < threshold if is_replaced else rejected[i]
        reached[i] = second
        goes_on[i] = again


@njit(nogil=True)
def _listed(which: Mask, count: int, out: Rows) -> Any:  # pragma: no cover - compiled
    """List the indices of what is true, and return their number; without branches."""
    found = np.uint64(0)
    for i in range(count):
        out[found] = i
        found += np.uint64(which[i])
    return np.int64(found)


@njit(nogil=True)
def _finish(  # pragma: no cover - compiled
    lanes: Words, floor: float, size: int, active: int, arrays: Any, copy: Rows, late: Mask
) -> None:
    """Apply all further blocks of events to the cells that go on after the first one, which are listed in `keep`.

    A cell that goes on beyond the last block is late, too.
    """
    cells, bits, keep, index, reached, value, goes_on, rejected = arrays
    for k in range(active):
        i = keep[k]
        index[k], value[k], rejected[k] = i, copy[i], late[i]
    for block in range(1, lanes.shape[0] // SCHEDULE):
        if active == 0:
            return
        for k in range(active):  # the cells that go on, moved to the front
            i = keep[k]
            cells[2 * k], cells[2 * k + 1], reached[k] = cells[2 * i], cells[2 * i + 1], reached[i]
        encrypt(lanes, block, cells, active, bits)
        _apply(bits, floor, size, reached[:active], value[:active], goes_on, rejected)
        for k in range(active):
            copy[index[k]], late[index[k]] = value[k], rejected[k]
        active = _listed(goes_on, active, keep)
        for k in range(active):
            i = keep[k]
            index[k], value[k], rejected[k] = index[i], value[i], rejected[i]
    for k in range(active):
        late[index[k]] = True


@njit(cache=True, nogil=True)
def replace_all(  # pragma: no cover - compiled
    values: Rows, words: Words, rows: Words, floor: float, size: int, lanes: Words, out: Rows, careful: Rows
) -> int:
    """Fill `out` with the perturbed values; list the cells that need more in `careful`, and return their number.

    Args:
        values: indices into a domain of `size` values.
        words: what they are addressed by.
        rows: the record ids.
        floor: the retention.
        size: of the domain.
        lanes: the expanded keys of blocks of events.
        out: the perturbed values.
        careful: has room for all cells and one more.

    """
    left_over, room = 0, _BLOCK_ROWS + SIDE_BY_SIDE
    cells, bits = np.empty(2 * room, np.uint64), np.empty(2 * room, np.uint64)
    index, keep, value = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    reached, late = np.empty(room), np.empty(room, np.bool_)
    goes_on, rejected = np.empty(room, np.bool_), np.empty(room, np.bool_)
    for start in range(0, values.shape[0], _BLOCK_ROWS):
        count = min(_BLOCK_ROWS, values.shape[0] - start)
        copy = out[start : start + count]
        copy_to(copy, values[start : start + count])
        ids, own = rows[start : start + count], words[start : start + count]  # whose indices are known to be positive
        for i in range(count):
            cells[2 * i], cells[2 * i + 1] = ids[i], own[i]
        reached[:count], late[:count] = 1.0, False
        encrypt(lanes, 0, cells, count, bits)
        _apply(bits, floor, size, reached[:count], copy, goes_on, late)
        active = _listed(goes_on, count, keep)
        _finish(lanes, floor, size, active, (cells, bits, keep, index, reached, value, goes_on, rejected), copy, late)
        for i in range(count):
            careful[left_over] = start + i
            left_over += late[i]
    return left_over
