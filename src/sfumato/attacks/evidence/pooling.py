"""Pooling of copies: the minimum-variance combination of noisy copies, a sufficient statistic for Gaussian noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, pinvh

from sfumato.attacks.evidence.evidence import Numbers
from sfumato.kernels import Floats
from sfumato.kernels.column_moments import column_means


@dataclass(frozen=True)
class Pool:
    """Weights that combine copies into one, and the covariance of the noise of the result."""

    columns: tuple[str, ...]
    used: tuple[int, ...]
    """The indices of the copies that have a weight."""
    weights: Floats | None
    """One row per column of the result and one column per column of the used copies; none if one copy is the result."""
    covariance: Floats
    """The covariance of the noise of the pooled copy."""
    means: Floats
    """The mean of each column of the used copies, which replaces missing values."""

    def apply(self, numbers: Sequence[Numbers]) -> Floats:
        """The pooled copy, one row per record; a value is missing where all used copies lack it."""
        values = [numbers[i].values for i in self.used]
        if self.weights is None:
            return values[0]
        stacked = np.hstack(values)
        missing = np.isnan(stacked)
        pooled: Floats = np.where(missing, self.means, stacked) @ self.weights.T
        if missing.any():
            design = design_matrix([numbers[i] for i in self.used], self.columns)
            pooled[(~missing).astype(np.float64) @ design < 0.5] = np.nan
        return pooled


def pool(numbers: Sequence[Numbers]) -> Pool:
    """The best linear unbiased combination: `(HᵀK⁻¹H)⁻¹HᵀK⁻¹`, with `K` the joint covariance of the copies' noise.

    On one path the most faithful copy has all the weight (li2012, Theorem 4); independent copies are weighted by the
    inverse covariance of their noise.
    """
    used = non_dominated(numbers)
    parts = [numbers[i] for i in used]
    columns = tuple(dict.fromkeys(name for part in numbers for name in part.columns))
    means = np.concatenate([column_means(part.values) for part in parts])
    if len(parts) == 1 and parts[0].columns == columns:
        return Pool(columns, tuple(used), None, parts[0].covariance, means)
    deviations = np.sqrt(np.concatenate([np.diag(part.covariance) for part in parts]))
    precision = _inverse(joint_noise(parts) / np.outer(deviations, deviations))
    unit = _units(parts, columns)
    scaled = design_matrix(parts, columns) * unit / deviations[:, None]
    covariance = _inverse(scaled.T @ precision @ scaled)
    weights = covariance @ scaled.T @ precision
    weights = weights * unit[:, None] / deviations[None, :]
    return Pool(columns, tuple(used), weights, covariance * np.outer(unit, unit), means)


def non_dominated(numbers: Sequence[Numbers]) -> list[int]:
    """The indices of the copies that add information: those that no better copy on the same path contains."""
    order = sorted(range(len(numbers)), key=lambda i: (numbers[i].model.noise, -len(numbers[i].columns)))
    kept: list[int] = []
    for i in order:
        part = numbers[i]
        better = [numbers[k] for k in kept if numbers[k].path == part.path]
        if not any(set(part.columns) <= set(other.columns) for other in better):
            kept.append(i)
    return sorted(kept)


def design_matrix(parts: Sequence[Numbers], columns: Sequence[str]) -> Floats:
    """`H`, the 0-1 matrix that assigns each column of the copies its column of the original (li2012, eq. 5)."""
    names = [name for part in parts for name in part.columns]
    return np.array([[float(name == column) for column in columns] for name in names])


def joint_noise(parts: Sequence[Numbers]) -> Floats:
    """The joint covariance of all copies' noise: `min(s, t)·K` on one path (li2012, eq. 15), zero between two paths.

    The noise covariance of two columns is taken from the best copy that contains both; where none does, it is zero.
    """
    total: Floats = block_diag(*(part.covariance for part in parts))
    offsets = np.cumsum([0, *(len(part.columns) for part in parts)])
    for path in {part.path for part in parts}:
        members = [i for i, part in enumerate(parts) if part.path == path]
        shape = _unit_noise([parts[i] for i in members])
        for i in members:
            for j in members:
                time = min(parts[i].model.noise, parts[j].model.noise)
                block = [[shape.get((a, b), 0.0) * time for b in parts[j].columns] for a in parts[i].columns]
                total[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] = block
    return total


def _unit_noise(parts: Sequence[Numbers]) -> dict[tuple[str, str], float]:
    """The noise covariance of a path at `σ² = 1`, by pairs of columns."""
    shape: dict[tuple[str, str], float] = {}
    for part in sorted(parts, key=lambda part: -part.model.noise):  # the best copy overwrites the others
        unit = part.covariance / part.model.noise
        shape |= {(a, b): unit[i, j] for i, a in enumerate(part.columns) for j, b in enumerate(part.columns)}
    return shape


def _units(parts: Sequence[Numbers], columns: Sequence[str]) -> Floats:
    """A scale for each column, so that a matrix over columns of different units is well conditioned."""
    deviations = {name: part.covariance[i, i] ** 0.5 for part in parts for i, name in enumerate(part.columns)}
    return np.array([deviations[name] for name in columns])


def _inverse(matrix: Floats) -> Floats:
    inverse: Floats = pinvh(matrix, rtol=1e-10)
    return inverse
