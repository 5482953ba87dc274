"""Pseudonyms of a stated format: identifiers are permuted among all of that format, so that no two get the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.permutation import permuted
from sfumato.policy.formats import Format

Digits = npt.NDArray[np.uint64]
"""For each identifier, the index of each of its characters among those that it may be."""

_LIMB = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_LIMBS = 4
_NONE = 255


def same_format(array: pa.Array, column: str, form: Format, key: Key) -> pa.Array:
    """Other identifiers of the same type and format; nulls stay."""
    known, present = array.drop_null(), np.asarray(array.is_valid())
    plain = known.dictionary_decode() if types.is_dictionary(known.type) else known
    if types.is_integer(plain.type):
        numbers = _whole_numbers(plain, column, form)
        made = pa.array(permuted(np.zeros_like(numbers), numbers, form.size, key)[1], pa.uint64()).cast(plain.type)
    else:
        made = _texts(_permuted(_digits(plain, column, form), form, key), form).cast(plain.type)
    return made if present.all() else made.take(pa.array(np.cumsum(present) - 1, mask=~present))


def check_format(array: pa.Array, column: str, form: Format) -> None:
    """Refuse identifiers of another format."""
    known = array.drop_null()
    plain = known.dictionary_decode() if types.is_dictionary(known.type) else known
    if types.is_integer(plain.type):
        _whole_numbers(plain, column, form)
    else:
        _digits(plain, column, form)


def _whole_numbers(array: pa.Array, column: str, form: Format) -> Words:
    """Whole numbers of up to so many digits."""
    bits = array.type.bit_width - (0 if types.is_unsigned_integer(array.type) else 1)
    if not form.is_number or form.size > 2**bits:
        raise SourceError(
            f"column {column!r} has whole numbers of {bits} bits, and the format {form.text!r} is for texts or longer "
            "ones; state as many 9s as they have digits, or convert the column"
        )
    ends = pc.min_max(array)
    if len(array) and (ends["min"].as_py() < 0 or ends["max"].as_py() >= form.size):
        raise _other(column, form)
    numbers: Words = array.cast(pa.uint64()).to_numpy(zero_copy_only=False)
    return numbers


def _digits(array: pa.Array, column: str, form: Format) -> Digits:
    """The characters of texts, as their indices in the alphabets of a format."""
    if not types.is_string(array.type) and not types.is_large_string(array.type):
        raise SourceError(f"a format is of whole numbers and of texts, and column {column!r} is {array.type}")
    length, texts = len(form.alphabets), array.cast(pa.large_binary())
    if len(texts) and pc.any(pc.not_equal(pc.binary_length(texts), length)).as_py():
        raise _other(column, form)
    characters = np.frombuffer(b"".join(texts.to_pylist()), np.uint8).reshape(len(texts), length)
    found = np.empty(characters.shape, np.uint64)
    for at, alphabet in enumerate(form.alphabets):
        index = np.full(256, _NONE, np.uint64)
        index[np.frombuffer(alphabet, np.uint8)] = np.arange(len(alphabet))
        found[:, at] = index[characters[:, at]]
    if (found == _NONE).any():
        raise _other(column, form)
    return found


def _other(column: str, form: Format) -> SourceError:
    return SourceError(
        f"all identifiers of column {column!r} must have its format {form.text!r}, and some have another; correct the "
        "format, or leave it out"
    )


def _permuted(digits: Digits, form: Format, key: Key) -> Digits:
    """Other identifiers, each taken as one number in a mixed base."""
    limbs = np.zeros((_LIMBS, len(digits)), np.uint64)
    for at, alphabet in enumerate(form.alphabets):
        carried = digits[:, at].copy()
        for limb in limbs[::-1]:
            carried += limb * np.uint64(len(alphabet))
            limb[:] = carried & _LOW
            carried = carried >> _LIMB
    high, low = permuted(_pair(limbs[0], limbs[1]), _pair(limbs[2], limbs[3]), form.size, key)
    limbs = np.stack([high >> _LIMB, high & _LOW, low >> _LIMB, low & _LOW])
    made = np.empty_like(digits)
    for at, alphabet in reversed(list(enumerate(form.alphabets))):
        rest, base = np.zeros(len(digits), np.uint64), np.uint64(len(alphabet))
        for limb in limbs:
            rest = (rest << _LIMB) | limb
            limb[:], rest = rest // base, rest % base
        made[:, at] = rest
    return made


def _texts(digits: Digits, form: Format) -> pa.Array:
    characters = np.empty(digits.shape, np.uint8)
    for at, alphabet in enumerate(form.alphabets):
        characters[:, at] = np.frombuffer(alphabet, np.uint8)[digits[:, at].astype(np.int64)]
    length = len(form.alphabets)
    ends = pa.py_buffer(np.arange(len(digits) + 1, dtype=np.int64) * length)
    return pa.Array.from_buffers(pa.large_string(), len(digits), [None, ends, pa.py_buffer(characters.tobytes())])


def _pair(upper: Words, lower: Words) -> Words:
    return (upper << _LIMB) | lower
