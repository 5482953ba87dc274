"""Permutations of whole numbers: FF1 as NIST prints it, and nothing lost or twice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.keys.key import Key
from sfumato.keys.permutation import _ff1, permuted
from sfumato.keys.stream import Lane

KEY = Key.from_bytes(bytes(range(32)))

SAMPLES = [  # of NIST's "FF1 samples": key, tweak, radix, plain and encrypted text
    ("2B7E151628AED2A6ABF7158809CF4F3C", "", 10, "0123456789", "2433477484"),
    ("2B7E151628AED2A6ABF7158809CF4F3C", "39383736353433323130", 10, "0123456789", "6124200773"),
    (
        "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94",
        "",
        10,
        "0123456789",
        "6657667009",
    ),
]


def _reference(key: bytes, tweak: bytes, radix: int, numerals: list[int]) -> list[int]:
    """FF1.Encrypt as SP 800-38G writes it, numeral by numeral."""
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update  # noqa: S305
    n = len(numerals)
    u = n // 2
    v = n - u
    a, b_side = numerals[:u], numerals[u:]
    b = math.ceil(math.ceil(v * math.log2(radix)) / 8)
    d = 4 * math.ceil(b / 4) + 4
    p = bytes([1, 2, 1]) + radix.to_bytes(3, "big") + bytes([10, u % 256])
    p += n.to_bytes(4, "big") + len(tweak).to_bytes(4, "big")
    for i in range(10):
        q = tweak + bytes((-len(tweak) - b - 1) % 16) + bytes([i]) + _number(b_side, radix).to_bytes(b, "big")
        r = bytes(16)
        for at in range(0, len(p + q), 16):
            r = block(bytes(x ^ y for x, y in zip(r, (p + q)[at : at + 16], strict=True)))
        s = r + b"".join(
            block(bytes(x ^ y for x, y in zip(r, j.to_bytes(16, "big"), strict=True)))
            for j in range(1, math.ceil(d / 16))
        )
        m = u if i % 2 == 0 else v
        c = (_number(a, radix) + int.from_bytes(s[:d], "big")) % radix**m
        a, b_side = b_side, _numerals(c, radix, m)
    return a + b_side


def _number(numerals: list[int], radix: int) -> int:
    found = 0
    for one in numerals:
        found = found * radix + one
    return found


def _numerals(number: int, radix: int, length: int) -> list[int]:
    found = []
    for _ in range(length):
        number, rest = divmod(number, radix)
        found.append(rest)
    return found[::-1]


@pytest.mark.parametrize(("key", "tweak", "radix", "plain", "encrypted"), SAMPLES)
def test_the_reference_is_that_of_the_standard(key: str, tweak: str, radix: int, plain: str, encrypted: str) -> None:
    numerals = [int(one, radix) for one in plain]
    found = _reference(bytes.fromhex(key), bytes.fromhex(tweak), radix, numerals)
    assert found == [int(one, radix) for one in encrypted]


@pytest.mark.parametrize("bits", [20, 21, 31, 40, 63, 64, 65, 77, 96, 127, 128])
def test_many_at_a_time_are_as_the_standard_says(bits: int) -> None:
    rng = np.random.default_rng(bits)
    numbers = [int.from_bytes(rng.bytes(16), "big") % 2**bits for _ in range(20)] + [0, 2**bits - 1]
    high = np.array([one >> 64 for one in numbers], np.uint64)
    low = np.array([one % 2**64 for one in numbers], np.uint64)
    made = _ff1(high, low, bits, Lane(KEY.derive("ff1")))
    secret = KEY.derive("ff1").expose()
    for number, upper, lower in zip(numbers, *made, strict=True):
        expected = _number(_reference(secret, b"", 2, _numerals(number, 2, bits)), 2)
        assert (int(upper) << 64) + int(lower) == expected


@pytest.mark.parametrize("size", [1, 2, 10, 9_000, 999_999, 1_000_000, 1_000_003])
def test_every_number_is_hit_once(size: int) -> None:
    numbers = np.arange(size, dtype=np.uint64)
    high, low = permuted(np.zeros(size, np.uint64), numbers, size, KEY)
    assert not high.any()
    assert np.array_equal(np.sort(low), numbers)
    assert size < 10 or (low == numbers).sum() < 20  # a random permutation leaves one number where it was, on average
    other = permuted(np.zeros(size, np.uint64), numbers, size, KEY.derive("other"))[1]
    assert size < 10 or (low == other).sum() < 20


def test_large_bounds_are_kept() -> None:
    for size in (10**19 + 7, 26**20, 2**127 + 1):
        rng = np.random.default_rng(1)
        numbers = [int.from_bytes(rng.bytes(16), "big") % size for _ in range(500)]
        high = np.array([one >> 64 for one in numbers], np.uint64)
        low = np.array([one % 2**64 for one in numbers], np.uint64)
        made = [(int(a) << 64) + int(b) for a, b in zip(*permuted(high, low, size, KEY), strict=True)]
        assert max(made) < size
        assert len(set(made)) == len(set(numbers))
    with pytest.raises(ValueError, match="1 to 2"):
        permuted(high, low, 2**128 + 1, KEY)
