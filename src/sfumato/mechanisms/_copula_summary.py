"""Summaries for the copula mechanism, in three passes: how often values occur, how often they meet, and their scores.

Numbers are counted by their leading bits, as many as give at most `_MOST_VALUES` different ones. The count of all rows
is the same however they are divided, since leading bits of leading bits are leading bits. Two columns are counted
together in groups of their values: the Burt matrix of correspondence analysis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.kernels import Floats, Rows, Words
from sfumato.mechanisms import Summary
from sfumato.mechanisms._gaussian_summary import finite, in_range
from sfumato.tables.margin import is_number, plain, read_numbers

_MOST_VALUES = 1 << 16
"""The most different values of a column that are counted apart."""

_MOST_CATEGORIES = 1 << 12
"""The most categories of a column; a column with more is an identifier, or free text."""

_SIGN = np.uint64(1 << 63)

_LARGEST = 2.0**62
"""The largest number that bins of whole numbers can end at."""

STEPS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many units of a time type make a second."""


@dataclass(frozen=True)
class Precision:
    """The candidates for a column's precision, the coarsest first, and how many values are multiples of each."""

    steps: tuple[float, ...]
    fitting: tuple[int, ...]

    @classmethod
    def of(cls, values: Floats, kind: pa.DataType) -> Precision:
        """The precision of some values."""
        steps = _steps(kind)
        ratios = [values / step if step >= 1 else values * round(1 / step) for step in steps]
        tolerances = [1e-9 * np.maximum(np.abs(ratio), 1.0) for ratio in ratios]
        fits = [np.abs(r - np.rint(r)) <= t for r, t in zip(ratios, tolerances, strict=True)]
        return cls(steps, tuple(int(fit.sum()) for fit in fits))

    def merge(self, other: Precision) -> Precision:
        """The precision of both."""
        return Precision(self.steps, tuple(a + b for a, b in zip(self.fitting, other.fitting, strict=True)))


def _steps(kind: pa.DataType) -> tuple[float, ...]:
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_time(kind):
        second = STEPS_PER_SECOND[kind.unit]
        whole = [86400 * second, 3600 * second, 60 * second, second, second // 10**3, second // 10**6, 1]
        return tuple(float(step) for step in dict.fromkeys(whole) if step)
    coarse = [10.0**digits for digits in range(6, -1, -1)]
    if types.is_integer(kind) or types.is_date(kind):
        return tuple(coarse)
    return (*coarse, *(10.0**-digits for digits in range(1, 7)))


@dataclass(frozen=True)
class Numbers:
    """How often the numbers of a column occur."""

    kind: pa.DataType
    words: Words
    """The leading bits of each value, in the order of the values."""
    counts: Rows
    dropped: int
    """How many bits are left out."""
    precision: Precision
    missing: int

    @classmethod
    def of(cls, array: pa.Array, name: str) -> Numbers:
        """The numbers of some rows."""
        values, null = read_numbers(array)
        finite(values, null, name)
        present = values[~null] if null.size else values
        in_range(present, name)
        if not types.is_floating(array.type) and np.abs(present).max(initial=0.0) >= _LARGEST:
            raise SourceError(f"column {name!r} must hold numbers below 2^62, and some are larger; use a larger unit")
        words, counts = np.unique(_to_words(present), return_counts=True)
        precision = Precision.of(present, array.type)
        return _shortened(cls(array.type, words, counts, 0, precision, len(values) - len(present)))

    def merge(self, other: Numbers) -> Numbers:
        """The counts of both."""
        dropped = max(self.dropped, other.dropped)
        one, two = (_leading(part.words, dropped) for part in (self, other))
        words, counts = _counted(np.concatenate([one, two]), np.concatenate([self.counts, other.counts]))
        missing, precision = self.missing + other.missing, self.precision.merge(other.precision)
        return _shortened(Numbers(self.kind, words, counts, dropped, precision, missing))

    @property
    def present(self) -> int:
        """The number of values."""
        return int(self.counts.sum())

    @property
    def values(self) -> Floats:
        """The values, or the middles of those with the same leading bits."""
        middle = np.uint64((1 << self.dropped) >> 1)
        words = self.words | middle
        bits = np.where(words & _SIGN != 0, words ^ _SIGN, ~words)
        return bits.view(np.float64)


def _shortened(numbers: Numbers) -> Numbers:
    """The counts with as many bits dropped as it takes."""
    words, counts, dropped = numbers.words, numbers.counts, numbers.dropped
    while len(words) > _MOST_VALUES:
        dropped += 1
        words, counts = _counted(_leading(words, dropped), counts)
    return replace(numbers, words=words, counts=counts, dropped=dropped)


@dataclass(frozen=True)
class Categories:
    """How often the categories of a column occur."""

    kind: pa.DataType
    counts: Counter[object]
    missing: int

    @classmethod
    def of(cls, array: pa.Array, name: str) -> Categories:
        """The categories of some rows."""
        plain = array.dictionary_decode() if types.is_dictionary(array.type) else array
        values, counts = pc.value_counts(plain.drop_null()).flatten()
        if not types.is_boolean(values.type):
            values = values.cast(pa.string())
        found: Counter[object] = Counter(dict(zip(values.to_pylist(), counts.to_pylist(), strict=True)))
        if len(found) > _MOST_CATEGORIES:
            raise SourceError(
                f"the role copula needs at most {_MOST_CATEGORIES:,} categories, and column {name!r} has more; give it "
                "the role id or drop, or coarsen it"
            )
        return cls(array.type, found, plain.null_count)

    def merge(self, other: Categories) -> Categories:
        """The counts of both."""
        return Categories(self.kind, self.counts + other.counts, self.missing + other.missing)

    @property
    def present(self) -> int:
        """The number of values."""
        return self.counts.total()


@dataclass(frozen=True, eq=False)
class Occurrences(Summary):
    """First pass: each column by itself."""

    columns: tuple[Numbers | Categories, ...]

    @classmethod
    def of(cls, batch: pa.RecordBatch, names: Sequence[str]) -> Occurrences:
        """The values of some rows."""
        arrays = [(plain(batch.column(name)), name) for name in names]
        return cls(tuple((Numbers if is_number(a.type) else Categories).of(a, name) for a, name in arrays))

    def merge(self, other: Self) -> Self:
        return type(self)(
            tuple(one.merge(two) for one, two in zip(self.columns, other.columns, strict=True))  # type: ignore[arg-type]
        )


@dataclass(frozen=True, eq=False)
class Burt(Summary):
    """Second pass: how often each group of each score meets each group of every other."""

    first: Occurrences
    counts: Rows

    @classmethod
    def of(cls, first: Occurrences, codes: Sequence[Rows], sizes: Sequence[int]) -> Burt:
        """The counts of some rows: the groups of each score, -1 where missing, and how many groups it has."""
        starts = np.concatenate([[0], np.cumsum(sizes)])
        counts = np.zeros((starts[-1], starts[-1]), np.int64)
        for i, one in enumerate(codes):
            for j, other in enumerate(codes[: i + 1]):
                both = (one >= 0) & (other >= 0)
                met = np.bincount(one[both] * sizes[j] + other[both], minlength=sizes[i] * sizes[j])
                block = met.reshape(sizes[i], sizes[j])
                counts[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
                counts[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = block.T
        return cls(first, counts)

    def merge(self, other: Self) -> Self:
        return type(self)(self.first, self.counts + other.counts)


@dataclass(frozen=True)
class Draws(Summary):
    """Third pass: how the scores that are drawn for the records are distributed within the intervals of values."""

    second: Burt
    counts: tuple[Rows, ...]

    def merge(self, other: Self) -> Self:
        return type(self)(self.second, tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)))


def _to_words(values: Floats) -> Words:
    """Integers in the order of the values."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # which makes -0.0 the same as 0.0
    return np.where(bits & _SIGN != 0, ~bits, bits ^ _SIGN)


def _leading(words: Words, dropped: int) -> Words:
    shift = np.uint64(dropped)
    return (words >> shift) << shift


def _counted(words: Words, counts: Rows) -> tuple[Words, Rows]:
    """Sum the counts of equal words."""
    found, where = np.unique(words, return_inverse=True)
    return found, np.bincount(where, counts, minlength=len(found)).astype(np.int64)
