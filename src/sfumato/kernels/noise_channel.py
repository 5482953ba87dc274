"""Noise on a few columns, over a box of cells: from where values are to where they are seen, and back.

Noise of covariance `L·D·Lᵀ` (`L` unit lower triangular, `D` diagonal) is independent along the sheared axes `L⁻¹·y`.
There a value at `x` lies about `L⁻¹·x`, so that along each axis the chance of a bin depends on the cell of that axis
and of those before it: one small table an axis, however the columns are correlated. Bins of what is seen are half a
deviation of the noise wide; narrower ones would tell no more.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from sfumato.kernels import Floats, Rows
from sfumato.kernels.covariances import positive

_WIDTH = 0.5
"""Of a bin of noisy values, in deviations of the noise."""
_LEAST = 1e-4
"""The least share of noise in any direction: a covariance that was rounded may have lost it."""
_REACH = 2.5
"""Deviations beyond the box that have bins of their own; what lies further out is in the last one."""


class ShearedChannel:
    """Equal cells over a box, and the noise that takes values out of them."""

    def __init__(self, low: Floats, high: Floats, bins: int, noise: Floats) -> None:
        factor = np.linalg.cholesky(positive(noise, np.sqrt(np.diag(noise)), _LEAST))
        deviations = np.diag(factor)
        self._shear = np.linalg.inv(factor / deviations)
        self.edges = tuple(np.linspace(a, b, bins + 1) for a, b in zip(low, high, strict=True))
        widths = (high - low) / bins
        self._ends, self._tables = [], []
        for axis, row in enumerate(self._shear):
            middles = _sums(row[: axis + 1], self.edges)
            # a value may lie anywhere in its cell
            deviation = np.sqrt(deviations[axis] ** 2 + (row * widths) @ (row * widths) / 12)
            beyond, step = _REACH * deviation, max(_WIDTH * deviation, widths[axis])
            ends = np.arange(middles.min() - beyond, middles.max() + beyond + step, step)
            self._ends.append(ends)
            sure = np.concatenate([[-np.inf], ends[1:-1], [np.inf]])
            self._tables.append(np.diff(ndtr((sure[:, None] - middles[..., None, :]) / deviation), axis=-2))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many bins there are of noisy values, along each axis."""
        return tuple(len(ends) - 1 for ends in self._ends)

    def places(self, values: Floats) -> Rows:
        """The bins of noisy values, a row each."""
        sheared = values @ self._shear.T
        found = [
            np.searchsorted(ends[1:-1], column, "right") for ends, column in zip(self._ends, sheared.T, strict=True)
        ]
        return np.stack(found, axis=1)

    def forward(self, chances: Floats) -> Floats:
        """How likely each bin is, for values that are where `chances` says; other axes may stand in front."""
        front = chances.shape[: chances.ndim - len(self._tables)]
        seen = chances[..., None]
        for axis in reversed(range(len(self._tables))):
            seen = self._tables[axis] @ seen
            seen = seen.reshape(*seen.shape[:-2], -1)
        return seen.reshape(*front, *self.shape)

    def backward(self, ratios: Floats) -> Floats:
        """The mean of `ratios` over where a value of each cell is seen: the transpose."""
        front = ratios.shape[: ratios.ndim - len(self._tables)]
        means = ratios.reshape(*front, self.shape[0], -1)
        for axis, table in enumerate(self._tables):
            means = np.swapaxes(table, -1, -2) @ means
            if axis + 1 < len(self._tables):
                means = means.reshape(*means.shape[:-1], self.shape[axis + 1], -1)
        found: Floats = means[..., 0]
        return found


def _sums(row: Floats, edges: tuple[Floats, ...]) -> Floats:
    """`row·x` at the middles of all cells of the axes up to one."""
    total = np.zeros(())
    for weight, ends in zip(row, edges, strict=False):
        total = np.add.outer(total, weight * (ends[1:] + ends[:-1]) / 2)
    return total
