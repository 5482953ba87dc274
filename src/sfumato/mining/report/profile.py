"""Statistical profile of the original: estimates for each column, relations, and what the copy can answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
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
from sfumato.mining.copies.simulation import outer_uncertainty
from sfumato.mining.density import Density
from sfumato.mining.features.contingency import MAX_CELLS, factors_of
from sfumato.mining.frequencies import Frequencies
from sfumato.mining.moments import Moments
from sfumato.mining.report.capabilities import capabilities, rows_for_count
from sfumato.mining.report.close_quantiles import close_quantiles
from sfumato.mining.report.estimates import QUANTILES, Category, Number, Pair, Profile
from sfumato.mining.report.figures import plot
from sfumato.mining.report.page import fragment
from sfumato.mining.report.relations import Attribute, relations
from sfumato.tables.columns import contiguous

_LISTED = 12
"""The number of categories, and of relations, that are listed."""

_FEW = 20
"""Columns of numbers that were released unchanged are listed as categories if they have at most this many values."""

_MANY = 300
"""Others that were released unchanged are listed if they have at most this many: names of people are not."""

_UNCHANGED = "Released unchanged: its frequencies are exact."
_HEAVY = 0.28
"""Tails are heavy if the outermost bins may move the mean by more than this share of its interval; of normal data
about 0.2, of lognormal 0.3 and more."""

_MOVED = (
    "Its largest or smallest values, of fewer records than a bin holds, were moved inwards: if a few of the original's "
    "are far larger still, its mean and standard deviation are beyond these intervals. Medians and quantiles are not."
)

_EXTREMES = "The smallest and the largest value are not known."


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
    few = _public_categories(best)
    numbers, pairs = _numbers(best, confidence, densities, stage, few)
    stage("drawing plausible originals")
    quantiles = close_quantiles(best, QUANTILES, confidence)
    stage("relating columns")
    unchanged = {name: _frequencies(best, name, confidence) for name in few}
    attributes = [Attribute.of(best, name) for name in best.replaced_columns]
    attributes += [Attribute.of(best, name, contiguous(table.column(name))) for name, table in unchanged.items()]
    related = relations(best, attributes, [number.name for number in numbers], confidence)
    stage("counting categories")
    categories = [_category(best, name, confidence) for name in best.replaced_columns]
    preserved, ranked = _preserved_numbers(best, confidence)
    categories += [_preserved_category(best, n, confidence) for n in best.preserved_columns if not best.is_numeric(n)]
    categories += [_public_category(name, table) for name, table in unchanged.items()]
    supported, unsupported = capabilities(best)
    return Profile(
        best.manifest,
        best.rows,
        (*(_with_limits(best, number, quantiles.get(number.name)) for number in numbers), *preserved),
        tuple(category for category in categories if category is not None),
        _strongest([*pairs, *ranked, *related]),
        supported,
        unsupported,
        confidence,
        tuple(best.public_columns),
        fragment,
        plot,
    )


def _with_limits(copy: Copy, number: Number, quantiles: tuple[Interval, ...] | None) -> Number:
    """A number with closer quantiles, if plausible originals have them, and with what is not known of it."""
    if not number.noisy:
        return number
    model = copy.noise_model(number.name)
    special = None if model is None else model.special_values(number.name)
    if quantiles is not None:
        why = (
            "Quantiles assume that values vary smoothly, but for those that the owner states as shared by many records."
        )
    elif not number.quantiles:
        why = "Quantiles cannot be estimated at this trust level: too few records for so much noise."
    elif special is None:
        why = "Quantiles are wide, since the owner does not state which values many records share: they allow for any."
    else:
        why = "Quantiles are wide: they allow for any distribution."
    return replace(
        number, quantiles=quantiles or number.quantiles, special=tuple(special or ()), limits=(why, _EXTREMES)
    )


def _numbers(
    copy: Copy, confidence: float, densities: bool, stage: Callable[[str], None], without: list[str]
) -> tuple[list[Number], list[Pair]]:
    """Estimates for all numeric columns but some, and the correlations between them."""
    names = [name for name in (*copy.noisy_columns, *copy.public_columns) if copy.is_numeric(name)]
    ordered = [name for name in copy.column_names if name in names and name not in without]
    if not ordered:
        return [], []
    stage("estimating moments")
    moments = Moments(columns=ordered, confidence=confidence).fit(copy)
    numbers = []
    for i, name in enumerate(moments.columns_):
        density = None
        if densities and name in copy.noisy_columns:
            stage(f"reconstructing the density of {name}")
            density = _density(copy, name, confidence)
        numbers.append(_number(copy, moments, i, density))
    return numbers, _pairs(moments)


def _preserved_numbers(copy: Copy, confidence: float) -> tuple[list[Number], list[Pair]]:
    """Estimates for columns of numbers whose margins are preserved, and their rank correlations."""
    names = [name for name in copy.preserved_columns if copy.is_numeric(name)]
    numbers = []
    for name in names:
        moments = preserved_moments(copy, name, confidence)
        if moments is not None:
            quantiles = preserved_quantiles(copy, name, QUANTILES, confidence)
            unit = _time_unit(copy, name)
            limits = (_MOVED,) if outer_uncertainty(copy, name) > _HEAVY * (moments[0].high - moments[0].low) else ()
            numbers.append(Number(name, True, *moments, quantiles, unit=unit, preserved=True, limits=limits))
    pairs = [Pair(*pair, of_ranks=True) for pair in rank_correlations(copy, names, confidence)] if names else []
    return numbers, pairs


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


def _pairs(moments: Moments) -> list[Pair]:
    names, ends = moments.columns_, moments.correlation_interval_
    return [
        Pair(names[i], names[j], Interval(float(moments.correlation_[i, j]), *map(float, ends[i, j])))
        for i in range(len(names))
        for j in range(i)
    ]


def _strongest(pairs: list[Pair]) -> tuple[Pair, ...]:
    """The strongest relations whose interval excludes zero."""
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


def _public_categories(copy: Copy) -> list[str]:
    """The columns that were released unchanged and have few values, by the first records."""
    names = [n for n in copy.public_columns if not pa.types.is_nested(copy.source.schema.field(n).type)]
    first = next(copy.tables(names), None) if names else None
    if first is None:
        return []
    most = {name: _FEW if copy.is_numeric(name) else _MANY for name in names}
    return [name for name in names if len(first.column(name).unique()) <= most[name]]


def _frequencies(copy: Copy, name: str, confidence: float) -> pa.Table:
    """The estimated frequencies of a column's categories."""
    return Frequencies(columns=[name], confidence=confidence).fit(copy).table(name)


def _public_category(name: str, table: pa.Table) -> Category:
    """The categories of a column that was released unchanged, whose frequencies are exact."""
    return Category(name, *_listed(table, name), max(table.num_rows - _LISTED, 0), 1, limits=(_UNCHANGED,))


def _listed(table: pa.Table, name: str) -> tuple[tuple[str, ...], tuple[Interval, ...]]:
    """The most frequent categories, and their frequencies."""
    rows = table.sort_by([("frequency", "descending")]).slice(0, _LISTED).to_pylist()
    names = tuple("missing" if row[name] is None else str(row[name]) for row in rows)
    return names, tuple(Interval(max(row["frequency"], 0.0), row["low"], row["high"]) for row in rows)


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
        table = _frequencies(copy, name, confidence)
    except MiningError:
        why = "Frequencies cannot be estimated at this trust level."
        return Category(name, (), (), factor.size, need, factor.retention, (why,))
    limits = ("No count is known within ±10%: the table is too small for so much noise.",) if need is None else ()
    return Category(name, *_listed(table, name), max(factor.size - _LISTED, 0), need, factor.retention, limits)
