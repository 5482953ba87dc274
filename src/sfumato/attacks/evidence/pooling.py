"""Many noisy copies as one: for normal noise, the pooled copy holds all that they tell about a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, pinvh

from sfumato.attacks.evidence.evidence import Numbers
from sfumato.attacks.evidence.statistics import means_of
from sfumato.kernels import Floats


@dataclass(frozen=True)
class Pool:
    """A weighing of copies into one, and the noise that it has left."""

    columns: tuple[str, ...]
    taken: tuple[int, ...]
    """Which of the copies count."""
    weights: Floats | None
    """One column a column of the copies that count; without weights, the only one of them is the pool."""
    covariance: Floats
    centre: Floats
    """The mean of each column of the copies that count, which stands in for what is missing."""

    def of(self, numbers: Sequence[Numbers]) -> Floats:
        """The pooled copy of some records, a record a row; missing is what all of them miss."""
        values = [numbers[i].values for i in self.taken]
        if self.weights is None:
            return values[0]
        whole = np.hstack(values)
        missing = np.isnan(whole)
        pooled: Floats = np.where(missing, self.centre, whole) @ self.weights.T
        if missing.any():
            shown = design([numbers[i] for i in self.taken], self.columns)
            pooled[(~missing).astype(np.float64) @ shown < 0.5] = np.nan
        return pooled


def pool(numbers: Sequence[Numbers]) -> Pool:
    """The best unbiased weighing: `(HᵀK⁻¹H)⁻¹HᵀK⁻¹`, with `K` the joint covariance of the copies' noise.

    On one path the most faithful copy has all the weight (li2012, Theorem 4); independent copies have the inverse of
    their noise.
    """
    taken = non_dominated(numbers)
    parts = [numbers[i] for i in taken]
    columns = tuple(dict.fromkeys(name for part in numbers for name in part.columns))
    centre = np.concatenate([means_of(part.values) for part in parts])
    if len(parts) == 1 and parts[0].columns == columns:
        return Pool(columns, tuple(taken), None, parts[0].covariance, centre)
    sizes = np.sqrt(np.concatenate([np.diag(part.covariance) for part in parts]))
    precision = _inverse(joint_noise(parts) / np.outer(sizes, sizes))
    shown = design(parts, columns)
    unit = _units(parts, columns)
    scaled = shown * unit / sizes[:, None]
    covariance = _inverse(scaled.T @ precision @ scaled)
    weights = covariance @ scaled.T @ precision
    weights = weights * unit[:, None] / sizes[None, :]
    return Pool(columns, tuple(taken), weights, covariance * np.outer(unit, unit), centre)


def non_dominated(numbers: Sequence[Numbers]) -> list[int]:
    """The copies that tell something: not those that a better one of the same path contains."""
    order = sorted(range(len(numbers)), key=lambda i: (numbers[i].model.noise, -len(numbers[i].columns)))
    kept: list[int] = []
    for i in order:
        part = numbers[i]
        better = [numbers[k] for k in kept if numbers[k].path == part.path]
        if not any(set(part.columns) <= set(other.columns) for other in better):
            kept.append(i)
    return sorted(kept)


def design(parts: Sequence[Numbers], columns: Sequence[str]) -> Floats:
    """`H`: which column each column of the copies shows (li2012, eq. 5)."""
    names = [name for part in parts for name in part.columns]
    return np.array([[float(name == column) for column in columns] for name in names])


def joint_noise(parts: Sequence[Numbers]) -> Floats:
    """The covariance of all copies' noise: `min(s, t)·K` on one path (li2012, eq. 15), none between two.

    What two columns' noise has in common is known from the best copy that shows both; where none does, nothing is
    assumed.
    """
    total: Floats = block_diag(*(part.covariance for part in parts))
    places = np.cumsum([0, *(len(part.columns) for part in parts)])
    for path in {part.path for part in parts}:
        lane = [i for i, part in enumerate(parts) if part.path == path]
        shape = _shape([parts[i] for i in lane])
        for i in lane:
            for j in lane:
                time = min(parts[i].model.noise, parts[j].model.noise)
                block = [[shape.get((a, b), 0.0) * time for b in parts[j].columns] for a in parts[i].columns]
                total[places[i] : places[i + 1], places[j] : places[j + 1]] = block
    return total


def _shape(parts: Sequence[Numbers]) -> dict[tuple[str, str], float]:
    """The covariance of a path's noise at time 1, column by column."""
    shape: dict[tuple[str, str], float] = {}
    for part in sorted(parts, key=lambda part: -part.model.noise):  # the best copy has the last word
        unit = part.covariance / part.model.noise
        shape |= {(a, b): unit[i, j] for i, a in enumerate(part.columns) for j, b in enumerate(part.columns)}
    return shape


def _units(parts: Sequence[Numbers], columns: Sequence[str]) -> Floats:
    """A size for each column, so that those of different units can be inverted together."""
    sizes = {name: part.covariance[i, i] ** 0.5 for part in parts for i, name in enumerate(part.columns)}
    return np.array([sizes[name] for name in columns])


def _inverse(matrix: Floats) -> Floats:
    inverse: Floats = pinvh(matrix, rtol=1e-10)
    return inverse
