"""The channel matrix of correlated Gaussian noise on a few columns, factorised along sheared axes.

Noise of covariance `L·D·Lᵀ` (`L` unit lower triangular, `D` diagonal) is independent along the sheared axes `L⁻¹·y`.
There a value at `x` is observed around `L⁻¹·x`, so that along each axis the probability of a bin depends only on the
original's cell along that axis and the axes before it: one small matrix per axis, however the columns are correlated.
Observed bins are half a noise deviation wide; narrower ones would carry no more information.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from sfumato.kernels import Floats, Rows
from sfumato.kernels.covariances import nearest_covariance

_BIN_WIDTH = 0.5
"""The width of an observed bin, in noise deviations."""
_LEAST_SHARE = 1e-4
"""The least relative noise variance in any direction: rounding of a published covariance may have removed it."""
_REACH = 2.5
"""The margin of observed bins beyond the box, in deviations; values further out are counted in the last bin."""


class ShearedChannel:
    """The noise channel from equal cells over a box to observed bins along sheared axes."""

    def __init__(self, low: Floats, high: Floats, bins: int, noise: Floats) -> None:
        factor = np.linalg.cholesky(nearest_covariance(noise, np.sqrt(np.diag(noise)), _LEAST_SHARE))
        deviations = np.diag(factor)
        self._shear = np.linalg.inv(factor / deviations)
        self.edges = tuple(np.linspace(a, b, bins + 1) for a, b in zip(low, high, strict=True))
        widths = (high - low) / bins
        self._observed_edges, self._matrices = [], []
        for axis, row in enumerate(self._shear):
            centres = _sheared_centres(row[: axis + 1], self.edges)
            # a value may lie anywhere in its cell
            deviation = np.sqrt(deviations[axis] ** 2 + (row * widths) @ (row * widths) / 12)
            margin, step = _REACH * deviation, max(_BIN_WIDTH * deviation, widths[axis])
            edges = np.arange(centres.min() - margin, centres.max() + margin + step, step)
            self._observed_edges.append(edges)
            open_ended = np.concatenate([[-np.inf], edges[1:-1], [np.inf]])
            cumulative = ndtr((open_ended[:, None] - centres[..., None, :]) / deviation)
            self._matrices.append(np.diff(cumulative, axis=-2))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of observed bins along each sheared axis."""
        return tuple(len(edges) - 1 for edges in self._observed_edges)

    def bin_indices(self, values: Floats) -> Rows:
        """The observed bin of each noisy record, one index per axis."""
        sheared = values @ self._shear.T
        indices = [
            np.searchsorted(edges[1:-1], column, "right")
            for edges, column in zip(self._observed_edges, sheared.T, strict=True)
        ]
        return np.stack(indices, axis=1)

    def forward(self, probabilities: Floats) -> Floats:
        """The probabilities of the observed bins, given those of the cells; leading axes are a stack."""
        stack = probabilities.shape[: probabilities.ndim - len(self._matrices)]
        observed = probabilities[..., None]
        for axis in reversed(range(len(self._matrices))):
            observed = self._matrices[axis] @ observed
            observed = observed.reshape(*observed.shape[:-2], -1)
        return observed.reshape(*stack, *self.shape)

    def adjoint(self, ratios: Floats) -> Floats:
        """The expectation of `ratios` over the observed bin, given each cell of the original."""
        stack = ratios.shape[: ratios.ndim - len(self._matrices)]
        means = ratios.reshape(*stack, self.shape[0], -1)
        for axis, matrix in enumerate(self._matrices):
            means = np.swapaxes(matrix, -1, -2) @ means
            if axis + 1 < len(self._matrices):
                means = means.reshape(*means.shape[:-1], self.shape[axis + 1], -1)
        expected: Floats = means[..., 0]
        return expected


def _sheared_centres(row: Floats, edges: tuple[Floats, ...]) -> Floats:
    """The sheared coordinate `row·x` at the centres of all cells, over the axes up to the one of this row."""
    total = np.zeros(())
    for weight, ends in zip(row, edges, strict=False):
        total = np.add.outer(total, weight * (ends[1:] + ends[:-1]) / 2)
    return total
