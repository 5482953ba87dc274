"""Public columns as numbers, for attacks: with the parts of codes and texts, and what a time tells of day and week.

A part number such as `HEX-M8x40-A2-0123` tells its size to everybody who reads it, and an hour the time of day.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.kernels import Floats
from sfumato.tables import numeric
from sfumato.tables.columns import contiguous

_PART = re.compile(r"[0-9]+|[^\W\d_]+")
"""A part of a text: digits, or letters."""

_MOST_PARTS = 8
"""The most parts of a text that are looked at."""

_MANY = 50
"""Text of fewer values needs no parts: its values are groups as they are."""

_CALENDAR = (pc.hour, pc.day_of_week, pc.month)
"""What else a moment tells: cycles of days, weeks and years."""


def public_numbers(column: pa.ChunkedArray) -> list[Floats]:
    """A public column as numbers, and its parts as further ones: hashes for words, which distinguish and no more."""
    array = contiguous(column)
    kind = array.type.value_type if types.is_dictionary(array.type) else array.type
    if (numeric.is_number(kind) or numeric.is_temporal(kind)) and not types.is_dictionary(array.type):
        values, null = numeric.read(array)
        found = np.where(null, np.nan, values) if null.size else values
        return [found, *_calendar(array)]
    if types.is_nested(kind):
        return [np.zeros(len(array))]
    encoded = array if types.is_dictionary(array.type) else array.dictionary_encode()
    texts = [str(value) for value in encoded.dictionary.to_pylist()]
    indices = encoded.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy(zero_copy_only=False)
    whole = np.array([_hash(text) for text in texts] + [0.0])
    parts = list(_parts(texts)) if len(texts) > _MANY else []
    is_own = len(texts) > len(array) / 2  # a hash of its own for nearly every record tells nothing
    return [numbers[indices] for numbers in (parts if parts and is_own else [whole, *parts])]


def _calendar(array: pa.Array) -> Iterator[Floats]:
    """The hour, the weekday and the month of moments, where they differ."""
    if not (types.is_timestamp(array.type) or types.is_date(array.type)):
        return
    for read in _CALENDAR[0 if types.is_timestamp(array.type) else 1 :]:
        values = read(array)
        if len(values.unique()) > 1:
            yield np.asarray(values.cast(pa.float64()).fill_null(-1.0))


def _parts(texts: list[str]) -> Iterator[Floats]:
    """The first, the second, ... part of each text, where they differ, and 0 for a missing text."""
    split = [_PART.findall(text)[:_MOST_PARTS] for text in texts]
    for i in range(max(map(len, split), default=0)):
        parts = [found[i] if i < len(found) else "" for found in split]
        if len(set(parts)) > 1:
            yield np.array([float(part[:15]) if part.isdecimal() else _hash(part) for part in parts] + [0.0])


def _hash(text: str) -> float:
    return float(zlib.crc32(text.encode()))
