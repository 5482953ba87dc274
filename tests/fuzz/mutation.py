"""Mutation of valid inputs: of their bytes, and of the values in JSON and TOML documents."""

from __future__ import annotations

import copy
import json
import math
import tomllib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import tomli_w

Mutator = Callable[[Random], bytes]

UNUSUAL: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 255, 2**31, 2**63, -(2**63), 2**64, 10**400, 0.5, -0.0, 1e308, 5e-324),
    *(math.nan, math.inf, -math.inf, "", " ", "x", "é", "\0", "\ud800", "x" * 3000, "9" * 5000, "../../x", "0x1"),
    *("nan", "1e999", "2030-01-01", "9999-12-31", "gaussian", "keep", "id", [], {}, [[]], [None], [1, "a"], {"": 0}),
    *({"a": {"b": []}}, [0.1] * 50, [["a", "int64"]], "AAAA", "ff" * 32),
)
"""Values that are invalid, extreme or of another type."""

_FRAGMENTS = (
    *(piece.encode() for piece in ('"', "'", "[", "]", "{", "}", "\n", "\r\n", "\0", ",", ":", "=", "#", "\\ud800")),
    *(
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x80",
        b"-" * 40,
        b"9" * 400,
        b"1e999",
        b"PAR1",
        b"ARROW1",
        b"\x1f\x8b\x08",
        bytes(16),
    ),
)


def changed_bytes(rng: Random, content: bytes) -> bytes:
    """The content with a few bytes changed, removed, repeated or inserted."""
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, length = rng.randrange(len(out) + 1), rng.choice((1, 2, 4, 8, 40, 400))
        kind = rng.randrange(7)
        if kind == 0:
            del out[at : at + length]
        elif kind == 1:
            out[at:at] = rng.choice(_FRAGMENTS)
        elif kind == 2:
            out[at:at] = out[at : at + length]
        elif kind == 3:
            out[at : at + length] = rng.randbytes(length)
        elif kind == 4 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 5 and out:
            out[at % len(out)] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 6 and rng.randrange(4) == 0:
            del out[at:]
    return bytes(out)


def changed_document(rng: Random, document: Any) -> Any:
    """A copy of a document with a few values replaced, removed, renamed or moved."""
    out = json.loads(json.dumps(document, default=str))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        holder, key = _position(rng, out)
        if holder is None:
            return unusual(rng)
        kind = rng.randrange(6)
        if kind <= 2:
            holder[key] = unusual(rng)
        elif kind == 3:
            del holder[key]
        elif kind == 4 and isinstance(holder, dict):
            holder[rng.choice((f"{key}x", "", key.upper(), "kind"))] = holder.pop(key)
        else:
            other, name = _position(rng, out)
            if other is not None:
                holder[key] = json.loads(json.dumps(other[name]))
    return out


def unusual(rng: Random) -> Any:
    """A copy of an unusual value."""
    return copy.deepcopy(rng.choice(UNUSUAL))


def _position(rng: Random, document: Any) -> tuple[Any, Any]:
    """A random container in a document, and a key or index in it."""
    holder: Any = None
    key: Any = None
    here = document
    while isinstance(here, dict | list) and here and (holder is None or rng.randrange(3)):
        holder, key = here, rng.choice(list(here)) if isinstance(here, dict) else rng.randrange(len(here))
        here = holder[key]
    return holder, key


def of_bytes(*contents: bytes) -> Mutator:
    """Mutants of some contents."""
    return lambda rng: changed_bytes(rng, rng.choice(contents))


def of_json(*contents: bytes) -> Mutator:
    """Mutants of JSON texts: two thirds are valid JSON."""
    documents = [json.loads(content) for content in contents]

    def mutant(rng: Random) -> bytes:
        if rng.randrange(3) == 0:
            return changed_bytes(rng, rng.choice(contents))
        return json.dumps(changed_document(rng, rng.choice(documents))).encode()

    return mutant


def of_toml(*contents: bytes) -> Mutator:
    """Mutants of TOML texts: two thirds are valid TOML."""
    documents = [tomllib.loads(content.decode()) for content in contents]

    def mutant(rng: Random) -> bytes:
        content = rng.choice(contents)
        if rng.randrange(3) == 0:
            return changed_bytes(rng, content)
        try:
            return tomli_w.dumps(changed_document(rng, rng.choice(documents))).encode()
        except (TypeError, ValueError, AttributeError):  # TOML has no null and no surrogates
            return changed_bytes(rng, content)

    return mutant


def of_text(fragments: Sequence[str], seeds: Sequence[str]) -> Mutator:
    """Short texts: changed ones, and random sequences of fragments."""

    def mutant(rng: Random) -> bytes:
        if rng.randrange(2):
            return changed_bytes(rng, rng.choice(seeds).encode())
        return "".join(rng.choice(fragments) for _ in range(rng.randrange(12))).encode()

    return mutant
