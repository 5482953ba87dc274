"""Margins: the published distribution of a column in bins, and values of any type as intervals of normal scores.

A number counts steps of its column's precision, a category is its index in a published order. A bin is a range of
such integers, all equally wide in the score; a bin of one integer is an atom. Values outside all bins are moved to the
nearest one. The score of a value is known up to the interval that the value has in its bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.kernels import Floats, Mask, Rows, bins
from sfumato.kernels.normal import quantile
from sfumato.kernels.score_arrays import FURTHEST
from sfumato.models.gaussian_copula import GaussianCopula, is_margin
from sfumato.tables import numeric
from sfumato.tables.columns import contiguous
from sfumato.tables.domain import Domain

_NARROW = 1e-3
"""The mean of a score in an interval up to this width is its middle."""


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type has numbers rather than categories."""
    return numeric.is_number(kind) or numeric.is_temporal(kind) or bool(types.is_time(kind))


def plain(array: pa.Array) -> pa.Array:
    """A column without a dictionary, if its values are numbers."""
    coded = types.is_dictionary(array.type) and is_number(array.type.value_type)
    return array.dictionary_decode() if coded else array


def read_numbers(array: pa.Array) -> tuple[Floats, Mask]:
    """The values of a column of numbers or times as doubles, and the mask of nulls: see `numeric.read`."""
    if types.is_time(array.type):
        array = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return numeric.read(array)


@dataclass(frozen=True)
class Cells:
    """The values of a column in the terms of its margin."""

    integers: Rows
    lower: Floats
    """The lower end of each score."""
    upper: Floats
    missing: Mask

    @classmethod
    def of(cls, rows: int, null: Mask) -> Cells:
        """Cells that are still to be filled; `null` has one entry per row, or none where nothing is null."""
        missing = null if null.size or not rows else np.zeros(rows, np.bool_)
        return cls(np.empty(rows, np.int64), np.empty(rows), np.empty(rows), missing)

    @property
    def arrays(self) -> tuple[Rows, Floats, Floats]:
        """What is computed of each value."""
        return self.integers, self.lower, self.upper

    def take(self, rows: slice | Rows) -> Cells:
        """The cells of some rows."""
        return Cells(self.integers[rows], self.lower[rows], self.upper[rows], self.missing[rows])


@dataclass(frozen=True)
class Margin:
    """The distribution of one column."""

    step: float
    """What one integer counts, for numbers."""
    low: tuple[int, ...]
    """The first integer of each bin."""
    high: tuple[int, ...]
    """The last integer of each bin."""
    share: tuple[float, ...]
    """The share of values up to the end of each bin, of those that are not missing."""
    tail: float
    """Which part of the first and of the last bin lies at its outer end, where further values are moved to."""
    min_count: int
    """Every bin has at least so many records; values of fewer are moved to the nearest one."""
    missing: float | None
    """The share of missing values, or none if there are so few that they are replaced."""
    values: tuple[Any, ...] = ()
    """The categories in their order; none for numbers."""
    unseen: int | None = None
    """The index of the category that others count as, or -1 for missing; without one they are refused."""

    @classmethod
    def decode(cls, data: dict[str, Any]) -> Margin:
        """The inverse of `encode`; `ValueError` for what is no margin."""
        if not is_margin(data):
            raise ValueError("a margin has bins that do not overlap, as many shares, which rise to 1, and a step")
        low, high, share = (tuple(data[name]) for name in ("low", "high", "share"))
        names = tuple(data.get("values", ()))
        tail, least = float(data["tail"]), data["min_count"]
        unseen = data.get("unseen")
        if unseen is not None and not (type(unseen) is int and -1 <= unseen < len(names)):
            raise ValueError("a category that a margin lacks counts as one of it, or as missing")
        return cls(float(data["step"]), low, high, share, tail, least, data["missing"], names, unseen)

    def encode(self) -> dict[str, Any]:
        """The margin as JSON."""
        named: dict[str, Any] = {"values": list(self.values)} if self.values else {}
        named |= {} if self.unseen is None else {"unseen": self.unseen}
        bins = {"low": list(self.low), "high": list(self.high), "share": list(self.share)}
        return {
            "step": self.step,
            **bins,
            "tail": self.tail,
            "min_count": self.min_count,
            "missing": self.missing,
            **named,
        }

    def published(self) -> dict[str, Any]:
        """The margin as JSON, without categories that are in no bin: together, too few records have them."""
        values = self.values[: self.high[-1] + 1]
        unseen = None if self.unseen is None else min(self.unseen, len(values) - 1)
        return replace(self, values=values, unseen=unseen).encode()

    def cells(self, array: pa.Array, name: str) -> Cells:
        """The integer of each value within the bins, and the interval of its score."""
        if self.values:
            codes = self._domain.codes(array, name)
            return self.counted(codes, codes < 0)
        values, null = read_numbers(plain(array))
        found = Cells.of(len(values), null)
        values = np.require(values, requirements=["C", "W"])  # else everything is compiled twice
        unusable = bins.to_cells(values, null, self._per_unit, self._bins, self._bin_guide, *found.arrays)
        if unusable:
            raise SourceError(
                f"column {name!r} must hold finite numbers, got {unusable} NaN or infinite values in one batch; clean "
                "them or make them null"
            )
        return found

    def counted(self, integers: Rows, missing: Mask) -> Cells:
        """The same for integers; those between bins are moved to the nearest one."""
        found = Cells.of(len(integers), missing)
        bins.to_cells(integers.astype(np.float64), missing, 1.0, self._bins, self._bin_guide, *found.arrays)
        return found

    def mean_scores(self, cells: Cells) -> Floats:
        """The mean score of each value, `E[z | x]`; NaN where it is missing."""
        return np.where(cells.missing, np.nan, _means(cells.lower, cells.upper))

    def mean_missing_scores(self, missing: Mask) -> Floats:
        """The mean of the score that says whether a value is missing."""
        return _means(*self.missing_interval(missing))

    def missing_interval(self, missing: Mask) -> tuple[Floats, Floats]:
        """The lower and upper end of the score that says whether a value is missing."""
        end = self.missing_end
        return np.where(missing, -FURTHEST, end), np.where(missing, end, FURTHEST)

    def variance(self, integers: Rows, counts: Rows) -> float:
        """The variance of the scores of integers that occur so often."""
        cells = self.counted(integers, np.zeros(len(integers), np.bool_))
        means, squares = _means(cells.lower, cells.upper), _squares(cells.lower, cells.upper)
        total = max(int(counts.sum()), 1)
        return float(squares @ counts / total - (means @ counts / total) ** 2)

    @property
    def missing_end(self) -> float:
        """The score up to which a value is missing."""
        if self.missing is None or self.missing >= 1:
            return FURTHEST if self.missing else -FURTHEST
        return float(quantile(self.missing))

    def groups(self, most: int) -> tuple[Rows, Floats]:
        """The first integers of at most so many groups of bins of about equal shares, and the ends of their scores."""
        before = np.floor(np.array([0.0, *self.share[:-1]]) * most)
        first = np.flatnonzero(np.diff(before, prepend=-1.0)) if len(self.share) > most else np.arange(len(self.share))
        return self._low[first].astype(np.int64), np.array([-FURTHEST, *self._ends[first[1:] - 1], FURTHEST])

    def from_scores(self, scores: Floats) -> Rows:
        """The integer at each score."""
        out = np.empty(len(scores), np.int64)
        bins.from_scores(scores, self._ends, self._bins, self._score_guide, out)
        return out

    def array(self, integers: Rows, missing: Mask, kind: pa.DataType) -> pa.Array:
        """The column of type `kind` that has these integers."""
        kind = self.result_type(kind)
        if self.values:
            return self._domain.array(np.where(missing, 0, integers), missing, kind)
        mask = missing if missing.any() else None
        # three divided by ten is not a tenth times three
        numbers = integers / self._per_unit if self.step < 1 else integers * self.step
        if types.is_floating(kind) or types.is_decimal(kind):
            return pa.array(np.where(missing, 0.0, numbers), mask=mask).cast(kind, safe=False)
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        whole = np.where(missing, 0, integers * round(self.step))
        made = pa.array(whole, mask=mask)
        return made.cast(kind) if types.is_integer(kind) else made.cast(width).cast(kind)

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        """The type of a copy's column: its own; a column of nothing but nulls takes that of its margin."""
        if self.values:
            return self._domain.result_type(kind)
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return pa.date32() if types.is_date64(kind) else pa.float64() if types.is_null(kind) else kind

    @cached_property
    def _domain(self) -> Domain:
        return Domain(values=self.values, count=len(self.values), unseen=self.unseen)

    @cached_property
    def _low(self) -> Floats:
        return np.array(self.low, np.float64)

    @cached_property
    def _high(self) -> Floats:
        return np.array(self.high, np.float64)

    @property
    def _per_unit(self) -> float:
        """How many steps make one unit: an integer for decimals, whose step no double is."""
        inverse = round(1 / self.step)
        return float(inverse) if self.step < 1 and abs(inverse * self.step - 1) < 1e-12 else 1 / self.step

    @cached_property
    def _bins(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self._low, self._high, self._starts, self._widths

    @cached_property
    def _bin_guide(self) -> tuple[Rows, float, float]:
        return bins.guide(self._low)

    @cached_property
    def _score_guide(self) -> tuple[Rows, float, float]:
        return bins.guide(self._ends)

    @cached_property
    def _ends(self) -> Floats:
        """The scores at the ends of all bins but the last."""
        return np.asarray(quantile(np.array(self.share[:-1])))

    @cached_property
    def _starts(self) -> Floats:
        """The score at which each bin starts; the first starts where its outermost values are rare."""
        return np.array([quantile(self.share[0] * self.tail), *self._ends])

    @cached_property
    def _widths(self) -> Floats:
        """The width in the score of each integer of a bin."""
        rest = 1 - (self.share[-2] if len(self.share) > 1 else 0.0)
        ends = np.array([*self._ends, -quantile(rest * self.tail)])
        return (ends - self._starts) / (self._high - self._low + 1)


def scores_of(table: pa.Table, model: GaussianCopula) -> Floats:
    """The mean scores of the values of a table, one row per record, first those of columns, then of missing values."""
    margins = [Margin.decode(data) for data in model.margins]
    arrays = [contiguous(table.column(name)) for name in model.columns]
    known = [known_values(array, margin) for array, margin in zip(arrays, margins, strict=True)]
    cells = [m.cells(array, name) for m, array, name in zip(margins, known, model.columns, strict=True)]
    pairs = list(zip(margins, cells, strict=True))
    scores = [margin.mean_scores(cell) for margin, cell in pairs]
    scores += [margin.mean_missing_scores(cell.missing) for margin, cell in pairs if margin.missing is not None]
    return np.column_stack(scores)


def values_of(scores: Floats, model: GaussianCopula, schema: pa.Schema) -> pa.Table:
    """The values that scores lead to, `(score, row)`, first those of columns, then of missing values."""
    margins, absent = [Margin.decode(data) for data in model.margins], iter(scores[len(model.margins) :])
    arrays = []
    for name, margin, line in zip(model.columns, margins, scores, strict=False):
        gone = np.zeros(len(line), np.bool_) if margin.missing is None else next(absent) <= margin.missing_end
        arrays.append(margin.array(margin.from_scores(line), gone, schema.field(name).type))
    return pa.table(arrays, names=list(model.columns))


def known_values(array: pa.Array, margin: Margin) -> pa.Array:
    """A column without categories that are not published: they count as missing."""
    if not margin.values or types.is_null(array.type):
        return array
    plain = array.dictionary_decode() if types.is_dictionary(array.type) else array
    listed = pa.array(margin.values).cast(plain.type)
    return pc.if_else(pc.is_in(plain, value_set=listed), plain, pa.scalar(None, plain.type))


def shown_scores(scores: Floats, model: GaussianCopula) -> Floats:
    """The mean scores of the values that a copy with these scores shows; NaN where one is missing."""
    margins = [Margin.decode(data) for data in model.margins]
    out = np.full_like(scores, np.nan)
    for i, margin in enumerate(margins):
        there = ~np.isnan(scores[:, i])
        integers = margin.from_scores(scores[there, i])
        out[there, i] = margin.mean_scores(margin.counted(integers, np.zeros(len(integers), np.bool_)))
    for i, margin in enumerate((one for one in margins if one.missing is not None), len(margins)):
        out[:, i] = margin.mean_missing_scores(scores[:, i] <= margin.missing_end)
    return out


def coarsened_scores(scores: Floats, model: GaussianCopula) -> Floats:
    """Scores with additive noise, as a copy shows them: those of its values, which are scores times `√f`."""
    root = math.sqrt(1 + model.noise)
    shown: Floats = shown_scores(scores / root, model) * root
    return shown


def _means(lower: Floats, upper: Floats) -> Floats:
    """The mean of a standard normal number in each interval."""
    narrow = upper - lower < _NARROW
    return np.where(narrow, (lower + upper) / 2, (_density(lower) - _density(upper)) / _mass(lower, upper, narrow))


def _squares(lower: Floats, upper: Floats) -> Floats:
    """The mean square of a standard normal number in each interval."""
    narrow = upper - lower < _NARROW
    inside = (lower * _density(lower) - upper * _density(upper)) / _mass(lower, upper, narrow)
    return np.where(narrow, ((lower + upper) / 2) ** 2, 1 + inside)


def _density(x: Floats) -> Floats:
    height: Floats = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return height


def _mass(lower: Floats, upper: Floats, narrow: Mask) -> Floats:
    """The probability of each interval; 1 for narrow ones, whose mean is their middle."""
    # in the upper tail, precision is in the mirror image
    ndtr = scipy.special.ndtr  # loaded here, by attribute
    mass = np.where(lower > 0, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower))
    return np.where(narrow, 1.0, np.maximum(mass, 1e-300))
