"""Statistical profile of the original: estimates for each column, and the questions that the copy can answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels.intervals import Interval
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.preserved import (
    preserved_frequencies,
    preserved_moments,
    preserved_quantiles,
    rank_correlations,
)
from sfumato.mining.density import Density
from sfumato.mining.features.contingency import MAX_CELLS, factors_of
from sfumato.mining.frequencies import Frequencies
from sfumato.mining.moments import Moments
from sfumato.mining.report.capabilities import capabilities, rows_for_count
from sfumato.release.manifest import Manifest

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_LISTED = 12
"""The number of categories, and of correlations, that are listed."""


@dataclass(frozen=True)
class Number:
    """Estimates for a numeric column of the original."""

    name: str
    noisy: bool
    mean: Interval
    standard_deviation: Interval
    quantiles: tuple[Interval, ...]
    """The quantiles at `QUANTILES`; none where the trust level does not support them."""
    noise: float = 0.0
    """The standard deviation of the noise."""
    unit: str = ""
    """The unit of a column of dates or times."""
    density: Density | None = None
    preserved: bool = False
    """Whether its margin is preserved, so that the copy's own statistics are the estimates."""


@dataclass(frozen=True)
class Category:
    """Estimates for a perturbed categorical column of the original, the most frequent category first."""

    name: str
    values: tuple[str, ...]
    frequencies: tuple[Interval, ...]
    unlisted: int
    """The number of categories that are not listed."""
    rows_for_count: int | None
    """The size of the smallest group whose count is known within 10 %; none if the table is too small for any."""


@dataclass(frozen=True)
class Pair:
    """The correlation of two numeric columns, or of their ranks."""

    one: str
    other: str
    correlation: Interval
    of_ranks: bool = False
    """Whether it is that of the columns' ranks."""


@dataclass(frozen=True)
class Profile:
    """Estimates for the original of a copy."""

    manifest: Manifest
    rows: int
    numbers: tuple[Number, ...] = ()
    categories: tuple[Category, ...] = ()
    pairs: tuple[Pair, ...] = ()
    supported: tuple[str, ...] = ()
    """The statistics that this trust level supports, with their precision."""
    unsupported: tuple[str, ...] = ()
    """The statistics that this trust level does not support."""
    confidence: float = 0.95
    unchanged_columns: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The profile as JSON."""
        return {
            "dataset": self.manifest.dataset,
            "level": self.manifest.level or f"{self.manifest.fidelity:.4g}",
            "fidelity": self.manifest.fidelity,
            "rows": self.rows,
            "confidence": self.confidence,
            "numbers": [_number_dict(number) for number in self.numbers],
            "categories": [_category_dict(category) for category in self.categories],
            "correlations": [
                {"one": p.one, "other": p.other, "of_ranks": p.of_ranks, **vars(p.correlation)} for p in self.pairs
            ],
            "unchanged_columns": list(self.unchanged_columns),
            "supported": list(self.supported),
            "unsupported": list(self.unsupported),
        }


def _number_dict(number: Number) -> dict[str, Any]:
    return {
        "name": number.name,
        "noisy": number.noisy,
        "mean": vars(number.mean),
        "standard_deviation": vars(number.standard_deviation),
        "quantiles": {str(q): vars(i) for q, i in zip(QUANTILES, number.quantiles, strict=False)},
    }


def _category_dict(category: Category) -> dict[str, Any]:
    return {
        "name": category.name,
        "frequencies": {v: vars(i) for v, i in zip(category.values, category.frequencies, strict=True)},
        "unlisted": category.unlisted,
        "rows_for_count_within_10_percent": category.rows_for_count,
    }


def profile(
    copy: Any, *, confidence: float = 0.95, densities: bool = True, stage: Callable[[str], None] = lambda _: None
) -> Profile:
    """Estimate a statistical profile of the original.

    Args:
        copy: a table or a file with its manifest, or several, of which the most faithful is used.
        confidence: the confidence level of the intervals.
        densities: whether to reconstruct the density of every noisy numeric column, which takes longest.
        stage: called with a description of each stage of the work.

    """
    best = Copy.of(copy)
    if best.rows < 2:
        raise MiningError(f"a profile needs at least two records, and the copy has {best.rows}; ask for another copy")
    numbers, pairs = _numbers(best, confidence, densities, stage)
    stage("counting categories")
    categories = [_category(best, name, confidence) for name in best.replaced_columns]
    preserved, ranked = _preserved_numbers(best, confidence)
    categories += [_preserved_category(best, n, confidence) for n in best.preserved_columns if not best.is_numeric(n)]
    supported, unsupported = capabilities(best)
    return Profile(
        best.manifest,
        best.rows,
        (*numbers, *preserved),
        tuple(category for category in categories if category is not None),
        (*pairs, *ranked),
        supported,
        unsupported,
        confidence,
        tuple(best.public_columns),
    )


def _numbers(
    copy: Copy, confidence: float, densities: bool, stage: Callable[[str], None]
) -> tuple[tuple[Number, ...], tuple[Pair, ...]]:
    """Estimates for all numeric columns, and the significant correlations between them."""
    if not any(copy.is_numeric(name) for name in (*copy.noisy_columns, *copy.public_columns)):
        return (), ()
    stage("estimating moments")
    moments = Moments(confidence=confidence).fit(copy)
    numbers = []
    for i, name in enumerate(moments.columns_):
        density = None
        if densities and name in copy.noisy_columns:
            stage(f"reconstructing the density of {name}")
            density = _density(copy, name, confidence)
        numbers.append(_number(copy, moments, i, density))
    return tuple(numbers), _pairs(moments)


def _preserved_numbers(copy: Copy, confidence: float) -> tuple[tuple[Number, ...], tuple[Pair, ...]]:
    """Estimates for columns of numbers whose margins are preserved, and their rank correlations."""
    names = [name for name in copy.preserved_columns if copy.is_numeric(name)]
    numbers = []
    for name in names:
        moments = preserved_moments(copy, name, confidence)
        if moments is not None:
            quantiles = preserved_quantiles(copy, name, QUANTILES, confidence)
            unit = _time_unit(copy, name)
            numbers.append(Number(name, True, *moments, quantiles, unit=unit, preserved=True))
    pairs = [Pair(*pair, of_ranks=True) for pair in rank_correlations(copy, names, confidence)] if names else []
    return tuple(numbers), _strongest(pairs)


def _number(copy: Copy, moments: Moments, index: int, density: Density | None) -> Number:
    name = moments.columns_[index]
    variance, ends = moments.covariance_[index, index], np.maximum(moments.covariance_interval_[index, index], 0)
    return Number(
        name,
        name in copy.noisy_columns,
        Interval(float(moments.mean_[index]), *map(float, moments.mean_interval_[index])),
        Interval(math.sqrt(variance), math.sqrt(ends[0]), math.sqrt(ends[1])),
        _quantiles(moments, name),
        math.sqrt(copy.noise_covariance([name])[0, 0]),
        _time_unit(copy, name),
        density,
    )


def _quantiles(moments: Moments, name: str) -> tuple[Interval, ...]:
    try:
        return tuple(moments.quantile(name, QUANTILES))
    except MiningError:
        return ()


def _pairs(moments: Moments) -> tuple[Pair, ...]:
    names, ends = moments.columns_, moments.correlation_interval_
    pairs = [
        Pair(names[i], names[j], Interval(float(moments.correlation_[i, j]), *map(float, ends[i, j])))
        for i in range(len(names))
        for j in range(i)
    ]
    return _strongest(pairs)


def _strongest(pairs: list[Pair]) -> tuple[Pair, ...]:
    """The strongest correlations whose interval excludes zero."""
    sure = [pair for pair in pairs if pair.correlation.low > 0 or pair.correlation.high < 0]
    return tuple(sorted(sure, key=lambda pair: -abs(pair.correlation.estimate))[:_LISTED])


def _density(copy: Copy, name: str, confidence: float) -> Density | None:
    try:
        return Density(columns=[name], confidence=confidence).fit(copy)
    except MiningError:
        return None


def _time_unit(copy: Copy, name: str) -> str:
    kind = copy.source.schema.field(name).type
    if pa.types.is_date(kind):
        return "day"
    if pa.types.is_timestamp(kind):
        return {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}[kind.unit]
    return ""


def _preserved_category(copy: Copy, name: str, confidence: float) -> Category:
    """The categories of a column whose margin is preserved."""
    found = preserved_frequencies(copy, name, confidence)
    listed = found[:_LISTED]
    need = math.ceil(2 * (critical_value(confidence) / 0.1) ** 2)
    return Category(
        name, tuple(n for n, _ in listed), tuple(i for _, i in listed), len(found) - len(listed), min(need, copy.rows)
    )


def _category(copy: Copy, name: str, confidence: float) -> Category | None:
    """Estimates for a categorical column; none if it has no categories, or too many."""
    [factor] = factors_of(copy, [name])
    if not 0 < factor.size <= MAX_CELLS:
        return None
    need = rows_for_count(copy.rows, factor.retention, factor.size, copy.design_effect(copy.replaced_columns))
    try:
        table: pa.Table = Frequencies(columns=[name], confidence=confidence).fit(copy).table(name)
    except MiningError:
        return Category(name, (), (), factor.size, need)
    rows = table.sort_by([("frequency", "descending")]).slice(0, _LISTED).to_pylist()
    return Category(
        name,
        tuple("missing" if row[name] is None else str(row[name]) for row in rows),
        tuple(Interval(max(row["frequency"], 0.0), row["low"], row["high"]) for row in rows),
        max(factor.size - _LISTED, 0),
        need,
    )
