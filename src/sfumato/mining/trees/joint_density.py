"""Joint density of a few columns of the original, on a grid of cells.

Reconstruction of one column at a time, as in Agrawal and Srikant, loses interactions between columns. Here up to three
columns are reconstructed jointly: the copy's records are counted on a grid over them, and the joint density of the
original is estimated by expectation maximisation from the product of the marginal densities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.initial_density import InitialDensity
from sfumato.kernels.inversion import em_frequencies, perturbed_counts
from sfumato.kernels.noise_channel import ShearedChannel
from sfumato.kernels.reconstruction import Grid, NoiseChannel, reconstruct
from sfumato.mining.features.class_densities import grid_of
from sfumato.mining.features.features import Features, TrainingSet

_JOINT_ITERATIONS = 30
"""Iterations of the joint reconstruction: enough to find the dependence of columns, too few to fit the noise."""
MARGINAL_BINS = 48
"""The bins of a column by itself: a multiple of those of every grid, whose cells add them up."""
_MARGINAL_ITERATIONS, _TOLERANCE = 100, 2e-5
"""The largest number of iterations for one column alone, and the change of the last one."""


@dataclass(frozen=True)
class JointGrid:
    """A grid of cells over a few columns: first those without noise, then the noisy ones."""

    features: Features
    exact: tuple[int, ...]
    """The indices of categorical columns and of numeric columns without noise: the first axes."""
    noisy: tuple[int, ...]
    """The indices of the numeric columns with noise: the last axes."""
    channel: ShearedChannel | None
    """The noise channel of the noisy columns."""
    marginals: tuple[Grid, ...]
    """The grid of each noisy column by itself."""
    edges: tuple[Floats, ...]
    """The edges of the cells along each axis; for categories, their codes and one more."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The indices of the columns in the order of the axes."""
        return self.exact + self.noisy

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @property
    def are_categories(self) -> list[bool]:
        """Whether each axis is categorical, so that its cells have no order."""
        return [self.features.columns[i].size > 0 for i in self.columns]

    @property
    def retentions(self) -> list[float]:
        """The retention probability of each axis without noise."""
        return [self.features.columns[i].retention for i in self.exact]

    def class_counts(self, values: Floats, labels: Rows, classes: int) -> Floats:
        """The number of the copy's records by class, and by bin along every axis."""
        indices = [np.clip(_bins(self.edges[k], values[:, i]), 0, None) for k, i in enumerate(self.exact)]
        sizes = list(self.shape[: len(self.exact)])
        indices = [np.minimum(index, size - 1) for index, size in zip(indices, sizes, strict=True)]
        if self.channel is not None:
            indices += list(self.channel.bin_indices(values[:, list(self.noisy)]).T)
            sizes += list(self.channel.shape)
        shape = (classes, *sizes)
        keys = np.ravel_multi_index((labels, *indices), shape)
        return np.bincount(keys, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


KnownMarginals = dict[int, Floats]
"""The densities of columns by themselves, in `MARGINAL_BINS` bins: many groups have a column in common."""


class JointChannel:
    """The perturbation as a linear map from cells of the original to bins of the copy, and its adjoint.

    Leading axes, beyond those of the grid, are a stack.
    """

    def __init__(self, grid: JointGrid) -> None:
        self._retentions, self._noise, self._dimensions = grid.retentions, grid.channel, len(grid.columns)

    def forward(self, probabilities: Floats) -> Floats:
        """The distribution of the copy's records over the bins, given the original's over the cells."""
        noisy = probabilities if self._noise is None else self._noise.forward(probabilities)
        return np.maximum(self._replaced(noisy), 1e-12)

    def adjoint(self, ratios: Floats) -> Floats:
        """The expected value of `ratios` for a record of each cell."""
        mixed = self._replaced(ratios)
        return mixed if self._noise is None else self._noise.adjoint(mixed)

    def _replaced(self, table: Floats) -> Floats:
        """Mix the categories, which replacement does the same way in both directions."""
        return perturbed_counts(table, [1.0] * (table.ndim - self._dimensions) + self._retentions)


def joint_density(
    grid: JointGrid, values: Floats, counts: Floats, channel: JointChannel, known: KnownMarginals
) -> Floats:
    """The joint density of all records of the original over the cells, from the copy's values and their counts."""
    marginals = (_marginal(grid, axis, values, counts, known) for axis in range(counts.ndim))
    density: Floats = reduce(np.multiply.outer, marginals)
    for _ in range(_JOINT_ITERATIONS if counts.ndim > 1 else 0):
        density = density * channel.adjoint(counts / channel.forward(density)) / counts.sum()
    normalised: Floats = density / density.sum()
    return normalised


def _marginal(grid: JointGrid, axis: int, values: Floats, counts: Floats, known: KnownMarginals) -> Floats:
    """The marginal distribution along one axis."""
    if axis < len(grid.exact):
        observed = counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
        return em_frequencies(observed + 1e-9, [grid.retentions[axis]], iterations=500)
    marginal = grid.marginals[axis - len(grid.exact)]
    column = grid.columns[axis]
    if column not in known:
        known[column] = _reconstructed(replace(marginal, bins=(MARGINAL_BINS,)), values[:, column, None])
    cells: Floats = known[column].reshape(*marginal.bins, -1).sum(axis=1)
    return cells


def _reconstructed(marginal: Grid, values: Floats) -> Floats:
    """The density of one noisy column."""
    observed = marginal.histogram(values)
    initial = InitialDensity(marginal, observed)
    channel, start = NoiseChannel(marginal, initial.smoothing), initial.densities(observed[None])
    stack, _ = reconstruct(channel, observed[None], _MARGINAL_ITERATIONS, _TOLERANCE, start)
    density: Floats = stack[0]
    return density


def joint_grid(training: TrainingSet, columns: tuple[int, ...], bins: int) -> JointGrid:
    """A grid over some columns, with a number of bins per numeric column."""
    features = training.features
    exact = tuple(i for i in columns if not features.columns[i].deviation)
    noisy = tuple(i for i in columns if features.columns[i].deviation)
    marginals = tuple(replace(grid_of(features.columns[i], training.values[:, i]), bins=(bins,)) for i in noisy)
    edges = tuple(_edges(features.columns[i].size, training.values[:, i], bins) for i in exact)
    if not noisy:
        return JointGrid(features, exact, noisy, None, marginals, edges)
    low, high = (np.concatenate([getattr(grid, end) for grid in marginals]) for end in ("low", "high"))
    channel = ShearedChannel(low, high, bins, features.noise[np.ix_(noisy, noisy)])
    return JointGrid(features, exact, noisy, channel, marginals, edges + channel.edges)


def _edges(size: int, values: Floats, bins: int) -> Floats:
    return np.arange(size + 1.0) if size else np.linspace(values.min(), np.nextafter(values.max(), np.inf), bins + 1)


def _bins(edges: Floats, values: Floats) -> Rows:
    return np.searchsorted(edges, values, side="right") - 1
