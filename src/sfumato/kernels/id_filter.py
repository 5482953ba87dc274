"""Bloom filters of record ids: whether an id may be among many, by a few bits of memory for each of these."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.kernels import Mask, Words
from sfumato.kernels.compiled import njit
from sfumato.kernels.hashes import hashes

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


def insert(bits: Bits, ids: Words, count: int) -> None:
    """Add ids to a filter, each with so many bits."""
    first = hashes(ids)
    _insert(bits, first, hashes(first), count)


def may_contain(bits: Bits, ids: Words, count: int) -> Mask:
    """Which ids may be in a filter; of those that are not, a few."""
    first = hashes(ids)
    found: Mask = _may_contain(bits, first, hashes(first), count)
    return found


@njit(cache=True, nogil=True)
def _insert(bits: Bits, first: Words, step: Words, count: int) -> None:  # pragma: no cover - compiled
    size = np.uint64(8 * len(bits))
    for i in range(len(first)):
        for j in range(count):
            at = (first[i] + np.uint64(j) * step[i]) % size
            bits[at >> np.uint64(3)] |= np.uint8(1) << np.uint8(at & np.uint64(7))


@njit(cache=True, nogil=True)
def _may_contain(bits: Bits, first: Words, step: Words, count: int) -> Mask:  # pragma: no cover - compiled
    size = np.uint64(8 * len(bits))
    out = np.ones(len(first), np.bool_)
    for i in range(len(first)):
        for j in range(count):
            at = (first[i] + np.uint64(j) * step[i]) % size
            out[i] &= (bits[at >> np.uint64(3)] >> np.uint8(at & np.uint64(7))) & np.uint8(1) == 1
    return out
