"""Keyed permutations of the whole numbers below a bound: encryption that preserves a format.

Below a million numbers, all of them are put into a random order, so that no attack is better than guessing. From there
on it is FF1 (NIST SP 800-38G) on strings of bits, with an empty tweak, and numbers beyond the bound are encrypted again
until they are below it. One block of AES per number and round, for all numbers at a time.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.stream import BLOCK, Lane, Stream

MAX_BITS = 128

_SMALL = 1_000_000
"""The fewest numbers that FF1 is for."""

_ROUNDS = 10
_WORD = 64


def permuted(high: Words, low: Words, size: int, key: Key) -> tuple[Words, Words]:
    """Other numbers below `size`, each for one number, given and returned as their upper and lower 64 bits."""
    if not 1 <= size <= 2**MAX_BITS:
        raise ValueError(f"a permutation is of 1 to 2^{MAX_BITS} numbers, got {size}")
    if size < _SMALL:
        return high, _random_order(size, key)[low.astype(np.int64)]
    bits, lane = (size - 1).bit_length(), Lane(key.derive("ff1"))
    last = np.uint64((size - 1) >> _WORD), np.uint64((size - 1) % 2**_WORD)
    high, low = high.copy(), low.copy()
    left = np.arange(len(low))
    while len(left):
        high[left], low[left] = _ff1(high[left], low[left], bits, lane)
        left = left[(high[left] > last[0]) | ((high[left] == last[0]) & (low[left] > last[1]))]
    return high, low


def _random_order(size: int, key: Key) -> Words:
    numbers = np.arange(size, dtype=np.uint64)
    stream = Stream(key)
    words = stream.bits("order", stream.addresses(numbers, [np.zeros(size, np.uint64)]))
    return np.lexsort((words[1::2], words[::2])).astype(np.uint64)


def _ff1(high: Words, low: Words, bits: int, lane: Lane) -> tuple[Words, Words]:
    """FF1.Encrypt of SP 800-38G, Algorithm 7, with radix 2, for strings of some bits."""
    left_bits = bits // 2
    right_bits = bits - left_bits
    width = -(-right_bits // 8)
    taken = 4 * -(-width // 4) + 4  # `d`: at most 12 of the 16 bytes of a block
    head = bytes([1, 2, 1, 0, 0, 2, 10, left_bits % 256]) + bits.to_bytes(4, "big") + bytes(4)
    first = np.frombuffer(lane.block(head), np.uint8)
    left, right = _halves(high, low, right_bits)
    for number in range(_ROUNDS):
        block = np.zeros((len(low), BLOCK), np.uint8)
        block[:, BLOCK - 1 - width] = number
        block[:, BLOCK - width :] = right.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - width :]
        drawn = lane.bits((block ^ first).reshape(-1).view(np.uint64)).view(np.uint8).reshape(-1, BLOCK)
        added = np.ascontiguousarray(drawn[:, taken - 8 : taken]).view(">u8").reshape(-1).astype(np.uint64)
        kept = left_bits if number % 2 == 0 else right_bits
        left, right = right, (left + added) & _mask(kept)
    return _joined(left, right, right_bits)


def _mask(bits: int) -> np.uint64:
    return np.uint64(2**bits - 1)


def _halves(high: Words, low: Words, right_bits: int) -> tuple[Words, Words]:
    """The upper and the lower half of the bits."""
    if right_bits == _WORD:
        return high, low
    shift = np.uint64(right_bits)
    return (low >> shift) | (high << (np.uint64(_WORD) - shift)), low & _mask(right_bits)


def _joined(left: Words, right: Words, right_bits: int) -> tuple[Words, Words]:
    if right_bits == _WORD:
        return left, right
    shift = np.uint64(right_bits)
    return left >> (np.uint64(_WORD) - shift), (left << shift) | right
