"""Frequent itemsets and association rules of the original, from perturbed binary columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Rows
from sfumato.kernels.intervals import Interval
from sfumato.mining import Miner
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.features.contingency import Factor, factors_of

Items = tuple[str, ...]


class Itemsets(Miner):
    """Frequent itemsets and association rules of the original. An item is a binary column that has its greater value.

    Records with a missing item are left out. The support of a set inverts the perturbation of each item: it is the sum
    over its subsets `S` of the copy's counts, `Σ_S n(S)·Π_{i∈S} 1/p_i·Π_{i∉S} -(1-p_i)/(2p_i)`. A set is pruned only if
    the upper end of its support's confidence interval is below the minimum support.
    """

    reference = "Evfimievski, Srikant, Agrawal and Gehrke 2002; Agrawal and Srikant 1994"
    example = {"min_support": 0.05}

    def __init__(
        self,
        *,
        min_support: float = 0.1,
        min_confidence: float = 0.5,
        max_length: int = 4,
        columns: Sequence[str] | None = None,
        confidence: float = 0.95,
    ) -> None:
        """Set the parameters.

        Args:
            min_support: the least share of records that contain all items of a set.
            min_confidence: the least confidence of a rule: the share of records with its antecedent that also have its
                consequent.
            max_length: the largest number of items in a set.
            columns: the binary columns; all of them by default.
            confidence: the confidence level of the intervals, and of pruning.

        """
        self.min_support = min_support
        self.min_confidence = min_confidence
        self.max_length = max_length
        self.columns = columns
        self.confidence = confidence

    def fit(self, copy: Any, y: Any = None) -> Itemsets:  # noqa: ARG002 - scikit-learn's signature
        """Mine a copy, or the most faithful of several; the copy is read once for every length of sets."""
        if not 0 < self.min_support < 1:
            raise MiningError(f"min_support must lie between 0 and 1, got {self.min_support!r}; 0.1 is usual")
        critical_value(self.confidence)  # refuses what is none
        best = Copy.of(copy)
        self._factors = _item_factors(best, self.columns)
        self._critical_value = critical_value(self.confidence, best.design_effect(best.column_names))
        self._counts: dict[Items, float] = {(): 0.0}
        self.supports_: dict[Items, Interval] = {}
        candidates: list[Items] = [(name,) for name in self._factors]
        for length in range(1, self.max_length + 1):
            if not candidates:
                break
            self._count(best, candidates)
            supports = {items: self.support(items) for items in candidates}
            possible = [items for items, support in supports.items() if support.high >= self.min_support]
            self.supports_ |= {items: supports[items] for items in possible}
            candidates = _extended(set(possible), length)
        if not self._counts[()]:
            raise MiningError("itemsets need records without missing items, and the copy has none; use other columns")
        self.itemsets_ = self._itemsets()
        self.rules_ = self._rules()
        return self

    def _count(self, copy: Copy, candidates: list[Items]) -> None:
        """Count the records of the copy that contain all items of each set."""
        total = dict.fromkeys(candidates, 0.0)
        rows = 0.0
        for table in copy.tables(list(self._factors)):
            codes = {name: _item_codes(copy, factor, table) for name, factor in self._factors.items()}
            complete = np.logical_and.reduce([code >= 0 for code in codes.values()])
            contains = {name: complete & (code == 1) for name, code in codes.items()}
            rows += float(np.count_nonzero(complete))
            for items in candidates:
                total[items] += float(np.count_nonzero(np.logical_and.reduce([contains[name] for name in items])))
        self._counts |= total | {(): rows}

    def support(self, items: Items) -> Interval:
        """The share of the original's records that contain all items of a set, each of whose subsets was counted."""
        rows = max(self._counts[()], 1.0)
        share = self._total(items, 1) / rows
        squares = self._total(items, 2) / rows
        reach = self._critical_value * math.sqrt(max(squares - share, 0.0) / rows)
        return Interval(share, max(share - reach, 0.0), min(share + reach, 1.0))

    def _total(self, items: Items, power: int) -> float:
        """The sum over all records of the set's weight, or of its square."""
        return sum(self._counts[part] * weight for part, weight in _subset_weights(items, self._weights(items, power)))

    def _weights(self, items: Items, power: int) -> list[tuple[float, float]]:
        """For each item, the weight of a record without it, and the difference of that of a record with it."""
        out = []
        for name in items:
            retention = self._factors[name].retention
            absent = -(1 - retention) / (2 * retention)
            out.append((absent**power, (absent + 1 / retention) ** power - absent**power))
        return out

    def _itemsets(self) -> pa.Table:
        """The sets whose estimated support is at least the minimum, the most frequent first."""
        frequent = {items: s for items, s in self.supports_.items() if s.estimate >= self.min_support}
        ordered = sorted(frequent, key=lambda items: (-frequent[items].estimate, items))
        return pa.table(
            {
                "items": pa.array([list(items) for items in ordered], pa.list_(pa.string())),
                "support": pa.array([frequent[items].estimate for items in ordered], pa.float64()),
                "low": pa.array([frequent[items].low for items in ordered], pa.float64()),
                "high": pa.array([frequent[items].high for items in ordered], pa.float64()),
            }
        )

    def _rules(self) -> pa.Table:
        """The association rules between disjoint parts of frequent sets, the most confident first."""
        columns: dict[str, list[Any]] = {
            "antecedent": [],
            "consequent": [],
            "support": [],
            "confidence": [],
            "lift": [],
        }
        frequent = {items: s.estimate for items, s in self.supports_.items() if s.estimate >= self.min_support}
        for items, support in frequent.items():
            for size in range(1, len(items)):
                for antecedent in combinations(items, size):
                    consequent = tuple(name for name in items if name not in antecedent)
                    confidence = support / max(self.supports_[antecedent].estimate, support, 1e-12)
                    if confidence >= self.min_confidence:
                        lift = confidence / max(self.supports_[consequent].estimate, 1e-12)
                        rule = (list(antecedent), list(consequent), support, confidence, lift)
                        for column, value in zip(columns.values(), rule, strict=True):
                            column.append(value)
        kinds = [pa.list_(pa.string())] * 2 + [pa.float64()] * 3
        table = pa.table({name: pa.array(v, kind) for (name, v), kind in zip(columns.items(), kinds, strict=True)})
        return table.sort_by([("confidence", "descending")])


def _item_factors(copy: Copy, columns: Sequence[str] | None) -> dict[str, Factor]:
    """The factor of every item: all binary columns, or the requested ones."""
    names = [*copy.replaced_columns, *copy.public_columns] if columns is None else list(columns)
    factors: dict[str, Factor] = {}
    for name in names:
        factor = factors_of(copy, [name])[0]
        if not _is_binary(copy, factor):
            if columns is not None:
                raise MiningError(f"an item must be a column of two values, and {name!r} is not; leave it out")
            continue
        if any(name in copy.model(other).columns for other in factors if factors[other].is_perturbed):
            raise MiningError(
                f"items must be perturbed independently, and {name!r} was perturbed jointly with another item; leave "
                "one of them out"
            )
        factors[name] = factor
    if not factors:
        raise MiningError("itemsets need at least one column of two values, and this copy has none")
    return factors


def _is_binary(copy: Copy, factor: Factor) -> bool:
    """Whether a factor has two values: by its domain, or by its type if it was released unchanged."""
    if factor.is_perturbed:
        return factor.size == 2
    return bool(pa.types.is_boolean(copy.source.schema.field(factor.columns[0]).type))


def _item_codes(copy: Copy, factor: Factor, table: pa.Table) -> Rows:
    """1 for each record of the copy that contains the item, 0 for one that does not, -1 where that is missing."""
    if factor.is_perturbed:
        return factor.codes(copy, table)
    values = table.column(factor.columns[0]).cast(pa.int64()).fill_null(-1).combine_chunks()
    codes: Rows = values.to_numpy(zero_copy_only=False)
    return codes


def _subset_weights(items: Items, weights: list[tuple[float, float]]) -> list[tuple[Items, float]]:
    """The product of `absent + difference·[contained]` over the items, expanded to one weight per subset."""
    terms: list[tuple[Items, float]] = [((), 1.0)]
    for name, (absent, difference) in zip(items, weights, strict=True):
        without = [(part, weight * absent) for part, weight in terms]
        terms = without + [((*part, name), weight * difference) for part, weight in terms]
    return terms


def _extended(possible: set[Items], length: int) -> list[Items]:
    """Candidate sets of one more item, all of whose subsets are possibly frequent (Agrawal and Srikant 1994)."""
    longest = [items for items in possible if len(items) == length]
    joined = {
        (*one, other[-1]) for one in longest for other in longest if one[:-1] == other[:-1] and one[-1] < other[-1]
    }
    return sorted(items for items in joined if all(part in possible for part in combinations(items, length)))
