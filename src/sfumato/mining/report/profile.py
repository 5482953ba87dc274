"""A profile of the original, as far as a copy allows: what each column is like, and what can be asked at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.interval import Interval
from sfumato.mining.density import Density
from sfumato.mining.features.contingency import CELLS, axes_of
from sfumato.mining.frequencies import Frequencies
from sfumato.mining.moments import Moments
from sfumato.mining.report import capabilities as _abilities
from sfumato.release.manifest import Manifest

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_LISTED = 12
"""Categories that are listed; of more, the most frequent."""


@dataclass(frozen=True)
class Number:
    """A column of numbers of the original."""

    name: str
    noisy: bool
    mean: Interval
    deviation: Interval
    quantiles: tuple[Interval, ...]
    """At `QUANTILES`; none where the level does not tell them."""
    noise: float
    """The standard deviation of the noise."""
    unit: str = ""
    """Of time, where it holds moments."""
    density: Density | None = None


@dataclass(frozen=True)
class Category:
    """A perturbed column of categories of the original, the most frequent first."""

    name: str
    values: tuple[str, ...]
    frequencies: tuple[Interval, ...]
    more: int
    """How many values are not listed."""
    enough: int | None
    """How many rows a group must have for its count to be within a tenth; none where the table is too small for any."""


@dataclass(frozen=True)
class Pair:
    """Two columns of numbers that vary together."""

    one: str
    other: str
    correlation: Interval


@dataclass(frozen=True)
class Profile:
    """What a copy tells of its original."""

    manifest: Manifest
    rows: int
    numbers: tuple[Number, ...] = ()
    categories: tuple[Category, ...] = ()
    pairs: tuple[Pair, ...] = ()
    can: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    confidence: float = 0.95
    shown: tuple[str, ...] = field(default=())
    """Columns that are in the copy as they are in the original."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        level = self.manifest.level or f"{self.manifest.fidelity:.4g}"
        return {
            "dataset": self.manifest.dataset,
            "level": level,
            "fidelity": self.manifest.fidelity,
            "rows": self.rows,
            "confidence": self.confidence,
            "numbers": [
                {
                    "name": n.name,
                    "noisy": n.noisy,
                    "mean": vars(n.mean),
                    "deviation": vars(n.deviation),
                    "quantiles": {str(q): vars(i) for q, i in zip(QUANTILES, n.quantiles, strict=False)},
                }
                for n in self.numbers
            ],
            "categories": [
                {
                    "name": c.name,
                    "frequencies": {v: vars(i) for v, i in zip(c.values, c.frequencies, strict=True)},
                    "not_listed": c.more,
                    "rows_for_a_count_within_a_tenth": c.enough,
                }
                for c in self.categories
            ],
            "correlations": [{"one": p.one, "other": p.other, **vars(p.correlation)} for p in self.pairs],
            "shown_as_they_are": list(self.shown),
            "can": list(self.can),
            "cannot": list(self.cannot),
        }


def profile(
    copy: Any, *, confidence: float = 0.95, densities: bool = True, stage: Callable[[str], None] = lambda _: None
) -> Profile:
    """Describe the original of a copy.

    Args:
        copy: a table or a file with its manifest; of several, the best is taken.
        confidence: of the intervals.
        densities: whether to reconstruct the density of every column of numbers, which takes longest.
        stage: told what is being done.

    """
    best = Copy.of(copy)
    if best.rows < 2:
        raise MiningError(f"a profile needs at least two records, and the copy has {best.rows}")
    numbers, pairs = _numbers(best, confidence, densities, stage)
    stage("counting categories")
    categories = tuple(found for name in best.replaced if (found := _category(best, name, confidence)) is not None)
    can, cannot = _abilities.abilities(best)
    return Profile(best.manifest, best.rows, numbers, categories, pairs, can, cannot, confidence, tuple(best.kept))


def _numbers(
    copy: Copy, confidence: float, densities: bool, stage: Callable[[str], None]
) -> tuple[tuple[Number, ...], tuple[Pair, ...]]:
    if not any(copy.is_number(name) for name in (*copy.noisy, *copy.kept)):
        return (), ()
    stage("measuring numbers")
    moments = Moments(confidence=confidence).fit(copy)
    names, out = moments.columns_, []
    for i, name in enumerate(names):
        noisy = name in copy.noisy
        density = None
        if densities and noisy:
            stage(f"reconstructing {name}")
            density = _density(copy, name, confidence)
        try:
            quantiles = tuple(moments.quantile(name, QUANTILES))
        except MiningError:
            quantiles = ()
        variance, (low, high) = moments.covariance_[i, i], np.maximum(moments.covariance_interval_[i, i], 0)
        mean = Interval(float(moments.mean_[i]), *map(float, moments.mean_interval_[i]))
        deviation = Interval(math.sqrt(variance), math.sqrt(low), math.sqrt(high))
        noise = math.sqrt(copy.noise([name])[0, 0])
        out.append(Number(name, noisy, mean, deviation, quantiles, noise, _unit(copy, name), density))
    pairs = [
        Pair(names[i], names[j], Interval(float(moments.correlation_[i, j]), *map(float, ends)))
        for i in range(len(names))
        for j in range(i)
        if (ends := moments.correlation_interval_[i, j])[0] > 0 or ends[1] < 0
    ]
    return tuple(out), tuple(sorted(pairs, key=lambda pair: -abs(pair.correlation.estimate))[:_LISTED])


def _density(copy: Copy, name: str, confidence: float) -> Density | None:
    try:
        return Density(columns=[name], confidence=confidence).fit(copy)
    except MiningError:
        return None


def _unit(copy: Copy, name: str) -> str:
    kind = copy.source.schema.field(name).type
    if pa.types.is_date(kind):
        return "day"
    if pa.types.is_timestamp(kind):
        return {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}[kind.unit]
    return ""


def _category(copy: Copy, name: str, confidence: float) -> Category | None:
    [axis] = axes_of(copy, [name])
    if not 0 < axis.size <= CELLS:
        return None
    enough = _abilities.enough_for_a_count(copy.rows, axis.retention, axis.size)
    try:
        table: pa.Table = Frequencies(columns=[name], confidence=confidence).fit(copy).table(name)
    except MiningError:
        return Category(name, (), (), axis.size, enough)
    rows = table.sort_by([("frequency", "descending")]).slice(0, _LISTED).to_pylist()
    return Category(
        name,
        tuple("missing" if row[name] is None else str(row[name]) for row in rows),
        tuple(Interval(max(row["frequency"], 0.0), row["low"], row["high"]) for row in rows),
        max(axis.size - _LISTED, 0),
        enough,
    )
