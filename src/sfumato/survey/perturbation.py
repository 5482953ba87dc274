"""The two laws by which answers are blurred: the twin of the browser's module, bit for bit.

Both spend random integers of 53 bits in a fixed number and order, whatever the answers are, and compare them with
probabilities by a strict inequality, so that what has probability 0 never happens (zhang2005, eq. 8 corrected: E10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels import Floats

Integers = NDArray[np.int64]
Draws = Callable[[int], Integers]
"""So many integers, each uniform below 2^53."""

UNIT = float(1 << 53)


def bits_of(codes: Any, sizes: Sequence[int]) -> Integers:
    """Rows of answers as rows of bits, one for each option (zhang2005, section 3)."""
    codes = np.atleast_2d(np.asarray(codes, np.int64))
    rows = np.zeros((len(codes), sum(sizes)), np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    np.put_along_axis(rows, codes + starts, 1, axis=1)
    return rows


def randomise(codes: Integers, sizes: Sequence[int], retention: Sequence[float], draws: Integers) -> Integers:
    """Keep each answer with its retention probability, else replace it by any option (k-ary randomised response).

    Args:
        draws: two for each item: whether it is kept, and what replaces it.

    """
    pairs = np.asarray(draws).reshape(-1, len(sizes), 2)
    kept = pairs[..., 0] / UNIT < np.asarray(retention)
    return np.where(kept, codes, pairs[..., 1] % np.asarray(sizes))


def projected(bits: Integers, guidance: Floats) -> Floats:
    """`t V V'`, summed in one fixed order, so that every device gets the same last bit."""
    along = np.zeros((len(bits), guidance.shape[1]))
    for j in range(guidance.shape[0]):
        along += bits[:, j, None] * guidance[j]
    back = np.zeros((len(bits), guidance.shape[0]))
    for c in range(guidance.shape[1]):
        back += along[:, c, None] * guidance[:, c]
    return back


def chances(bits: Integers, guidance: Floats, floor: float = 0.0) -> Floats:
    """The probability of each bit that is sent: `min(t~², 1)` (eq. 8, E7), between the floor and its complement."""
    back = projected(bits, guidance)
    return (1 - 2 * floor) * np.minimum(back * back, 1.0) + floor


def guided(bits: Integers, guidance: Floats, floor: float, draws: Integers) -> Integers:
    """The row that is sent (zhang2005, eqs. 7-8)."""
    return (np.asarray(draws).reshape(bits.shape) / UNIT < chances(bits, guidance, floor)).astype(np.int64)


def device_draws(count: int) -> Integers:
    """Random integers as a device draws them: from the operating system."""
    import secrets  # noqa: PLC0415 - simulations bring their own

    words = np.frombuffer(secrets.token_bytes(8 * count), "<u8")
    return (words >> np.uint64(11)).astype(np.int64)
