"""Bloom filters of record ids: whether an id may be among many, by a few bits of memory for each of these."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from sfumato.kernels import Mask, Words

Bits = npt.NDArray[np.uint8]

BITS_PER_ID = 20
"""With eight probes, one id in 14,000 that is not there seems to be."""

MOST_BITS = 1 << 28
"""The largest filter has 32 MiB; beyond 13 million ids it answers less surely."""

_MOST_PROBES = 8


def empty_filter(ids: int) -> Bits:
    """A filter for so many ids."""
    bits = min(max(BITS_PER_ID * ids, 64), MOST_BITS)
    return np.zeros(-(-bits // 8), np.uint8)


def probes(size: int, ids: int) -> int:
    """How many bits each of so many ids has in a filter of so many bytes."""
    return min(max(round(8 * size / max(ids, 1) * math.log(2)), 1), _MOST_PROBES)


@njit(cache=True, nogil=True)
def _mixed(word: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The finaliser of SplitMix64: ids that are consecutive numbers become hashes."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def insert(bits: Bits, ids: Words, count: int) -> None:  # pragma: no cover - compiled
    """Add ids to a filter."""
    size = np.uint64(8 * len(bits))
    for i in range(len(ids)):
        first = _mixed(ids[i])
        step = _mixed(first + np.uint64(1)) | np.uint64(1)
        for j in range(count):
            at = (first + np.uint64(j) * step) % size
            bits[at >> np.uint64(3)] |= np.uint8(1) << np.uint8(at & np.uint64(7))


@njit(cache=True, nogil=True)
def may_contain(bits: Bits, ids: Words, count: int) -> Mask:  # pragma: no cover - compiled
    """Which ids may be in a filter; false for one that is not in it, but for a few."""
    size = np.uint64(8 * len(bits))
    out = np.empty(len(ids), np.bool_)
    for i in range(len(ids)):
        first = _mixed(ids[i])
        step = _mixed(first + np.uint64(1)) | np.uint64(1)
        found = True
        for j in range(count):
            at = (first + np.uint64(j) * step) % size
            found = found and (bits[at >> np.uint64(3)] >> np.uint8(at & np.uint64(7))) & np.uint8(1) == 1
        out[i] = found
    return out
