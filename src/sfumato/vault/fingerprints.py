"""Fingerprinted levels for traitor tracing: each recipient of a named level gets a slightly different fidelity.

Each recipient's copy lies on the same path, with slightly more noise than the named level: it is never more faithful,
and combining several fingerprinted copies adds no information to the best one. Fingerprints are spread evenly: those of
the first recipients are far apart, and later ones lie halfway between earlier ones.
"""

from __future__ import annotations

import math
import secrets

from sfumato.errors import GrantError
from sfumato.keys.path import PathTree
from sfumato.levels import Ladder, Level

DIGITS = 32
"""How often a gap between declared levels can be halved in a dataset with fingerprinted copies."""

_PLAIN_DIGITS = 8
"""How often a gap is halved for a level without a fingerprint."""

_OFFSET_BITS = 16
"""Bits of the offset of fingerprint numbers after a restoration, which leave 16 of the digits to wide gaps."""

_NARROW = 1e-4
"""The smallest gap, relative to its level, whose fingerprints a fidelity of 53 bits can represent."""

BAND = 32
"""Fingerprinted copies have at most 1/32 (3 %) more noise variance than the named level."""


def fingerprinted(ladder: Ladder, level: Level, number: int) -> Level:
    """The fingerprinted level of the recipient with this number (counted from 0) at a declared level."""
    start, gap, halvings = _band(ladder, list(ladder).index(level))
    if gap < _NARROW * start:
        raise GrantError(
            f"the levels {ladder.name(level)} and the next one are too close for fingerprints between them; grant "
            "a numeric level, or declare them further apart"
        )
    index = number + 1
    if halvings + index.bit_length() > DIGITS:
        raise GrantError(
            f"no more than {(1 << max(DIGITS - halvings, 0)) - 1} recipients can have fingerprints at the level "
            f"{ladder.name(level)}; grant a numeric level, or declare the next level closer to it"
        )
    return Level.from_noise(start + gap * _van_der_corput(index) / 2**halvings)


def random_offset() -> int:
    """The offset of fingerprint numbers after a restoration, since the backup may lack the latest ones.

    Its first bit is 1, so that it exceeds the numbers of the first 32,767 recipients; the others are random, so that
    two restorations of one backup are unlikely to give out the same numbers.
    """
    first_bit = 1 << (_OFFSET_BITS - 1)
    return first_bit + secrets.randbits(_OFFSET_BITS - 1)


def without_fingerprint(ladder: Ladder, level: Level) -> Level:
    """The closest level to a numeric one that is not more faithful and is no recipient's fingerprint.

    It is on the grid of 8 digits, so that it takes few draws, and outside the fingerprint band of all declared levels.
    """
    given = PathTree(ladder, _PLAIN_DIGITS).locate(level).level
    for index in range(len(ladder)):
        start, gap, halvings = _band(ladder, index)
        end = start + gap / 2**halvings
        if start < given.noise < end:
            return Level.from_noise(end)
    return given


def _band(ladder: Ladder, index: int) -> tuple[float, float, int]:
    """The noise of a declared level, the gap to the next level, and how often that gap is halved for the band."""
    declared = list(ladder)
    start = declared[index].noise
    gap = (declared[index + 1].noise if index + 1 < len(declared) else 2 * start) - start
    return start, gap, max(1, math.ceil(math.log2(gap * BAND / start)))


def _van_der_corput(number: int) -> float:
    """The sequence 1/2, 1/4, 3/4, 1/8, 5/8, ...: binary digits mirrored at the point (van der Corput 1935)."""
    mirrored = int(f"{number:b}"[::-1], 2)
    return mirrored / float(1 << number.bit_length())
