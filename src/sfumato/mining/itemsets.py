"""Frequent itemsets and association rules from perturbed columns of two values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Rows
from sfumato.mining import Miner
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.interval import Interval, half_width
from sfumato.mining.features.contingency import Replaced, axes_of

Items = tuple[str, ...]


class Itemsets(Miner):
    """Frequent itemsets and rules of the original. An item is a column of two values that has the greater one.

    Records that miss an item are left out. The support of a set is a sum over its subsets `S` of what the copy shows
    of them, `Σ_S n(S)·Π_{i∈S} 1/p_i·Π_{i∉S} -(1-p_i)/(2p_i)`: each item's channel inverted. A set is given up when
    its support, and as many standard errors as the confidence asks for, stay below the wanted one.
    """

    reference = "Evfimievski, Srikant, Agrawal and Gehrke 2002; Agrawal and Srikant 1994"

    def __init__(
        self,
        *,
        min_support: float = 0.1,
        min_confidence: float = 0.5,
        max_length: int = 4,
        columns: Sequence[str] | None = None,
        confidence: float = 0.95,
    ) -> None:
        """Say what to look for.

        Args:
            min_support: the share of records that a set must be in.
            min_confidence: the share of records with one side of a rule that have the other.
            max_length: items a set.
            columns: of two values; all of them, if none are named.
            confidence: of the intervals, and of giving up a set.

        """
        self.min_support = min_support
        self.min_confidence = min_confidence
        self.max_length = max_length
        self.columns = columns
        self.confidence = confidence

    def fit(self, copy: Any, y: Any = None) -> Itemsets:  # noqa: ARG002 - scikit-learn's signature
        """Read a copy once for every length of sets; of a coalition's, the best."""
        if not 0 < self.min_support < 1:
            raise MiningError(f"min_support must lie between 0 and 1, got {self.min_support!r}")
        best, self._width = Copy.of(copy), half_width(self.confidence)
        self._axes = _items(best, self.columns)
        self._seen: dict[Items, float] = {(): 0.0}
        self.supports_: dict[Items, Interval] = {}
        level: list[Items] = [(name,) for name in self._axes]
        for length in range(1, self.max_length + 1):
            if not level:
                break
            self._count(best, level)
            supports = {items: self.support(items) for items in level}
            alive = [items for items, support in supports.items() if support.high >= self.min_support]
            self.supports_ |= {items: supports[items] for items in alive}
            level = _longer(set(alive), length)
        if not self._seen[()]:
            raise MiningError("itemsets need records that miss no item, and the copy has none")
        self.itemsets_ = self._itemsets()
        self.rules_ = self._rules()
        return self

    def _count(self, copy: Copy, level: list[Items]) -> None:
        """How often the copy shows all items of each set."""
        total = dict.fromkeys(level, 0.0)
        rows = 0.0
        for table in copy.tables(list(self._axes)):
            shown = {name: _shown(copy, axis, table) for name, axis in self._axes.items()}
            whole = np.logical_and.reduce([codes >= 0 for codes in shown.values()])
            has = {name: whole & (codes == 1) for name, codes in shown.items()}
            rows += float(np.count_nonzero(whole))
            for items in level:
                total[items] += float(np.count_nonzero(np.logical_and.reduce([has[name] for name in items])))
        self._seen |= total | {(): rows}

    def support(self, items: Items) -> Interval:
        """The share of records of the original that have all of some items, each of whose subsets was counted."""
        rows = max(self._seen[()], 1.0)
        share = self._total(items, 1) / rows
        squares = self._total(items, 2) / rows
        error = math.sqrt(max(squares - share, 0.0) / rows)
        return Interval(share, max(share - self._width * error, 0.0), min(share + self._width * error, 1.0))

    def _total(self, items: Items, power: int) -> float:
        """The sum over all records of the set's weight, or of its square."""
        return sum(self._seen[part] * weight for part, weight in _expanded(items, self._weights(items, power)))

    def _weights(self, items: Items, power: int) -> list[tuple[float, float]]:
        """For each item, what a record counts that does not show it, and how much more one that does."""
        out = []
        for name in items:
            axis = self._axes[name]
            absent = -(1 - axis.retention) / (2 * axis.retention)
            out.append((absent**power, (absent + 1 / axis.retention) ** power - absent**power))
        return out

    def _itemsets(self) -> pa.Table:
        """The sets whose support is at least the wanted one, by the estimate."""
        kept = {items: s for items, s in self.supports_.items() if s.estimate >= self.min_support}
        ordered = sorted(kept, key=lambda items: (-kept[items].estimate, items))
        return pa.table(
            {
                "items": pa.array([list(items) for items in ordered], pa.list_(pa.string())),
                "support": pa.array([kept[items].estimate for items in ordered], pa.float64()),
                "low": pa.array([kept[items].low for items in ordered], pa.float64()),
                "high": pa.array([kept[items].high for items in ordered], pa.float64()),
            }
        )

    def _rules(self) -> pa.Table:
        """`if` and `then`, with the confidence of the rule and its lift."""
        found: dict[str, list[Any]] = {"if": [], "then": [], "support": [], "confidence": [], "lift": []}
        kept = {items: s.estimate for items, s in self.supports_.items() if s.estimate >= self.min_support}
        for items, support in kept.items():
            for size in range(1, len(items)):
                for cause in combinations(items, size):
                    effect = tuple(name for name in items if name not in cause)
                    sure = support / max(self.supports_[cause].estimate, support, 1e-12)
                    if sure >= self.min_confidence:
                        lift = sure / max(self.supports_[effect].estimate, 1e-12)
                        for name, value in zip(found, (list(cause), list(effect), support, sure, lift), strict=True):
                            found[name].append(value)
        kinds = [pa.list_(pa.string())] * 2 + [pa.float64()] * 3
        table = pa.table({name: pa.array(v, kind) for (name, v), kind in zip(found.items(), kinds, strict=True)})
        return table.sort_by([("confidence", "descending")])


def _items(copy: Copy, columns: Sequence[str] | None) -> dict[str, Any]:
    """The axis of every item."""
    named = [*copy.replaced, *copy.kept] if columns is None else list(columns)
    axes: dict[str, Any] = {}
    for name in named:
        axis = axes_of(copy, [name])[0]
        two = axis.size == 2 if isinstance(axis, Replaced) else pa.types.is_boolean(copy.source.schema.field(name).type)
        if two and any(set(copy.model(other).columns) & {name} for other in axes if other in copy.replaced):
            raise MiningError(f"{name!r} was replaced together with another item, as one; leave one of them out")
        if two:
            axes[name] = axis
        elif columns is not None:
            raise MiningError(f"an item is a column of two values, and {name!r} is none; leave it out")
    if not axes:
        raise MiningError("at least one column of two values must be there, and this copy has none")
    return axes


def _shown(copy: Copy, axis: Any, table: pa.Table) -> Rows:
    """1 where a record shows the item, 0 where not, -1 where that is missing."""
    if isinstance(axis, Replaced):
        return axis.codes(copy, table)
    shown = table.column(axis.columns[0]).cast(pa.int64()).fill_null(-1).combine_chunks()
    codes: Rows = shown.to_numpy(zero_copy_only=False)
    return codes


def _expanded(items: Items, weights: list[tuple[float, float]]) -> list[tuple[Items, float]]:
    """The product of `absent + more·[shown]` over the items, as a weight for each subset that is shown."""
    terms: list[tuple[Items, float]] = [((), 1.0)]
    for name, (absent, more) in zip(items, weights, strict=True):
        without = [(part, weight * absent) for part, weight in terms]
        terms = without + [((*part, name), weight * more) for part, weight in terms]
    return terms


def _longer(alive: set[Items], length: int) -> list[Items]:
    """Sets of one more item, all of whose subsets are alive (Agrawal and Srikant 1994)."""
    whole = [items for items in alive if len(items) == length]
    joined = {(*one, other[-1]) for one in whole for other in whole if one[:-1] == other[:-1] and one[-1] < other[-1]}
    return sorted(items for items in joined if all(part in alive for part in combinations(items, length)))
