"""Relations of categories with each other and with numbers, corrected for the perturbation, with intervals.

Counts and sums by category are inverted as everywhere (xiao2009, eq. 1), and the copy is divided into parts, each of
which is left out once: how the result then varies gives its standard error, and its bias (jackknife; Shao and Wu 1989).
Nothing is assumed of the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.kernels import Floats, Rows
from sfumato.kernels.intervals import Interval
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.report.estimates import Pair
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.tables.columns import contiguous

_PARTS = 40
"""The parts of the copy of which each is left out once."""

_LARGEST = 60
"""The most categories of a column."""

_MOST = 24
"""The most columns of each kind."""

_RARE = 0.02
"""Categories with a smaller share of the records are taken together."""

_CLEAR = 5.0
"""Standard errors of its count that a category must have to be distinguished."""


@dataclass(frozen=True)
class Attribute:
    """A column of categories, perturbed or released unchanged."""

    name: str
    size: int
    model: UniformReplacement | None = None
    """How it was perturbed."""
    values: pa.Array | None = None
    """Its categories, if it was released unchanged."""

    @classmethod
    def of(cls, copy: Copy, name: str, values: pa.Array | None = None) -> Attribute:
        """A column of a copy, with its categories where the model does not tell them."""
        whole = copy.replacement_model(name)
        model = None if whole is None else whole.narrowed([name])
        return cls(name, model.size if model else len(values) if values is not None else 0, model, values)

    @property
    def retention(self) -> float:
        """The probability that a category was retained."""
        return 1.0 if self.model is None else self.model.retention

    def codes(self, copy: Copy, table: pa.Table) -> Rows:
        """The categories of some rows as codes; -1 where missing."""
        if self.model is not None:
            return copy.codes(table, self.model)
        codes = pc.index_in(contiguous(table.column(self.name)), value_set=self.values)
        return np.asarray(codes.cast(pa.int64()).fill_null(-1))


@dataclass(frozen=True)
class _Layout:
    """The columns whose relations are estimated."""

    numbers: tuple[str, ...]
    attributes: tuple[Attribute, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of categories."""
        return list(combinations(range(len(self.attributes)), 2))


_Sums = tuple[list[Floats], list[Floats]]
"""Of each pair of categories the counts; of each category the counts, sums and squares of each number; by part."""


def relations(copy: Copy, attributes: Sequence[Attribute], numbers: Sequence[str], confidence: float) -> list[Pair]:
    """How strongly categories are related with each other (Cramér's V), and with numbers (correlation ratio)."""
    usable = [one for one in attributes if 1 < one.size <= _LARGEST and not copy.model(one.name).entity_column][:_MOST]
    layout = _Layout(tuple(n for n in numbers if not copy.model(n).entity_column)[:_MOST], tuple(usable))
    if not usable:
        return []
    names = [*layout.numbers, *(attribute.name for attribute in usable)]
    counts, sums = copy.fold(names, partial(_sums, layout=layout), _added)
    critical, found = critical_value(confidence), []
    for (i, j), table in zip(layout.pairs, counts, strict=True):
        one, other = usable[i], usable[j]
        interval = _v(table, one, other, joint=_is_joint(copy, one, other), critical=critical)
        found.append(Pair(one.name, other.name, interval, measure="Cramér's V"))
    for attribute, own in zip(usable, sums, strict=True):
        for k, name in enumerate(layout.numbers):
            noise = float(copy.noise_covariance([name])[0, 0])
            interval = _ratio(own[:, k], attribute, noise, critical)
            found.append(Pair(attribute.name, name, interval, measure="correlation ratio"))
    return found


def _sums(copy: Copy, tables: Iterable[pa.Table], *, layout: _Layout) -> _Sums:
    """The sums of a stream of tables."""
    sizes = [attribute.size for attribute in layout.attributes]
    counts = [np.zeros((_PARTS, sizes[i], sizes[j])) for i, j in layout.pairs]
    sums = [np.zeros((_PARTS, len(layout.numbers), 3, size)) for size in sizes]
    first = 0
    for table in tables:
        part = (first + np.arange(table.num_rows)) % _PARTS
        first += table.num_rows
        codes = [attribute.codes(copy, table) for attribute in layout.attributes]
        for pair, (i, j) in enumerate(layout.pairs):
            both = np.flatnonzero((codes[i] >= 0) & (codes[j] >= 0))
            counts[pair] += _counted((part[both], codes[i][both], codes[j][both]), counts[pair].shape)
        values = copy.values(table, layout.numbers) if layout.numbers else np.empty((table.num_rows, 0))
        for index, own in enumerate(codes):
            for k, column in enumerate(values.T):
                there = np.flatnonzero((own >= 0) & ~np.isnan(column))
                at = part[there], own[there]
                for power in range(3):
                    sums[index][:, k, power] += _counted(at, (_PARTS, sizes[index]), column[there] ** power)
    return counts, sums


def _counted(indices: tuple[Rows, ...], shape: tuple[int, ...], weights: Floats | None = None) -> Floats:
    flat = np.ravel_multi_index(indices, shape)
    return np.bincount(flat, weights, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def _added(one: _Sums, other: _Sums) -> _Sums:
    first, second = ([a + b for a, b in zip(*parts, strict=True)] for parts in zip(one, other, strict=True))
    return first, second


def _is_joint(copy: Copy, one: Attribute, other: Attribute) -> bool:
    """Whether two categories were retained or replaced together."""
    model = copy.replacement_model(one.name)
    return model is not None and other.name in model.columns


def _inverted(shown: Floats, attribute: Attribute, axis: int) -> Floats:
    """Counts or sums by the original's category, from those by the category shown."""
    everything = shown.sum(axis=axis, keepdims=True)
    retention = attribute.retention
    found: Floats = (shown - (1 - retention) / attribute.size * everything) / retention
    return found


def _groups(counts: Floats, attribute: Attribute) -> Floats:
    """Which categories are distinguished, one line each, and the rest together: those of few records are not known.

    Args:
        counts: the estimated number of records of each category of the original.
        attribute: the column.

    """
    replaced = (1 - attribute.retention) / attribute.size
    error = math.sqrt(max(counts.sum(), 1.0) * replaced * (1 - replaced)) / attribute.retention
    least = max(_RARE * counts.sum(), _CLEAR * error)
    rare = counts < least
    lines = np.eye(len(counts))[~rare]
    found: Floats = np.vstack([lines, rare]) if counts[rare].sum() >= least else lines
    return found


def _v(counts: Floats, one: Attribute, other: Attribute, *, joint: bool, critical: float) -> Interval:
    """Cramér's V of two columns of categories, from counts of what is shown, by part."""

    def original(shown: Floats) -> Floats:
        if joint:
            found: Floats = (shown - (1 - one.retention) / shown.size * shown.sum()) / one.retention
            return found
        return _inverted(_inverted(shown, one, 0), other, 1)

    whole = original(counts.sum(axis=0))
    rows, columns = _groups(whole.sum(axis=1), one), _groups(whole.sum(axis=0), other)
    least = min(len(rows), len(columns)) - 1
    if least < 1:
        return Interval(0.0, 0.0, 1.0)

    def share(shown: Floats) -> float:
        table = rows @ original(shown) @ columns.T
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        return float(((table - expected) ** 2 / expected).sum() / table.sum() / least)

    return _jackknifed(share, counts, (len(rows) - 1) * (len(columns) - 1), critical)


def _ratio(sums: Floats, attribute: Attribute, noise: float, critical: float) -> Interval:
    """The correlation ratio of a category and a number, from counts, sums and squares by what is shown, by part."""
    groups = _groups(_inverted(sums[:, :1].sum(axis=0), attribute, 1)[0], attribute)
    if len(groups) < 2:
        return Interval(0.0, 0.0, 1.0)

    def share(shown: Floats) -> float:
        rows, first, second = shown.sum(axis=1)
        variance = second / rows - (first / rows) ** 2 - noise
        counts, totals = _inverted(shown[:2], attribute, 1) @ groups.T
        between = (totals**2 / counts).sum() / rows - totals.sum() ** 2 / counts.sum() / rows
        return float(between / variance) if variance > 0 else 0.0

    return _jackknifed(share, sums, len(groups) - 1, critical)


def _jackknifed(share: Callable[[Floats], float], sums: Floats, freedom: int, critical: float) -> Interval:
    """The root of a share of variance with its interval, by leaving out one part after the other.

    Of unrelated columns, the bias is what sampling error adds, a sum of as many squares as there are degrees of
    freedom, which varies by itself.
    """
    total = sums.sum(axis=0)
    whole, parts = share(total), np.array([share(total - one) for one in sums])
    bias = (_PARTS - 1) * (parts.mean() - whole)
    reach = critical * math.sqrt((_PARTS - 1) * parts.var() + 2 * bias**2 / freedom)
    ends = (whole - bias, whole - bias - reach, whole - bias + reach)
    return Interval(*(math.sqrt(min(max(end, 0.0), 1.0)) for end in ends))
