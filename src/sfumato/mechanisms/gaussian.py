"""Gaussian noise in the shape of the data, at any number of levels on one Brownian path (li2012).

This file fits the covariance of the noise; `_gaussian_scheme.py` draws the noise and adds it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.errors import PolicyError, SourceError
from sfumato.kernels import Floats, Mask, SpecialValues
from sfumato.kernels.cholesky import correlation_factor
from sfumato.kernels.lattice import fine_step
from sfumato.keys.path import PathTree
from sfumato.mechanisms import Example, Mechanism, Scheme, Summary, number, truth
from sfumato.mechanisms._entity_fit import EntityMoments, EntityShape
from sfumato.mechanisms._entity_rows import entity_hashes
from sfumato.mechanisms._entity_scheme import EntityScheme
from sfumato.mechanisms._gaussian_scheme import CENTRE, EPSILON, FEWEST_STEPS, ROUNDED, GaussianScheme
from sfumato.mechanisms._gaussian_summary import Extent, Moments, finite, in_range
from sfumato.mechanisms._published_statistics import bits, coarse_covariance, private_covariance
from sfumato.tables import numeric
from sfumato.tables.numeric import MAX_MAGNITUDE

MAX_CLIPPED = 0.25
"""The share of a column's values that its clip may move, unless the policy states another."""


@dataclass(frozen=True)
class Column:
    """What the policy states about one column."""

    name: str
    clip: tuple[Any, Any] | None = None
    scale: float = 1.0
    spread: float | None = None
    integer: bool = False
    max_clipped: float = MAX_CLIPPED
    """The largest share of the values that the clip may move."""
    range: tuple[Any, Any] | None = None
    """The range that values are shown in; those beyond are moved to its ends."""
    special: SpecialValues = None
    """The values that many records share exactly, with their shares, if they are stated; all others vary smoothly."""

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> Column:
        """The column with the options of a policy."""
        spread = options.get("spread")
        return cls(
            name,
            clip=_ends(name, "clip", options["clip"]) if "clip" in options else None,
            range=_ends(name, "range", options["range"]) if "range" in options else None,
            special=_special(name, options["special"]) if "special" in options else None,
            scale=number(name, "scale", options.get("scale", 1.0), above=0),
            spread=None if spread is None else number(name, "spread", spread, above=0),
            integer=truth(name, "integer", options.get("integer", False)),
            max_clipped=_share(name, options.get("max_clipped", MAX_CLIPPED)),
        )

    def bounds(self, kind: pa.DataType) -> tuple[float, float]:
        """The clip in the units of the column's type."""
        return self._in_units("clip", self.clip, kind)

    def shown_range(self, kind: pa.DataType) -> tuple[float, float]:
        """The range that values are shown in, in the units of the column's type."""
        return self._in_units("range", self.range, kind)

    def _in_units(self, option: str, stated: tuple[Any, Any] | None, kind: pa.DataType) -> tuple[float, float]:
        if stated is None:
            return -math.inf, math.inf
        dated = types.is_date(kind) or types.is_timestamp(kind)
        if isinstance(stated[0], date) == dated:
            try:
                ends = numeric.read(pa.array(stated).cast(kind))[0] if dated else stated
                return float(ends[0]), float(ends[1])
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
                pass  # a date with a time of day for a column of dates, say
        raise SourceError(
            f"`{option}` of column {self.name!r} must be of its type {kind}, got {stated[0]} to {stated[1]}"
        )

    def assumed(self, low: float, high: float) -> float:
        """The spread of a column without variance of its own: from its clip, else its magnitude, else 1.

        The spread is published, so the magnitude is rounded up to a power of 16.
        """
        if self.clip is not None and not isinstance(self.clip[0], date):
            return float(self.clip[1] - self.clip[0]) / math.sqrt(12)
        largest = max(abs(low), abs(high))
        return math.ldexp(1.0, math.ceil(math.frexp(largest)[1] / 4) * 4) if largest else 1.0


def _share(name: str, stated: Any) -> float:
    share = number(name, "max_clipped", stated)
    if not 0 <= share <= 1:
        raise PolicyError(f"`max_clipped` of column {name!r} must lie between 0 and 1, got {stated!r}")
    return share


def _special(name: str, stated: Any) -> SpecialValues:
    if not isinstance(stated, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in stated):
        raise PolicyError(
            f"`special` of column {name!r} must list the values that many records share, each with its share, as in "
            f"[[0, 0.12], [999, 0.03]], or [] where there are none, got {stated!r}"
        )
    pairs = tuple((number(name, "special", value), number(name, "special", share, above=0)) for value, share in stated)
    if sum(share for _, share in pairs) >= 1 or len({value for value, _ in pairs}) < len(pairs):
        raise PolicyError(
            f"`special` of column {name!r} must list different values, with shares that add up to less than 1, "
            f"got {stated!r}"
        )
    return pairs


def _ends(name: str, option: str, stated: Any) -> tuple[Any, Any]:
    if isinstance(stated, list) and len(stated) == 2:
        moments = all(isinstance(end, date) for end in stated)
        low, high = stated if moments else (number(name, option, end) for end in stated)
        if type(low) is type(high) and getattr(low, "tzinfo", None) == getattr(high, "tzinfo", None) and low < high:
            return low, high
    raise PolicyError(f"`{option}` of column {name!r} must be [lowest, highest], the lowest first, got {stated!r}")


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """All `gaussian` columns of a policy, perturbed jointly so that the noise has their correlations."""

    reference = "li2012, sections 3.1 and 5, Theorems 4 and 5"
    options = frozenset({"clip", "max_clipped", "scale", "spread", "integer", "range", "special"})
    measures = frozenset({"rmse", "error", "dissimilarity"})
    adds_noise = True
    examples = (Example("numbers"), Example("numbers", 2, {"clip": [0, 9], "scale": 2}))
    settings = frozenset({EPSILON, "rescale"})
    passes = 2
    specs: tuple[Column, ...]
    epsilon: float | None = None
    """The differential privacy of the covariance; without it, the covariance is rounded only."""
    rescale: bool = False
    """Whether copies are drawn to the means, so that they have the means and covariances of the original."""
    entity: str | None = None
    """The column that names the entities, where several records are of one."""

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns if self.entity is None else (*self.columns, self.entity)

    def for_entities(self, column: str) -> Mechanism:
        changed = [spec.name for spec in self.specs if spec.scale != 1 or spec.spread is not None]
        if changed or self.epsilon is not None or self.rescale:
            what = f"`scale` or `spread` of {changed[0]!r}" if changed else "`rescale` or `epsilon` of [gaussian]"
            raise PolicyError(f"noise for entities has the shape of the data, so that {what} must be left out")
        return replace(self, entity=column)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)

    @classmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> Sequence[Mechanism]:
        specs = tuple(Column.of(name, options) for name, options in columns.items())
        stated = settings.get(EPSILON)
        epsilon = None if stated is None else number("[gaussian]", EPSILON, stated, above=0)
        for spec in specs if epsilon is not None else ():
            if spec.clip is None or isinstance(spec.clip[0], date):
                raise PolicyError(
                    f"`epsilon` of [gaussian] needs `clip = [lowest, highest]` on every gaussian column, in numbers, "
                    f"and {spec.name!r} has none: without limits, one record could change the covariance without limit"
                )
        rescale = truth("[gaussian]", "rescale", settings.get("rescale", False))
        changed = [spec.name for spec in specs if spec.scale != 1 or spec.spread is not None]
        if rescale and (changed or epsilon is not None):
            what = f"`scale` or `spread`, as {changed[0]!r} has," if changed else "`epsilon`"
            raise PolicyError(f"`rescale` of [gaussian] needs noise in the shape of the data, without {what}; drop one")
        return [cls(specs, epsilon, rescale)] if columns else []

    def check(self, schema: pa.Schema) -> None:
        for spec in self.specs:
            kind = schema.field(spec.name).type
            if not numeric.is_number(kind) and not numeric.is_temporal(kind):
                raise SourceError(
                    f"the role gaussian needs numbers or times, and column {spec.name!r} holds {kind}; give it the "
                    "role uniform or, where some cells are no numbers, correct them or state them as `missing` in "
                    "[file]"
                )
            spec.bounds(kind)
            spec.shown_range(kind)

    def summarise(self, batch: pa.RecordBatch, earlier: Summary | None = None) -> Summary:
        if isinstance(earlier, Extent):
            clipped = [_clipped(batch, spec)[:2] for spec in self.specs]
            if self.entity is None:
                return Moments.of(clipped, earlier)
            return EntityMoments.of(clipped, earlier, entity_hashes(batch, self.entity))
        cells = []
        for spec in self.specs:
            finite(*numeric.read(batch.column(spec.name)), spec.name)
            values, null, moved = _clipped(batch, spec)
            in_range(np.where(null, 0.0, values) if null.size else values, spec.name)
            cells.append((values, null, moved))
        temporal = tuple(numeric.is_temporal(batch.column(name).type) for name in self.columns)
        return Extent.of([cell[:2] for cell in cells], temporal, tuple(moved for _, _, moved in cells))

    def fit(self, summary: Summary, tree: PathTree) -> Scheme:
        """Fix the shape of the noise: each column's spread and the correlations between them, rounded for good.

        A column without variance of its own (constant, one row, none) is given a spread, so that it is perturbed
        rather than released unchanged.
        """
        if isinstance(summary, EntityMoments):
            shape = self._entity_shape(summary, tree)
            state, _ = self._fitted(summary.moments, shape.between + shape.within, tree)
            return self.restore(state | shape.state(state["spread"]), tree)
        if not isinstance(summary, Moments):
            raise TypeError("the gaussian mechanism is fitted to its second summary")
        state, own = self._fitted(summary, self._covariance(summary), tree)
        state |= {} if self.epsilon is None else {EPSILON: self.epsilon}
        if self.rescale:
            means = [_coarse_mean(*both, summary.rows) for both in zip(summary.means(), state["spread"], strict=True)]
            state[CENTRE] = [mean if sd else 0.0 for mean, sd in zip(means, own, strict=True)]  # a constant is no mean
        return self.restore(state, tree)

    def _fitted(self, summary: Moments, covariance: Floats, tree: PathTree) -> tuple[dict[str, Any], Floats]:
        """The state of a scheme whose noise has this covariance, and the columns' own deviations."""
        extent = summary.extent
        own = np.sqrt(np.diag(covariance))
        self._check_deviations(own, extent)
        self.check_clips(extent)
        spread = [
            spec.spread or float(sd) or max(spec.assumed(*extent.ends(i)), _least(spec, extent.temporal[i], tree))
            for i, (spec, sd) in enumerate(zip(self.specs, own, strict=True))
        ]
        steps = [
            _step(spread[i], self._ends(extent, i), whole=spec.integer or extent.temporal[i])
            for i, spec in enumerate(self.specs)
        ]
        sizes = np.array([s * spec.scale for s, spec in zip(spread, self.specs, strict=True)])
        factor = correlation_factor(_shape(covariance, own, sizes), summary.mismatch())
        lines = [[float(entry) for entry in line[: i + 1]] for i, line in enumerate(factor)]
        return {"spread": spread, "step": steps, "root": lines, ROUNDED: True}, own

    def _entity_shape(self, summary: EntityMoments, tree: PathTree) -> EntityShape:
        """The shape of noise for entities; within them, it must be more than a few steps of whole numbers."""
        temporal = summary.moments.extent.temporal
        return EntityShape.of(
            summary, [_least(spec, time, tree) for spec, time in zip(self.specs, temporal, strict=True)]
        )

    def _covariance(self, summary: Moments) -> Floats:
        """The covariance that the noise has, and everybody may know."""
        if self.epsilon is None:
            return coarse_covariance(summary.covariance(), summary.rows)
        limits = np.array([spec.clip for spec in self.specs], np.float64)
        generator = np.random.default_rng(secrets.randbits(128))
        private = private_covariance(
            summary.covariance(), summary.means(), limits, summary.rows, self.epsilon, generator
        )
        return coarse_covariance(private, summary.rows)

    def _ends(self, extent: Extent, column: int) -> tuple[float, float]:
        """The lowest and the highest value that everybody may know."""
        clip = self.specs[column].clip
        return extent.ends(column) if self.epsilon is None or clip is None else (float(clip[0]), float(clip[1]))

    def check_clips(self, extent: Extent) -> None:
        """Refuse a clip that moves more values than it may: it was stated in another unit, or by mistake."""
        for spec, (count, moved) in zip(self.specs, extent.counts, strict=True):
            if spec.clip is not None and moved > spec.max_clipped * count:
                raise PolicyError(
                    f"`clip` of column {spec.name!r} must move at most {spec.max_clipped:.0%} of its values, and "
                    f"{spec.clip[0]} to {spec.clip[1]} moves {moved:,} of {count:,}; widen it, or set `max_clipped` to "
                    "the share that you accept"
                )

    def _check_deviations(self, own: Floats, extent: Extent) -> None:
        """Refuse columns that vary so little that the squares of their deviations vanish."""
        for i, name in enumerate(self.columns):
            low, high = extent.ends(i)
            if low < high and own[i] < 1 / MAX_MAGNITUDE:
                raise SourceError(
                    f"the values of column {name!r} must vary by at least {1 / MAX_MAGNITUDE:g}, and they lie between "
                    f"{low:g} and {high:g}; state it in a smaller unit"
                )

    def restore(self, state: dict[str, Any], tree: PathTree) -> Scheme:
        if self.entity is None:
            scheme = GaussianScheme(self.specs, state, tree)
        else:
            scheme = EntityScheme(self.specs, state, tree, self.entity)
        scheme.model(tree.declared[0])  # the most trusted level has the least noise: refuse it now, not at release
        return scheme


def _coarse_mean(mean: float, spread: float, rows: int) -> float:
    """A published mean: a multiple of a share of the column's spread that one record hardly moves."""
    unit = math.ldexp(1.0, math.frexp(spread)[1] - 1 - bits(rows))
    return round(mean / unit) * unit


def _clipped(batch: pa.RecordBatch, spec: Column) -> tuple[Floats, Mask, int]:
    """The values of a column within its clip, the mask of nulls, and the number of values that the clip has moved."""
    values, null = numeric.read(batch.column(spec.name))
    if spec.clip is None:
        return values, null, 0
    clipped = np.clip(values, *spec.bounds(batch.column(spec.name).type))
    moved = clipped != values
    return clipped, null, int((moved & ~null if null.size else moved).sum())


def _shape(covariance: Floats, own: Floats, sizes: Floats) -> Floats:
    """The correlations of noise with the standard deviations `sizes`, for columns with the covariances `covariance`.

    Where all sizes are the same multiple of the columns' own deviations, they are the columns' correlations. Where some
    column is to have more noise than others (`scale`, `spread`), the surplus is independent noise, on top of noise in
    the columns' own shape: noise of a distorted shape could be filtered out, entirely so for a column that is a
    combination of others.
    """
    varies = own > 0
    least = (sizes[varies] / own[varies]).min(initial=math.inf)
    relative = np.where(varies, least / sizes, 0.0)
    related = covariance * relative[:, None] * relative[None, :]
    np.fill_diagonal(related, 1.0)
    return related


def _least(spec: Column, temporal: bool, tree: PathTree) -> float:
    """The least spread that a column of whole numbers may be given, so that its noise is not refused."""
    whole = spec.integer or temporal
    return 2 * FEWEST_STEPS / (math.sqrt(tree.declared[0].noise) * spec.scale) if whole else 0.0


def _step(spread: float, ends: tuple[float, float], *, whole: bool) -> float:
    fine = fine_step(spread, max(abs(ends[0]), abs(ends[1])))
    return max(1.0, fine) if whole else fine
