"""Marks: levels a hair apart, by which the recipients of one named level can be told apart when a copy leaks.

Each recipient's copy lies on the same path, a little beyond the named level, so it is never more faithful, and pooling
several of them yields the best one and no more. Places are dealt out evenly: the first recipients are far apart, later
ones lie halfway between earlier ones.
"""

from __future__ import annotations

import math

from sfumato.errors import GrantError
from sfumato.schema.levels import Ladder, Level

DIGITS = 30
"""How often a gap between declared levels can be halved where recipients are told apart."""

BAND = 32
"""Marked copies have at most this part more noise variance than the named level: 3 %."""


def marked(ladder: Ladder, level: Level, mark: int) -> Level:
    """The level of the recipient with this number, counted from 0, among those of a declared level."""
    declared = list(ladder)
    place = declared.index(level)
    start = level.noise
    gap = (declared[place + 1].noise if place + 1 < len(declared) else 2 * start) - start
    halvings = max(1, math.ceil(math.log2(gap * BAND / start)))
    number = mark + 1
    if halvings + number.bit_length() > DIGITS:
        raise GrantError(
            f"no more than {(1 << max(DIGITS - halvings, 0)) - 1} recipients can be told apart at the level "
            f"{ladder.name(level)}; give a numeric level, or declare the next level nearer to it"
        )
    return Level.from_noise(start + gap * _halving(number) / 2**halvings)


def _halving(number: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8, ...: the binary digits of a number mirrored at the point (van der Corput 1935)."""
    mirrored = int(f"{number:b}"[::-1], 2)
    return mirrored / float(1 << number.bit_length())
