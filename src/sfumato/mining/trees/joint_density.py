"""A few columns cut into cells, and the density of all records over them.

A column at a time, as Agrawal and Srikant reconstruct, loses how columns work together. Here up to three columns are
looked at together: records are counted on a grid over them, as the copy shows them, and their density in the original
is found by expectation maximisation from the product of the columns' own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.initial_density import InitialDensity
from sfumato.kernels.inversion import em_frequencies, replaced
from sfumato.kernels.noise_channel import ShearedChannel
from sfumato.kernels.reconstruction import Grid, NoiseChannel, reconstruct
from sfumato.mining.features.class_densities import grid_of
from sfumato.mining.features.features import Features, TrainingSet

_TOGETHER = 30
"""Rounds that columns are reconstructed together: enough to find how they hang together, too few to fit the noise."""
_STEPS, _STILL = 100, 2e-5
"""Rounds that a column is reconstructed alone, at most, and the change of the last."""


@dataclass(frozen=True)
class Plan:
    """Which columns are taken, and how each is cut."""

    features: Features
    exact: tuple[int, ...]
    """Columns of categories, and of numbers without noise: an axis each, in front."""
    noisy: tuple[int, ...]
    shear: ShearedChannel | None
    """The noise of the columns that have some."""
    alone: tuple[Grid, ...]
    """Each of them by itself."""
    edges: tuple[Floats, ...]
    """Of every axis; of categories, their codes and one more."""

    @property
    def columns(self) -> tuple[int, ...]:
        """In the order of the axes."""
        return self.exact + self.noisy

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells there are along each axis."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @property
    def are_categories(self) -> list[bool]:
        """Of every axis, whether its cells have no order."""
        return [self.features.columns[i].size > 0 for i in self.columns]

    @property
    def retentions(self) -> list[float]:
        """Of the axes in front."""
        return [self.features.columns[i].retention for i in self.exact]

    def count(self, values: Floats, labels: Rows, classes: int) -> Floats:
        """Counts by class, and along every axis."""
        places = [np.clip(_bins(self.edges[k], values[:, i]), 0, None) for k, i in enumerate(self.exact)]
        sizes = list(self.shape[: len(self.exact)])
        places = [np.minimum(p, size - 1) for p, size in zip(places, sizes, strict=True)]
        if self.shear is not None:
            places += list(self.shear.places(values[:, list(self.noisy)]).T)
            sizes += list(self.shear.shape)
        shape = (classes, *sizes)
        keys = np.ravel_multi_index((labels, *places), shape)
        return np.bincount(keys, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


class Channel:
    """From where records are to where they are seen, and back."""

    def __init__(self, plan: Plan) -> None:
        self._kept, self._shear = plan.retentions, plan.shear

    def forward(self, chances: Floats) -> Floats:
        """How likely records are seen where, that are where `chances` says."""
        seen = chances if self._shear is None else self._shear.forward(chances)
        return np.maximum(replaced(seen, self._kept), 1e-12)

    def backward(self, ratios: Floats) -> Floats:
        """The mean of `ratios` over where a record of each cell is seen."""
        mixed = replaced(ratios, self._kept)
        return mixed if self._shear is None else self._shear.backward(mixed)


def everyone(plan: Plan, values: Floats, counts: Floats, channel: Channel) -> Floats:
    """The density of all records, from their values and from how many were seen where."""
    found: Floats = reduce(np.multiply.outer, (_alone(plan, axis, values, counts) for axis in range(counts.ndim)))
    for _ in range(_TOGETHER if counts.ndim > 1 else 0):
        found = found * channel.backward(counts / channel.forward(found)) / counts.sum()
    whole: Floats = found / found.sum()
    return whole


def _alone(plan: Plan, axis: int, values: Floats, counts: Floats) -> Floats:
    """The distribution along one axis by itself."""
    if axis < len(plan.exact):
        seen = counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
        return em_frequencies(seen + 1e-9, [plan.retentions[axis]], steps=500)
    grid = plan.alone[axis - len(plan.exact)]
    seen = grid.count(values[:, plan.columns[axis], None])
    start = InitialDensity(grid, seen)
    found, _ = reconstruct(NoiseChannel(grid, start.mixing), seen[None], _STEPS, _STILL, start.of(seen[None]))
    alone: Floats = found[0]
    return alone


def cut(lesson: TrainingSet, chosen: tuple[int, ...], bins: int) -> Plan:
    """Some columns, each of numbers in so many cells."""
    features = lesson.features
    exact = tuple(i for i in chosen if not features.columns[i].deviation)
    noisy = tuple(i for i in chosen if features.columns[i].deviation)
    alone = tuple(replace(grid_of(features.columns[i], lesson.values[:, i]), bins=(bins,)) for i in noisy)
    edges = tuple(_edges(features.columns[i].size, lesson.values[:, i], bins) for i in exact)
    if not noisy:
        return Plan(features, exact, noisy, None, alone, edges)
    low, high = (np.concatenate([getattr(grid, end) for grid in alone]) for end in ("low", "high"))
    shear = ShearedChannel(low, high, bins, features.noise[np.ix_(noisy, noisy)])
    return Plan(features, exact, noisy, shear, alone, edges + shear.edges)


def _edges(size: int, values: Floats, bins: int) -> Floats:
    return np.arange(size + 1.0) if size else np.linspace(values.min(), np.nextafter(values.max(), np.inf), bins + 1)


def _bins(edges: Floats, values: Floats) -> Rows:
    return np.searchsorted(edges, values, side="right") - 1
