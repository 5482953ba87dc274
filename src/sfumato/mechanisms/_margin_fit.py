"""Margins from counts of values: bins of enough records, with round ends, and shares rounded once.

Nothing in a margin depends on few records, but for the names of rare categories, where there are many of them. An end
between two bins is the roundest number between two quantiles that are many records apart, the first and the last end
lie inside the table's range with several records beyond them, a value stands by itself only if it occurs often, and
cumulative shares are multiples of at least 16 records (`_published_statistics`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.kernels import Floats, Rows
from sfumato.kernels.lattice import LARGEST
from sfumato.mechanisms._copula_summary import STEPS_PER_SECOND, Categories, Numbers, Precision
from sfumato.mechanisms._published_statistics import bits
from sfumato.tables.margin import Margin

_MOST_ATOMS = 1024
"""A value is an atom if it holds at least this part of the records, and the minimum."""

_MOST_GROUPS = 256
"""The most categories of a column that have bins of their own."""

_MISFITS = 1000
"""At most one of so many values may lie between the multiples of a column's precision."""

_FINENESS = 12
"""Numbers without a precision of their own have at least `2^12` steps in a bin of average width."""


_TAILS = tuple(2 ** (half / 2) for half in range(-10, -3))
"""The parts of the outer bins that may lie at their ends: half powers of two, so that few records change none."""

_VARIANCE = 1.01
"""The largest variance of the scores of a column: what noise is made for, and a little."""


@dataclass(frozen=True)
class Detail:
    """What the policy says about the margin of a column."""

    bins: int = 100
    min_count: int = 32
    bottom: float | None = None
    """Smaller values are moved here."""
    top: float | None = None
    """Larger values are moved here."""


def number_margin(column: Numbers, detail: Detail) -> Margin:
    """The margin of a column of numbers."""
    values, counts, total = column.values, column.counts, column.present
    values = np.clip(
        values,
        -math.inf if detail.bottom is None else detail.bottom,
        math.inf if detail.top is None else detail.top,
    )
    share = missing_share(column.missing, total, detail)
    if total < 2 * detail.min_count:
        return _unknown(column, values, detail, share)
    step = _step(column.precision, values, counts, detail)
    integers, counts = _summed(np.rint(values / step).astype(np.int64), counts)
    frequent = counts >= max(detail.min_count, total / _MOST_ATOMS)
    atoms = integers[frequent]
    bins = [(int(atom), int(atom)) for atom in atoms]
    for low, high in pairwise([-(1 << 62), *atoms.tolist(), 1 << 62]):
        inside = (integers > low) & (integers < high)
        bins += _segment(integers[inside], counts[inside], total, step, detail)
    return _with_shares(sorted(bins), integers, counts, step, share, detail)


def category_margin(column: Categories, detail: Detail, groups: Sequence[Sequence[object]]) -> Margin:
    """The margin of categories in groups, which are in their order; the categories of a group share a bin."""
    values = tuple(value for group in groups for value in group)
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    counts = np.array([column.counts[value] for value in values], np.int64)
    held = np.add.reduceat(counts, starts[:-1])
    bins = [(first, last - 1) for i, (first, last) in enumerate(pairwise(starts)) if held[i] >= detail.min_count]
    bins = bins or [(0, len(values) - 1)]
    share = missing_share(column.missing, column.present, detail)
    made = _with_shares(bins, np.arange(len(values)), counts, 1.0, share, detail)
    return replace(made, values=values)


def category_groups(column: Categories, detail: Detail) -> list[list[object]]:
    """The categories by name, each in a group of its own; those with few records are the last group.

    If they are too few together, they are in no bin, and are moved to the nearest one.
    """
    names: list[object] = [False, True] if types.is_boolean(column.kind) else sorted(column.counts, key=str)
    if len(column.counts) > _MOST_GROUPS:
        least = max(detail.min_count, sorted(column.counts.values())[-_MOST_GROUPS])
    else:
        least = detail.min_count
    groups = [[name] for name in names if column.counts[name] >= least]
    rare = [name for name in names if column.counts[name] < least]
    return [*groups, rare] if rare else groups or [[""]]


def ordered_groups(column: Categories, detail: Detail, order: Sequence[object]) -> list[list[object]]:
    """The categories in a given order, each in a group of its own; neighbours with few records share one."""
    rare = [column.counts[name] < detail.min_count for name in order]
    groups: list[list[object]] = []
    for i, name in enumerate(order):
        if i and rare[i] and rare[i - 1]:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def missing_share(missing: int, present: int, detail: Detail) -> float | None:
    """The share of missing values, rounded; none if they are so few that they are replaced."""
    rows = missing + present
    if missing < detail.min_count:
        return None if present or not missing else 1.0
    return _rounded(missing / rows, rows) or None


def _rounded(share: float, rows: int) -> float:
    grid = 2 ** bits(rows)
    return float(round(share * grid) / grid)


def _step(precision: Precision, values: Floats, counts: Rows, detail: Detail) -> float:
    """The coarsest precision that nearly all values have, else a power of two that is fine enough for all bins."""
    total = int(counts.sum())
    for step, fitting in zip(precision.steps, precision.fitting, strict=True):
        if total - fitting <= total / _MISFITS and np.abs(values).max() / step <= LARGEST:
            return step
    low, high = _quantile(values, counts, total // 8), _quantile(values, counts, total - total // 8)
    spread = (high - low) / detail.bins or max(abs(low), abs(high), 1.0) / detail.bins
    fine = math.ldexp(1.0, math.frexp(spread)[1] - 1 - _FINENESS)
    return max(fine, math.ldexp(1.0, math.frexp(float(np.abs(values).max()))[1] - 52))


def _segment(integers: Rows, counts: Rows, total: int, step: float, detail: Detail) -> list[tuple[int, int]]:
    """Bins of values none of which is frequent; none where they are too few together."""
    inside, least = int(counts.sum()), detail.min_count
    if inside < least:
        return []
    values = integers.astype(np.float64) * step
    beyond = least // 4
    wanted = max(1, min(round(inside / (total / detail.bins)), inside // (2 * least)))
    ranks = [(beyond, 2 * beyond)]
    for edge in range(1, wanted):
        middle, window = edge * inside / wanted, inside / (8 * wanted)
        ranks.append((int(middle - window), int(middle + window)))
    ranks.append((inside - 2 * beyond, inside - beyond))
    edges = [
        round(roundest(_quantile(values, counts, first), _quantile(values, counts, last)) / step)
        for first, last in ranks
    ]
    *starts, end = sorted(set(edges))
    starts = starts or [end]
    return list(zip(starts, [*(start - 1 for start in starts[1:]), end], strict=True))


def _quantile(values: Floats, counts: Rows, rank: int) -> float:
    """The value of that rank, among values in order that occur so often."""
    ranks = np.cumsum(counts)
    return float(values[min(int(np.searchsorted(ranks, rank, side="right")), len(values) - 1)])


def roundest(low: float, high: float) -> float:
    """The number with the fewest digits between two others: 1, 2 or 5 times a power of ten, times an integer."""
    if low >= high:
        return low
    for exponent in range(math.floor(math.log10(max(abs(low), abs(high), high - low))) + 1, -324, -1):
        for digit in (5, 2, 1):
            multiple = math.ceil(low / (digit * 10.0**exponent))
            rounded = float(f"{multiple * digit}e{exponent}")
            if low <= rounded <= high:
                return rounded
    return low


def _with_shares(
    bins: list[tuple[int, int]], integers: Rows, counts: Rows, step: float, missing: float | None, detail: Detail
) -> Margin:
    """The margin with these bins: values outside are counted in the nearest, and bins without a share are left out."""
    total = int(counts.sum())
    while True:
        low, high = zip(*bins, strict=True)
        even = tuple((i + 1) / len(bins) for i in range(len(bins)))
        unchecked = Margin(step, low, high, even, _TAILS[0], detail.min_count, missing)
        which = (
            np.searchsorted(
                np.array(low), unchecked.counted(integers, np.zeros(len(integers), np.bool_)).integers, side="right"
            )
            - 1
        )
        held = np.bincount(which, counts, minlength=len(bins))
        if len(bins) == 1 or held.min() >= detail.min_count:
            break
        del bins[int(held.argmin())]
    shares = [_rounded(share, total) for share in np.cumsum(held) / max(total, 1)]
    shares[-1] = 1.0
    rising = [i for i, share in enumerate(shares) if share > (shares[i - 1] if i else 0.0)]
    low, high = zip(*(bins[i] for i in rising), strict=True)
    made = Margin(step, low, high, tuple(shares[i] for i in rising), _TAILS[0], detail.min_count, missing)
    return _with_tail(made, integers, counts)


def _with_tail(margin: Margin, integers: Rows, counts: Rows) -> Margin:
    """The margin with the shortest tails with which scores vary no more than the noise was made for.

    In a small table, bins are wide, and a good part of the first and the last one lies at its outer end.
    """
    made = (replace(margin, tail=tail) for tail in _TAILS)
    return next((one for one in made if one.variance(integers, counts) <= _VARIANCE), replace(margin, tail=_TAILS[-1]))


def _unknown(column: Numbers, values: Floats, detail: Detail, missing: float | None) -> Margin:
    """A margin for too few values to publish anything: one bin, to the next power of 16 beyond all of them."""
    largest = float(np.abs(values).max(initial=0.0))
    end = math.ldexp(1.0, math.ceil(math.frexp(largest)[1] / 4) * 4) if largest else 1.0
    least, most = _limits(column.kind)
    low = max(-end, least) if detail.bottom is None else detail.bottom
    high = min(end, most) if detail.top is None else detail.top
    finest = column.precision.steps[-1]
    step = finest if finest >= 1 else math.ldexp(1.0, math.frexp(end)[1] - 1 - 2 * _FINENESS)
    first, last = math.ceil(low / step), math.floor(high / step)
    return Margin(step, (first,), (max(first, last),), (1.0,), _TAILS[-1], detail.min_count, missing)


def _limits(kind: pa.DataType) -> tuple[float, float]:
    """The least and the largest number that a column of this type can hold."""
    if types.is_time(kind):
        return 0.0, 86_400.0 * STEPS_PER_SECOND[kind.unit] - 1
    if types.is_decimal(kind):
        most = 10.0 ** (kind.precision - kind.scale) - 10.0**-kind.scale
        return -most, most
    if types.is_floating(kind) or not hasattr(kind, "bit_width"):
        return -math.inf, math.inf
    most = math.ldexp(1.0, min(kind.bit_width - (0 if types.is_unsigned_integer(kind) else 1), 62)) - 1
    return (0.0 if types.is_unsigned_integer(kind) else -most), most


def _summed(integers: Rows, counts: Rows) -> tuple[Rows, Rows]:
    found, where = np.unique(integers, return_inverse=True)
    return found, np.bincount(where, counts, minlength=len(found)).astype(np.int64)
