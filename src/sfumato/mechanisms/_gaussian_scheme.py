"""The fitted gaussian mechanism: noise of a fixed shape, at any point of the path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.errors import LevelError, SourceError
from sfumato.kernels import Floats, Mask, Rows, SpecialValues, Words, lattice
from sfumato.kernels.cholesky import gram, largest_variance_ratio
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree, Point
from sfumato.keys.stream import Stream
from sfumato.levels import Level
from sfumato.mechanisms import Scheme, path_name
from sfumato.mechanisms._brownian_noise import Addresses, BrownianNoise, Lattice
from sfumato.mechanisms._compiled import Labels
from sfumato.mechanisms._published_statistics import coarse
from sfumato.mechanisms._single_records import SingleNoise
from sfumato.models.gaussian_noise import MEASURED, SPREAD, GaussianNoise
from sfumato.tables import numeric

ROUNDED = "rounded"
"""The key of a scheme's state that says that its statistics were rounded when it was fitted."""

EPSILON = "epsilon"
"""The key of the differential privacy with which they were measured."""

CENTRE = "centre"
"""The key of the rounded means, towards which copies are rescaled."""

FEWEST_STEPS = 4
"""Noise whose standard deviation is fewer lattice steps than this is refused: the lattice would show through."""


class Spec(Protocol):
    """What the policy says about a column."""

    @property
    def name(self) -> str: ...
    @property
    def scale(self) -> float: ...
    @property
    def integer(self) -> bool: ...
    @property
    def clip(self) -> tuple[Any, Any] | None: ...
    def bounds(self, kind: pa.DataType) -> tuple[float, float]: ...
    @property
    def spread(self) -> float | None: ...
    @property
    def range(self) -> tuple[Any, Any] | None: ...
    @property
    def special(self) -> SpecialValues: ...
    def shown_range(self, kind: pa.DataType) -> tuple[float, float]: ...


class GaussianScheme(Scheme):
    """`Y = X + L·W(t)` on the lattice, with `L·Lᵀ` the columns' covariance."""

    is_shaped = True

    def __init__(self, specs: Sequence[Spec], state: dict[str, Any], tree: PathTree, *entity: str) -> None:
        self._specs, self._tree = tuple(specs), tree
        self._state = state
        spread, step, root = state["spread"], state["step"], state["root"]
        self.columns = tuple(spec.name for spec in specs)
        self._check()
        self.step = np.array(step)
        self._root = np.zeros((len(root), len(root)))
        for i, line in enumerate(root):
            self._root[i, : i + 1] = line
        self._sizes = np.array([s * spec.scale for s, spec in zip(spread, specs, strict=True)])  # of the noise at t = 1
        self.path = path_name(*self.columns, self._state, [spec.scale for spec in specs], tree.declaration, *entity)

    def fields(self, schema: pa.Schema) -> list[pa.Field]:
        kinds = [numeric.result_type(schema.field(s.name).type, integer=s.integer) for s in self._specs]
        return [pa.field(name, kind) for name, kind in zip(self.columns, kinds, strict=True)]

    def state(self) -> dict[str, Any]:
        return self._state

    def _check(self) -> None:
        """Refuse a state that no fit can have given: with it, noise would be missing."""
        spread, step, root = (self._state[name] for name in ("spread", "step", "root"))
        fits = len(spread) == len(step) == len(root) == len(self.columns) and all(
            len(line) == i + 1 and abs(math.fsum(x * x for x in line) - 1) < 1e-6 for i, line in enumerate(root)
        )
        if not fits or not all(0 < x < math.inf for x in [*spread, *step]):
            raise ValueError("a shape must have a spread, a step and a unit row of the root for each column")

    def model(self, level: Level) -> GaussianNoise:
        point = self._locate(level)
        shape = self._published_shape
        time, apart = point.node.time, math.sqrt(self._tree.distance_to_nearest(point.node.time))
        return GaussianNoise(
            columns=self.columns,
            covariance=tuple(tuple((time * line[: i + 1]).tolist()) for i, line in enumerate(shape)),
            noise=time,
            scale=tuple(spec.scale for spec in self._specs),
            step=tuple(self._shown_steps(point.level.fidelity)),
            clip=tuple(None if spec.clip is None else encoded_clip(spec.clip) for spec in self._specs),
            rounding=tuple(
                lattice.rounding_correlation(step, size * math.sqrt(time), size * apart)
                for step, size in zip(self.step.tolist(), np.sqrt(np.diag(shape)).tolist(), strict=True)
            ),
            collusion_resistant=True,
            epsilon=self._state.get(EPSILON),
            centre=tuple(self._state.get(CENTRE, ())),
            range=self._ranges,
            special=self._special,
            shape=self._shape_source,
        )

    @property
    def _shape_source(self) -> str:
        """Where the shape of the noise comes from."""
        return MEASURED if all(spec.spread is None for spec in self._specs) else SPREAD

    @property
    def _ranges(self) -> tuple[tuple[Any, Any] | None, ...]:
        """The range that each column is shown in, or none; empty where no column has one."""
        ranges = tuple(None if spec.range is None else encoded_clip(spec.range) for spec in self._specs)
        return ranges if any(ranges) else ()

    @property
    def _special(self) -> tuple[SpecialValues, ...]:
        """The special values of each column that states them; empty where none does."""
        special = tuple(spec.special for spec in self._specs)
        return special if any(values is not None for values in special) else ()

    def _shown_steps(self, fidelity: float) -> list[float]:
        """The lattice of each column in a copy; whole numbers are rounded once more when a copy is rescaled."""
        if CENTRE not in self._state:
            return list(self.step.tolist())
        return [max(step, 1 / math.sqrt(fidelity)) if step >= 1 else step for step in self.step.tolist()]

    def _rescaled(self, copy: Floats, fidelity: float, kinds: Sequence[pa.DataType]) -> None:
        """Scale the copy about the means, so that it has the covariance of the original: `c + √f·(y - c)`, in place.

        It is a function of the copy at this level alone, so that no set of such copies tells more than the copies
        that they are made from.
        """
        for line, centre, kind in zip(copy, self._state[CENTRE], kinds, strict=True):
            line[:] = centre + math.sqrt(fidelity) * (line - centre)
            if not types.is_floating(kind):
                np.rint(line, out=line)

    @property
    def _published_shape(self) -> Floats:
        """The covariance of the noise at time 1, rounded once for all levels: many of them disclose no more than one.

        A fit has rounded it; schemes that were fitted before it did so have it rounded here.
        """
        shape = self.covariance
        if self._state.get(ROUNDED):
            return shape
        legacy: Floats = np.vectorize(coarse, otypes=[float])(shape)
        return legacy

    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        points = [self._locate(level) for level in levels]
        cells, secret = self._cells(batch), key.derive("gaussian", self.path)
        noise = BrownianNoise(secret, self._streams, tuple(point.node for point in points))
        out = np.empty((len(points), len(self.columns), batch.num_rows))
        self._refuse(noise.copies(cells, self._addresses(secret, batch, rows, key), self._factor_in_steps, out))
        kinds = [field.type for field in self.fields(batch.schema)]
        return [self._written(copy, point.level, cells.null, kinds) for copy, point in zip(out, points, strict=True)]

    def single_record(self, schema: pa.Schema, level: Level, key: Key) -> SingleNoise | None:
        kinds = [schema.field(name).type for name in self.columns]
        plain = all(types.is_integer(kind) or types.is_float64(kind) for kind in kinds)
        if type(self) is not GaussianScheme or not plain or CENTRE in self._state or self._ranges:
            return None
        secret, point = key.derive("gaussian", self.path), self._locate(level)
        bounds = [spec.bounds(kind) for spec, kind in zip(self._specs, kinds, strict=True)]
        shown = [field.type for field in self.fields(schema)]
        steps, streams = self.step.tolist(), [Stream(secret.derive(*labels)) for labels in self._streams]
        return SingleNoise(Stream(secret), streams, point, self._factor_in_steps, steps, bounds, shown)

    @property
    def _streams(self) -> tuple[Labels, ...]:
        """The sources of the standard normals, in the order of the factor's columns."""
        return tuple(("column", name) for name in self.columns)

    def _addresses(
        self,
        secret: Key,  # noqa: ARG002 - for entities
        batch: pa.RecordBatch,  # noqa: ARG002
        rows: Words,
        key: Key,  # noqa: ARG002
    ) -> Addresses:
        """What the noise is addressed by.

        A change in one column redraws the noise of all: were some of it kept, the others would show the change.
        """
        return Addresses(rows)

    @property
    def _factor_in_steps(self) -> Floats:
        """What the normals are multiplied with, in lattice steps."""
        scaled: Floats = self._root * (self._sizes / self.step)[:, None]
        return scaled

    def _written(
        self, copy: Floats, level: Level, nulls: Sequence[Mask], kinds: Sequence[pa.DataType]
    ) -> list[pa.Array]:
        """The numbers of a copy as columns of their types."""
        if CENTRE in self._state:
            self._rescaled(copy, level.fidelity, kinds)
        for line, spec, kind in zip(copy, self._specs, kinds, strict=True):
            if spec.range is not None:
                low, high = spec.shown_range(kind)
                whole = not types.is_floating(kind)
                np.clip(line, math.ceil(low) if whole else low, math.floor(high) if whole else high, out=line)
        columns = zip(copy, nulls, kinds, self.columns, strict=True)
        return [numeric.write(values, null, kind, name) for values, null, kind, name in columns]

    def draws(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        secret = key.derive("gaussian", self.path)
        words, _ = self._read(batch)
        own = self._addresses(secret, batch, rows, key).of_rows(secret, words)
        return Stream(secret).bits("draws", own)[::2]

    def drift(self, later: Scheme) -> float:
        if not isinstance(later, GaussianScheme) or later.columns != self.columns:
            return math.inf
        return largest_variance_ratio(self.factor, later.factor)

    def paths(self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key) -> tuple[Floats, Floats]:
        """The numbers on the lattice, and the noise of each level before it is put there.

        Returns:
            The numbers, `(column, row)`, and the noise, `(level, column, row)`, in the columns' units.

        """
        nodes = tuple(self._tree.locate(level).node for level in levels)
        secret = key.derive("gaussian", self.path)
        words, on_lattice = self._read(batch)
        noise = BrownianNoise(secret, self._streams, nodes).paths(self._addresses(secret, batch, rows, key), words)
        factor = self._factor_in_steps * self.step[:, None]
        return on_lattice * self.step[:, None], np.einsum("ab,jbr->jar", factor, noise)

    def records(self, batch: pa.RecordBatch) -> Floats:
        """The numbers as they are, but for clipping, `(column, row)`; 0 where null."""
        self._read(batch)  # refuses values outside the lattice
        out = np.empty((len(self.columns), batch.num_rows))
        for i, spec in enumerate(self._specs):
            values, null = numeric.read(batch.column(spec.name))
            clipped = np.clip(values, *spec.bounds(batch.column(spec.name).type))
            out[i] = np.where(null, 0.0, clipped) if null.size else clipped
        return out

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise at time 1, in the columns' units."""
        return gram(self.factor)

    @property
    def factor(self) -> Floats:
        """Lower triangular `L`: the noise is `L·W(t)`, in the columns' units."""
        scaled: Floats = self._root * self._sizes[:, None]
        return scaled

    def _read(self, batch: pa.RecordBatch) -> tuple[list[Words], Floats]:
        """All cells of a batch as words to address them by, and on the lattice in steps."""
        on_lattice = np.empty((len(self.columns), batch.num_rows))
        words, invalid = self._cells(batch).points(slice(None), on_lattice)
        self._refuse(invalid)
        return words, on_lattice

    def _cells(self, batch: pa.RecordBatch) -> Lattice:
        """The numbers of a batch, and their lattice."""
        arrays = [batch.column(name) for name in self.columns]
        read = [numeric.read(array) for array in arrays]
        bounds = [spec.bounds(array.type) for spec, array in zip(self._specs, arrays, strict=True)]
        return Lattice([values for values, _ in read], [null for _, null in read], bounds, self.step)

    def _refuse(self, invalid: Rows) -> None:
        """Refuse a batch in which some columns have so many cells without a lattice point."""
        for name, step, count in zip(self.columns, self.step, invalid, strict=True):
            if count:
                raise SourceError(
                    f"column {name!r} must hold finite numbers of magnitude at most "
                    f"{step * lattice.LARGEST:g}, got {count} others in one batch; clean or clip them"
                )

    def _locate(self, level: Level) -> Point:
        """The point of a level on the path; refused where a column's noise is too few lattice steps, or too many."""
        point = self._tree.locate(level)
        steps = self._sizes / self.step * math.sqrt(point.node.time)
        worst = int(steps.argmin())
        if steps[worst] < FEWEST_STEPS:
            advice = (
                "leave out `integer = true`" if self._specs[worst].integer else "raise its scale or lower the level"
            )
            raise LevelError(
                f"the noise of column {self.columns[worst]!r} must be at least {FEWEST_STEPS} lattice steps of "
                f"{self.step[worst]:g}, and at fidelity {point.level.fidelity:.6g} it is {steps[worst]:.2g}; {advice}"
            )
        if not steps.max() < lattice.LARGEST / 64:
            raise LevelError(
                f"the noise of column {self.columns[int(steps.argmax())]!r} must be at most 2^46 lattice steps, and is "
                "more; lower its scale or raise the level"
            )
        return point


def encoded_clip(clip: tuple[Any, Any]) -> tuple[Any, Any]:
    """The ends of a clip as JSON can hold them."""
    low, high = (end if isinstance(end, float) else end.isoformat() for end in clip)
    return low, high
