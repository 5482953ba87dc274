"""Pseudonyms that look like the identifiers: digits for digits, letters for letters, all else as it is.

Identifiers of one format, such as `AB-1234`, are permuted among all of that format, so that no two get the same. What
the format is, with every character that is neither letter nor digit, stays to be seen.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.permutation import MAX_BITS, permuted
from sfumato.tables.record_ids import Bytes

_ALPHABETS = (b"0123456789", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")

_LIMB = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_LIMBS = 4


def same_format(array: pa.Array, column: str, key: Key) -> pa.Array:
    """Other identifiers of the same type and formats; nulls stay."""
    plain = array.dictionary_decode() if types.is_dictionary(array.type) else array
    if types.is_integer(plain.type):
        return _whole_numbers(plain, key)
    if not types.is_string(plain.type) and not types.is_large_string(plain.type):
        raise SourceError(f"a format is kept of whole numbers and of texts, and column {column!r} is {plain.type}")
    if pc.any(pc.not_equal(pc.utf8_length(plain), pc.binary_length(plain))).as_py():
        raise SourceError(
            f"a format is kept of the letters a to z and of digits, and column {column!r} has other letters; leave out "
            "`keep_format`"
        )
    filled = plain.fill_null("").cast(pa.large_binary())
    lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False)
    made = np.empty(len(filled), dtype=object)
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        text = b"".join(filled.take(pa.array(chosen)).to_pylist())
        characters = np.frombuffer(text, np.uint8).reshape(len(chosen), length)
        made[chosen] = [row.tobytes().decode() for row in _texts(characters, column, key)]
    return pa.array(made, plain.type, mask=np.asarray(plain.is_null()))


def _whole_numbers(array: pa.Array, key: Key) -> pa.Array:
    """Whole numbers with as many digits, and the same sign."""
    kind = array.type
    limit = 2 ** (kind.bit_width - (0 if types.is_unsigned_integer(kind) else 1)) - 1
    wide = pa.uint64() if types.is_uint64(kind) else pa.int64()
    given = array.fill_null(0).cast(wide).to_numpy(zero_copy_only=False)
    negative = given < 0
    sizes = np.where(negative, -given.astype(np.int64), given.astype(np.int64)).view(np.uint64)
    made = sizes.copy()
    for digits in range(1, 21):
        first = 0 if digits == 1 else 10 ** (digits - 1)
        end = min(10**digits, limit + 1)
        if first >= end:
            break
        chosen = (sizes >= np.uint64(first)) & (sizes <= np.uint64(end - 1))
        low = sizes[chosen] - np.uint64(first)
        secret = key.derive("digits", str(digits))
        made[chosen] = permuted(np.zeros_like(low), low, end - first, secret)[1] + np.uint64(first)
    if (sizes > np.uint64(limit)).any():
        raise SourceError(
            "a format is kept of whole numbers with a sign, and one is the least of its type, without one"
        )
    signed = made if types.is_uint64(kind) else np.where(negative, -made.view(np.int64), made.view(np.int64))
    return pa.array(signed, wide, mask=np.asarray(array.is_null())).cast(kind)


def _texts(characters: Bytes, column: str, key: Key) -> Bytes:
    """Texts of one length, given by their characters."""
    kinds = np.zeros_like(characters)
    for number, alphabet in enumerate(_ALPHABETS, 1):
        kinds[(characters >= alphabet[0]) & (characters <= alphabet[-1])] = number
    formats = np.where(kinds > 0, 127 + kinds, characters)  # no other character has a code above 127
    if not characters.shape[1]:
        return characters
    rows = np.ascontiguousarray(formats).view([("", np.uint8)] * formats.shape[1]).reshape(-1)
    found, of_row = np.unique(rows, return_inverse=True)
    made = characters.copy()
    for number in range(len(found)):
        chosen = np.flatnonzero(of_row == number)
        slots = np.flatnonzero(kinds[chosen[0]])
        alphabets = [_ALPHABETS[kind - 1] for kind in kinds[chosen[0], slots]]
        secret = key.derive("format", formats[chosen[0]].tobytes().hex())
        made[np.ix_(chosen, slots)] = _permuted(characters[np.ix_(chosen, slots)], alphabets, column, secret)
    return made


def _permuted(characters: Bytes, alphabets: list[bytes], column: str, key: Key) -> Bytes:
    """The letters and digits of texts of one format, taken as one number in a mixed base."""
    size = 1
    for alphabet in alphabets:
        size *= len(alphabet)
    if size > 2**MAX_BITS:
        raise SourceError(
            f"a format is kept of up to 27 letters or 38 digits, and column {column!r} has longer texts; leave out "
            "`keep_format`"
        )
    limbs = np.zeros((_LIMBS, len(characters)), np.uint64)
    for at, alphabet in enumerate(alphabets):
        carried = (characters[:, at] - np.uint8(alphabet[0])).astype(np.uint64)
        for limb in limbs[::-1]:
            carried += limb * np.uint64(len(alphabet))
            limb[:] = carried & _LOW
            carried = carried >> _LIMB
    high, low = permuted(_pair(limbs[0], limbs[1]), _pair(limbs[2], limbs[3]), size, key)
    limbs = np.stack([high >> _LIMB, high & _LOW, low >> _LIMB, low & _LOW])
    made = np.empty_like(characters)
    for at, alphabet in reversed(list(enumerate(alphabets))):
        rest, base = np.zeros(len(characters), np.uint64), np.uint64(len(alphabet))
        for limb in limbs:
            rest = (rest << _LIMB) | limb
            limb[:], rest = rest // base, rest % base
        made[:, at] = rest.astype(np.uint8) + np.uint8(alphabet[0])
    return made


def _pair(upper: Words, lower: Words) -> Words:
    return (upper << _LIMB) | lower
