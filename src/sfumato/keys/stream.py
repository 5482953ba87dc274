"""A random-access pseudo-random generator: 128 bits for every (lane, record id, value), without state.

A lane is one AES-256 key. The bits of a cell are one block, `AES(lane key, record id ‖ value)`: the holder of the key
can compute any cell in any order, on any machine, and an unchanged cell always has the same bits. Columns that are
perturbed jointly are addressed jointly, by the record id and all their values.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.kernels import Words
from sfumato.keys.key import Key

BLOCK = 16

RECORD = "record"
"""The lane by which the values of a record are absorbed into its address."""


class Lane:
    """One AES-256 key as a pseudo-random function of addresses."""

    def __init__(self, key: Key) -> None:
        # Every block is a distinct address and is used as random bits, never as a message, so ECB mode is
        # exactly the pseudo-random permutation that is needed here.
        self._encryptor = Cipher(algorithms.AES(key.expose()), modes.ECB()).encryptor()  # noqa: S305
        self.block = self._encryptor.update
        """The 16 random bytes of one address."""

    def bits(self, addresses: Words) -> Words:
        """The random bits of each address `(record id, value)`; both arrays are flat, with two words per cell."""
        out = np.empty(addresses.nbytes + BLOCK - 1, dtype=np.uint8)  # the interface requires this slack
        self._encryptor.update_into(addresses.view(np.uint8).data, out.data)
        return out[: addresses.nbytes].view(np.uint64)


class Stream:
    """All lanes of one secret key, each created on first use. A stream must not be shared between threads."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._lanes: dict[str, Lane] = {}

    def addresses(self, rows: Words, values: list[Words]) -> Words:
        """The address of each record, from its id and some of its values, as two words per row.

        A single value is used as it is. More values are absorbed two at a time, the last one twice if
        their number is even (CBC-MAC over a fixed number of words), so that a change of any value changes the address.
        """
        state = pairs(rows, values[0])
        for i in range(1, len(values), 2):
            state = self.bits(RECORD, state)
            state[::2] ^= values[i]
            state[1::2] ^= values[min(i + 1, len(values) - 1)]
        return state

    def bits(self, lane: str, addresses: Words) -> Words:
        """The random bits of `addresses` in the lane of that name."""
        return self.lane(lane).bits(addresses)

    def lane(self, name: str) -> Lane:
        """The lane of a name."""
        found = self._lanes.get(name)
        if found is None:
            found = self._lanes[name] = Lane(lane_key(self._key, name))
        return found


def lane_key(key: Key, name: str) -> Key:
    """The key of a lane of a stream."""
    return key.derive("lane", name)


def pairs(first: Words, second: Words) -> Words:
    """Addresses of two words each."""
    out = np.empty(2 * len(first), np.uint64)
    out[::2], out[1::2] = first, second
    return out
