"""Gaussian noise: numbers, dates and timestamps with normal noise of a known covariance (li2012)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sfumato.kernels import SpecialValues
from sfumato.kernels.covariances import symmetric
from sfumato.levels import Level
from sfumato.models import Amount, Limit, Model

Triangle = tuple[tuple[float, ...], ...]
"""A symmetric matrix by its lower triangle, row by row."""

_PER_COLUMN = ("scale", "step", "clip", "rounding")
_OPTIONAL = ("centre", "range", "special")

_SINGULAR = 1e-9
"""Directions in which columns vary by less, in the units of their variances, are those of columns that are functions
of others."""

MEASURED, SPREAD, STATED = "measured", "spread", "stated"
"""Where the shape of the noise comes from: the columns, but for a `spread` that the policy states, or a statement."""


@dataclass(frozen=True)
class GaussianNoise(Model):
    """`Y = X + Z` with `Z ~ N(0, covariance)` independent of the record and of other records (li2012, section 3.1)."""

    kind = "gaussian-noise"
    covariance: tuple[tuple[float, ...], ...]
    """The lower triangle, row by row, in the columns' units, to about three digits; time counts in its type's unit."""
    noise: float
    """`σ²`: where no column has a `scale` or a stated spread, the covariance is this times the columns' own."""
    scale: tuple[float, ...]
    step: tuple[float, ...]
    """The lattice: every value in the copy is a multiple of its column's step."""
    clip: tuple[tuple[Any, Any] | None, ...]
    """The ends in the column's units, or as dates in ISO format."""
    rounding: tuple[float, ...]
    """Largest correlation that rounding leaves between this copy's noise and a neighbour's increment."""
    collusion_resistant: bool
    """Whether copies with the same scheme and key lie on one Markov path; else their noise is independent."""
    epsilon: float | None = None
    """The covariance was measured with this ε of differential privacy; none if it was only rounded."""
    centre: tuple[float, ...] = ()
    """Where the policy asks for `rescale`, the rounded mean `c` of each column: the copy shows `c + √f·(Y - c)`."""
    range: tuple[tuple[Any, Any] | None, ...] = ()
    """Where the policy states one, the range that a column is shown in: values beyond are moved to its ends."""
    special: tuple[SpecialValues, ...] = ()
    """Where the policy states them, the values that many records share, with their shares; others vary smoothly."""
    shape: str = MEASURED
    """Where the covariance comes from; one that is stated need not be that of the columns."""
    between: tuple[tuple[float, ...], ...] = ()
    """Where records are of entities, the covariance of the part of the noise that all rows of one share, as above."""
    entity_rows: float = 1.0
    """The largest number of rows that an entity has, or may have after rows were appended."""
    entity: str = ""
    """The column of the original that names the entities."""

    @property
    def is_collusion_resistant(self) -> bool:
        return self.collusion_resistant

    @property
    def coarsened_columns(self) -> tuple[str, ...]:
        return tuple(name for name, ends in zip(self.columns, self.range, strict=False) if ends is not None)

    @property
    def shrinkage(self) -> float:
        """`√f`, by which a copy is drawn to the means where it is rescaled; else 1."""
        return 1 / math.sqrt(1 + self.noise) if self.centre else 1.0

    def special_values(self, column: str) -> SpecialValues:
        """The values of a column that many records share, with their shares; none where they are not stated."""
        return self.special[self.columns.index(column)] if self.special else None

    def deviation(self, column: str) -> float:
        """The standard deviation of the noise of a column."""
        index = self.columns.index(column)
        return math.sqrt(self.covariance[index][index])

    @property
    def entity_column(self) -> str:
        return self.entity

    @property
    def design_effect(self) -> float:
        """An upper bound, over all linear combinations of the columns: their means vary most where most is shared."""
        if not self.between:
            return 1.0
        whole, shared = (symmetric(triangle) for triangle in (self.covariance, self.between))
        units = np.sqrt(np.diag(whole))
        values, vectors = np.linalg.eigh(whole / np.outer(units, units))
        root = vectors[:, values > _SINGULAR] / np.sqrt(values[values > _SINGULAR])
        share = float(np.linalg.eigvalsh(root.T @ (shared / np.outer(units, units)) @ root)[-1])
        return 1 + (self.entity_rows - 1) * min(max(share, 0.0), 1.0)

    def promises(self, level: Level) -> list[str]:
        shown = [name for name in self.columns if name not in self.coarsened_columns]
        rescaled = [f"Numbers, rescaled: means and covariances are those of the original, of {', '.join(shown)}."]
        error = (
            f"the best linear estimate from the noisy numbers has a residual error of {level.error:.4g} of a column's "
            "variance (more where its `scale` is larger)"
        )
        stated = {
            MEASURED: "",
            SPREAD: ", as far as the spread that the owner states is that of the column",
            STATED: " where the noise varies as the columns do; its shape was stated, and where it is another, the "
            "error may be smaller or larger: an audit measures it",
        }[self.shape]
        of_means = (
            "Numbers of one entity: the mean of its rows, however many, has noise in the same proportion to its own "
            "variance, so that averaging them leaves the same residual error."
        )
        return [
            *(rescaled if self.centre and shown else []),
            f"Numbers, fidelity {level.fidelity:.6g}: {error}{stated}.",
            *([of_means] if self.between else []),
        ]

    def limits(self) -> list[Limit]:
        unclipped = tuple(name for name, clip in zip(self.columns, self.clip, strict=True) if clip is None)
        outliers = Limit(
            "Not clipped",
            unclipped,
            "An outlier many noise standard deviations from all other records can be singled out.",
        )
        how = "to few digits" if self.epsilon is None else f"with differential privacy, ε = {self.epsilon:g}"
        shape = Limit(f"The shape of the noise shows how the numeric columns vary together, {how}")
        missing = Limit("A missing value is released as missing", self.columns)
        moved = Limit(
            "Shown within a range",
            self.coarsened_columns,
            "Values beyond its ends are moved there, and the promise is that of the copy before that.",
        )
        return [
            *([outliers] if unclipped else []),
            *([] if self.shape == STATED else [shape]),
            missing,
            *([moved] if moved.columns else []),
        ]

    def describe(self, column: str, amount: Amount) -> str:
        step = self.step[self.columns.index(column)]
        noise = f"noise of standard deviation {amount(self.deviation(column))}, in steps of {amount(step)}"
        return f"{noise}, drawn to the mean by a factor of {self.shrinkage:.4g}" if self.centre else noise

    def narrowed(self, names: Sequence[str]) -> Self:
        """The model of some of the columns: the marginal distribution of the noise."""
        kept = self._kept(names)
        if len(kept) == len(self.columns):
            return self
        triangle, shared = _narrowed(self.covariance, kept), _narrowed(self.between, kept)
        parts: dict[str, Any] = {part: tuple(getattr(self, part)[i] for i in kept) for part in _PER_COLUMN}
        parts |= {part: tuple(getattr(self, part)[i] for i in kept) for part in _OPTIONAL if getattr(self, part)}
        for part in ("range", "special"):
            parts[part] = parts.get(part, ()) if any(one is not None for one in parts.get(part, ())) else ()
        columns = tuple(self.columns[i] for i in kept)
        return dataclasses.replace(self, columns=columns, covariance=triangle, between=shared, **parts)

    def with_entity_rows(self, rows: float) -> Self:
        return dataclasses.replace(self, entity_rows=max(self.entity_rows, rows)) if self.entity else self

    def validate(self) -> None:
        lines = list(range(1, len(self.columns) + 1))
        if _lengths(self.covariance) != lines or _lengths(self.between) not in ([], lines):
            raise TypeError("a covariance is a lower triangle")
        if not 1 <= self.entity_rows < math.inf:
            raise TypeError("an entity has at least one row")
        if any(len(getattr(self, part)) != len(self.columns) for part in _PER_COLUMN):
            raise TypeError("each column has one value of each kind")
        if any(len(getattr(self, part)) not in (0, len(self.columns)) for part in _OPTIONAL):
            raise TypeError(
                "each column has a mean where a copy is rescaled, and a range or special values, or none, where some do"
            )
        if self.shape not in (MEASURED, SPREAD, STATED):
            raise TypeError("the shape of noise is measured, that of a stated spread, or stated")
        if not all(map(math.isfinite, self.centre)) or any(ends is not None and len(ends) != 2 for ends in self.range):
            raise TypeError("means are finite, and a range has two ends")
        if not all(map(_are_special, self.special)):
            raise TypeError("special values are finite, each with the share of its records")


def _lengths(triangle: Triangle) -> list[int]:
    return [len(line) for line in triangle]


def _narrowed(triangle: Triangle, kept: Sequence[int]) -> Triangle:
    """The entries of some columns; nothing of nothing."""
    return tuple(tuple(triangle[i][j] for j in kept if j <= i) for i in kept if triangle)


def _are_special(pairs: SpecialValues) -> bool:
    return all(len(pair) == 2 and math.isfinite(pair[0]) and 0 < pair[1] < 1 for pair in pairs or ())
