"""Addressed bits: 128 pseudo-random bits for every (lane, record id, value), with no state and no order.

A lane is one AES-256 key. The bits of a cell are one block, `AES(lane key, record id ‖ value)`: whoever holds the key
can ask for any cell in any order, on any machine, and an unchanged cell has the same bits for ever. Columns that are
blurred together are addressed together, by the record id and all their values.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numba import njit

from sfumato.kernels import Words
from sfumato.keys.key import Key

BLOCK = 16


class Lane:
    """One AES-256 key, ready to encrypt many blocks."""

    def __init__(self, key: Key) -> None:
        # Every block is a distinct address and is used as random bits, never as a message, so that ECB mode is
        # the bare pseudo-random function that is wanted here.
        self._encryptor = Cipher(algorithms.AES(key.expose()), modes.ECB()).encryptor()  # noqa: S305

    def bits(self, addresses: Words) -> Words:
        """The two words of each address `(record id, value)`; addresses and bits are flat, two words a cell."""
        out = np.empty(addresses.nbytes + BLOCK - 1, dtype=np.uint8)  # the interface asks for this slack
        self._encryptor.update_into(addresses.view(np.uint8).data, out.data)
        return out[: addresses.nbytes].view(np.uint64)


@njit(cache=True, nogil=True)
def _absorb(state: Words, first: Words, second: Words) -> None:  # pragma: no cover - compiled
    for row in range(first.shape[0]):
        state[2 * row] ^= first[row]
        state[2 * row + 1] ^= second[row]


class Stream:
    """All lanes of one secret, each made when it is first asked for. One stream serves one thread."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._lanes: dict[str, Lane] = {}

    def addresses(self, rows: Words, values: list[Words]) -> Words:
        """An address for each record, from its id and several of its values: two words a row.

        One value is its own address. More are absorbed two at a time, the last one twice if need be (CBC-MAC over a
        fixed number of words), so that a change of any of them gives another address.
        """
        state = np.empty(2 * len(rows), np.uint64)
        state[::2], state[1::2] = rows, values[0]
        for i in range(1, len(values), 2):
            state = self.bits("record", state)
            _absorb(state, values[i], values[min(i + 1, len(values) - 1)])
        return state

    def bits(self, lane: str, addresses: Words) -> Words:
        """The bits of `addresses` in the lane of that name."""
        found = self._lanes.get(lane)
        if found is None:
            found = self._lanes[lane] = Lane(self._key.derive("lane", lane))
        return found.bits(addresses)
