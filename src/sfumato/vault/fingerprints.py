"""Marks: levels a hair apart, by which the recipients of one named level can be told apart when a copy leaks.

Each recipient's copy lies on the same path, a little beyond the named level, so it is never more faithful, and pooling
several of them yields the best one and no more. Places are dealt out evenly: the first recipients are far apart, later
ones lie halfway between earlier ones.
"""

from __future__ import annotations

import math

from sfumato.errors import GrantError
from sfumato.keys.path import PathTree
from sfumato.levels import Ladder, Level

DIGITS = 32
"""How often a gap between declared levels can be halved where recipients are told apart."""

_PLAIN = 8
"""The digits of levels without a mark."""

MARK_BITS = 16
"""Of the number from which marks are counted after a restoration: those given before it may be forgotten."""

_NARROW = 1e-4
"""A gap that is a smaller part of its level holds no marks that a fidelity, a number of 53 bits, could name."""

BAND = 32
"""Marked copies have at most this part more noise variance than the named level: 3 %."""


def marked(ladder: Ladder, level: Level, mark: int) -> Level:
    """The level of the recipient with this number, counted from 0, among those of a declared level."""
    start, gap, halvings = _band(ladder, list(ladder).index(level))
    if gap < _NARROW * start:
        raise GrantError(
            f"the levels {ladder.name(level)} and the next one lie too near to each other for marks between them; give "
            "a numeric level, or declare them further apart"
        )
    number = mark + 1
    if halvings + number.bit_length() > DIGITS:
        raise GrantError(
            f"no more than {(1 << max(DIGITS - halvings, 0)) - 1} recipients can be told apart at the level "
            f"{ladder.name(level)}; give a numeric level, or declare the next level nearer to it"
        )
    return Level.from_noise(start + gap * _halving(number) / 2**halvings)


def unmarked(ladder: Ladder, level: Level) -> Level:
    """The nearest level to a numeric one that is not more faithful, and is nobody's mark.

    It lies on the grid of 8 digits, so that it takes few draws, and beyond the marks of every declared level.
    """
    given = PathTree(ladder, _PLAIN).locate(level).level
    for place in range(len(ladder)):
        start, gap, halvings = _band(ladder, place)
        end = start + gap / 2**halvings
        if start < given.noise < end:
            return Level.from_noise(end)
    return given


def _band(ladder: Ladder, place: int) -> tuple[float, float, int]:
    """Where the marks of a declared level begin, the gap behind it, and how often it is halved for them."""
    declared = list(ladder)
    start = declared[place].noise
    gap = (declared[place + 1].noise if place + 1 < len(declared) else 2 * start) - start
    return start, gap, max(1, math.ceil(math.log2(gap * BAND / start)))


def _halving(number: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8, ...: the binary digits of a number mirrored at the point (van der Corput 1935)."""
    mirrored = int(f"{number:b}"[::-1], 2)
    return mirrored / float(1 << number.bit_length())
