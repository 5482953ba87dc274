"""Formats of identifiers, such as `P-99999`: what a pseudonym looks like if the owner states it.

`9` is a digit, `A` and `a` are a capital and a small letter, `x` and `X` are hexadecimal digits; every other character,
and one after a backslash, is itself. All identifiers of a column have its format, so that it tells them not apart.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from sfumato.errors import PolicyError
from sfumato.keys.permutation import MAX_BITS

_KINDS = {
    "9": b"0123456789",
    "A": b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "a": b"abcdefghijklmnopqrstuvwxyz",
    "x": b"0123456789abcdef",
    "X": b"0123456789ABCDEF",
}


@dataclass(frozen=True)
class Format:
    """A format: for each character of an identifier, those that it may be."""

    text: str
    alphabets: tuple[bytes, ...]

    @classmethod
    def of(cls, text: object) -> Format:
        """The format that a policy states."""
        if not isinstance(text, str) or not text.isascii() or not re.fullmatch(r"(?:[^\\]|\\.)+", text):
            raise PolicyError(f'a format is a text such as "P-99999", got {text!r}')
        found = re.findall(r"\\.|[^\\]", text)
        made = cls(text, tuple(_KINDS.get(one, one[-1:].encode()) for one in found))
        if not 1 < made.size <= 2**MAX_BITS:
            raise PolicyError(
                f"a format has up to 38 digits, 27 letters or 32 hexadecimal digits, and at least one, got {text!r}"
            )
        return made

    @property
    def size(self) -> int:
        """The number of identifiers of this format."""
        return math.prod(map(len, self.alphabets))

    @property
    def is_number(self) -> bool:
        """Whether whole numbers have it: digits alone."""
        return all(one == _KINDS["9"] for one in self.alphabets)
