"""The shape of noise for entities: its covariance between entities and within them, never less than the table's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sfumato.errors import SourceError
from sfumato.kernels import Floats, Mask, Words
from sfumato.kernels.cholesky import gram, lower_factor
from sfumato.kernels.exact_moments import resolution, to_integers
from sfumato.mechanisms import Summary
from sfumato.mechanisms._entity_rows import ENTITY_ROWS, FEWEST, EntityRows
from sfumato.mechanisms._entity_scheme import BETWEEN, CONSTANT, WITHIN
from sfumato.mechanisms._gaussian_summary import Extent, Moments
from sfumato.mechanisms._published_statistics import coarse_covariance

_LEAST_WITHIN = 0.05
"""The least variance of the noise within entities, in units of a column's own, where the column varies there at all: it
hides by how much a number was corrected that hardly ever differs between the rows of an entity."""

_LEAST_OWN = 0.1
"""The least variance, in units of its own, of the noise that a constant column shares with no other."""


@dataclass(frozen=True)
class EntityMoments(Summary):
    """The second pass over a table with entities: moments of all rows, and sums per entity."""

    moments: Moments
    entities: EntityRows

    @classmethod
    def of(cls, columns: list[tuple[Floats, Mask]], extent: Extent, ids: Words) -> EntityMoments:
        """The moments of some rows, which belong to these entities."""
        integers = [to_integers(values, null, *extent.ends(i)) for i, (values, null) in enumerate(columns)]
        cells = [np.where(null, np.nan, values) if null.size else values for values, null in columns]
        rows = EntityRows.of(ids, np.column_stack(integers), np.column_stack(cells))
        return cls(Moments.of(columns, extent), rows)

    def merge(self, other: Self) -> Self:
        return type(self)(self.moments.merge(other.moments), self.entities.merge(other.entities))


@dataclass(frozen=True)
class EntityShape:
    """The two covariances of the noise at time 1, which everybody may know."""

    factor: Floats
    """The factor of the part that rows of an entity share: a row per column, a column per normal."""
    within: Floats
    constant: tuple[bool, ...]
    """Which columns have one value in each entity."""
    rows: float
    """The largest number of rows of an entity, rounded up."""

    @property
    def between(self) -> Floats:
        """The covariance of the part that rows of an entity share."""
        return gram(self.factor)

    @classmethod
    def of(cls, summary: EntityMoments, least: Sequence[float]) -> EntityShape:
        """The covariances of the random effects, rounded up, and raised until their sum is at least that of all rows.

        Args:
            summary: the table.
            least: for each column, the least deviation of the noise within entities, where the column varies there.

        """
        entities, moments = summary.entities, summary.moments
        if int(entities.repeated.sum()) < FEWEST:
            raise SourceError(
                f"the role entity needs at least {FEWEST} entities with two complete rows or more, to tell how rows of "
                f"one entity vary, and there are {int(entities.repeated.sum())}; give the column the role id, keep or "
                "drop"
            )
        units = np.array([resolution(*moments.extent.ends(i)) for i in range(len(moments.extent.low))])
        between, within = (_positive(one * np.outer(units, units)) for one in entities.components())
        constant = np.array(entities.constant())
        within[constant], within[:, constant] = 0.0, 0.0
        varies = np.diag(within) > 0
        fewest = np.maximum(np.square(least), _LEAST_WITHIN * np.diag(moments.covariance()))
        np.fill_diagonal(within, np.where(varies, np.maximum(np.diag(within), fewest), 0.0))
        within = coarse_covariance(within, moments.rows)
        lacking = _positive(moments.covariance() - between - within)
        between = coarse_covariance(_positive(between + lacking), int(entities.repeated.sum()))
        return cls(_factor(between, constant), within, tuple(constant.tolist()), entities.most_rows)

    def state(self, spread: Sequence[float]) -> dict[str, Any]:
        """What a scheme keeps of it; a column without variance of its own has its spread between entities."""
        sizes = np.diag(self.between) + np.diag(self.within)
        return {
            BETWEEN: (self.factor + np.diag(np.where(sizes > 0, 0.0, spread))).tolist(),
            WITHIN: _lines(lower_factor(self.within)),
            CONSTANT: list(self.constant),
            ENTITY_ROWS: self.rows,
        }


def _factor(between: Floats, constant: npt.NDArray[np.bool_]) -> Floats:
    """A factor of at least this covariance, of which no column but its own uses the normal of a constant column.

    Given the others, constant columns have independent noise with the sums of absolute covariances for variances: it
    exceeds what they have in common in every direction (Gershgorin). It is at least a tenth of their variance, which a
    correction draws again.
    """
    varies = ~constant
    out = np.zeros_like(between)
    out[np.ix_(varies, varies)] = lower_factor(between[np.ix_(varies, varies)])
    root = out[np.ix_(varies, varies)]
    loads = between[np.ix_(constant, varies)] @ np.linalg.pinv(root).T
    out[np.ix_(constant, varies)] = loads
    rest = between[np.ix_(constant, constant)] - loads @ loads.T
    own = np.maximum(np.abs(rest).sum(axis=1), _LEAST_OWN * np.diag(between)[constant])
    out[constant, constant] = np.sqrt(own)
    return out


def _positive(matrix: Floats) -> Floats:
    """The part of a symmetric matrix with positive eigenvalues, in the units of its diagonal."""
    units = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    values, vectors = np.linalg.eigh(matrix / np.outer(units, units))
    kept: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(units, units)
    return kept


def _lines(factor: Floats) -> list[list[float]]:
    return [[float(entry) for entry in line[: i + 1]] for i, line in enumerate(factor)]
