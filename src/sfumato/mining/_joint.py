"""The chance of each class over a few columns at once, reconstructed.

A column at a time, as Agrawal and Srikant reconstruct, loses how columns work together in a class. Here the chance
`η(x)` of each class is found on a grid over the columns that tell most, by expectation maximisation for

    P(class, y) = Σ_x η(x)·g(x)·K(y | x)

with the density `g` of all records, reconstructed first: as `η` lies between 0 and 1, noise has little room.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.inversion import em_frequencies, replaced
from sfumato.kernels.reconstruction import Blur, Grid
from sfumato.mining._densities import grid_of
from sfumato.mining._features import Features, Lesson

_BINS = (64, 32, 22)
_STEPS = 1500
_STILL = 2e-5
_COARSE = 8
_GROUPS, _ROUGH, _FEW_STEPS = 8, 12, 60
"""How many groups are reconstructed to choose among them, in how many bins and steps."""
_FEW = 12
"""Columns of which every group is looked at; of more, the best are widened by one."""
_MOST = 3


@dataclass(frozen=True)
class Plan:
    """Which columns are taken, and how each is cut."""

    features: Features
    exact: tuple[int, ...]
    """Columns of categories, and of numbers without noise: an axis each, in front."""
    noisy: tuple[int, ...]
    grid: Grid | None
    """Of the columns with noise."""
    edges: tuple[Floats, ...]
    """Of every axis; of categories, their codes and one more."""

    @property
    def columns(self) -> tuple[int, ...]:
        """In the order of the axes."""
        return self.exact + self.noisy

    @property
    def retentions(self) -> list[float]:
        """Of the axes in front."""
        return [self.features.columns[i].retention for i in self.exact]

    def count(self, values: Floats, labels: Rows, classes: int) -> Floats:
        """Counts by class, and along every axis."""
        places = [np.clip(_bins(self.edges[k], values[:, i]), 0, None) for k, i in enumerate(self.exact)]
        sizes = [len(self.edges[k]) - 1 for k in range(len(self.exact))]
        places = [np.minimum(p, size - 1) for p, size in zip(places, sizes, strict=True)]
        if self.grid is not None:
            seen = np.floor((values[:, list(self.noisy)] - self.grid.low) / self.grid.steps).astype(np.int64)
            seen = np.clip(seen + np.array(self.grid.margin), 0, np.array(self.grid.shape) - 1)
            places += list(seen.T)
            sizes += list(self.grid.shape)
        shape = (classes, *sizes)
        keys = np.ravel_multi_index((labels, *places), shape)
        return np.bincount(keys, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


class _Channel:
    """From where records are to where they are seen, and back."""

    def __init__(self, plan: Plan) -> None:
        self._kept = [1.0, *plan.retentions]
        self._blur = None if plan.grid is None else Blur(plan.grid)

    def forward(self, chances: Floats) -> Floats:
        seen = chances if self._blur is None else self._blur.forward(chances)
        return np.maximum(replaced(seen, self._kept), 1e-12)

    def backward(self, ratios: Floats) -> Floats:
        mixed = replaced(ratios, self._kept)
        return mixed if self._blur is None else self._blur.backward(mixed)


def class_chances(lesson: Lesson, plan: Plan, steps: int = _STEPS) -> tuple[Floats, Floats]:
    """`g`, and `η` with an axis for the classes in front."""
    counts = plan.count(lesson.values, lesson.labels, len(lesson.classes))
    channel = _Channel(plan)
    total = counts.sum(axis=0, keepdims=True)
    everyone = _everyone(plan, total, channel)
    seen = counts.sum(axis=tuple(range(1, counts.ndim)), keepdims=True) + 0.5
    found = np.broadcast_to(seen / seen.sum(), (len(seen), *everyone.shape[1:]))
    for _ in range(steps):
        share = found * channel.backward(counts / channel.forward(found * everyone))
        last, found = found, share / np.maximum(share.sum(axis=0), 1e-300)
        if np.abs(found - last).mean() < _STILL:
            break
    return everyone[0], found


def _everyone(plan: Plan, total: Floats, channel: _Channel) -> Floats:
    """The density of all records, times their number."""
    if plan.grid is None:
        exact: Floats = em_frequencies(total, [1.0, *plan.retentions], steps=500) * total.sum()
        return exact
    start = (*total.shape[: 1 + len(plan.exact)], *plan.grid.bins)
    found = np.full(start, total.sum() / np.prod(start))
    for _ in range(200):
        found = found * channel.backward(total / channel.forward(found))
    return found


def plan(lesson: Lesson) -> Plan:
    """The one to three columns that tell the classes apart best in the original, as far as the copy shows it.

    Some groups look best in the copy; of these, the one is taken whose classes, reconstructed, are purest.
    """
    lesson.features.check_apart()
    groups = _telling(lesson)
    return _cut(lesson, max(groups, key=lambda group: _purity(lesson, group)), _BINS[len(groups[0]) - 1])


def _purity(lesson: Lesson, group: tuple[int, ...]) -> float:
    everyone, found = class_chances(lesson, _cut(lesson, group, _ROUGH), steps=_FEW_STEPS)
    return float((everyone * found.max(axis=0)).sum() / everyone.sum())


def _cut(lesson: Lesson, chosen: tuple[int, ...], bins: int) -> Plan:
    features = lesson.features
    exact = tuple(i for i in chosen if not features.columns[i].deviation)
    noisy = tuple(i for i in chosen if features.columns[i].deviation)
    cut = {i: grid_of(features.columns[i], lesson.values[:, i]) for i in noisy}
    grid = None
    if noisy:
        low, high, spread = (np.concatenate([getattr(cut[i], k) for i in noisy]) for k in ("low", "high", "spread"))
        grid = Grid(low, high, (bins,) * len(noisy), features.noise[np.ix_(noisy, noisy)], spread, reach=2.5)
    edges = [_edges(features.columns[i].size, lesson.values[:, i], bins) for i in exact]
    edges += [] if grid is None else [grid.edges(axis) for axis in range(len(noisy))]
    return Plan(features, exact, noisy, grid, tuple(edges))


def _telling(lesson: Lesson) -> list[tuple[int, ...]]:
    """Groups of columns in which classes differ most, beyond chance: by likelihood ratio less degrees of freedom."""
    places = [_coarse(column.size, lesson.values[:, i]) for i, column in enumerate(lesson.features.columns)]
    every, best = range(len(places)), -np.inf
    found: list[tuple[int, ...]] = []
    for size in range(1, min(_MOST, len(places)) + 1):
        wider = combinations(every, size)
        if len(places) > _FEW and found:
            wider = ((*group, i) for group in found for i in every if i not in group)  # type: ignore[assignment]
        scored = sorted(((_told(lesson, [places[i] for i in group]), tuple(group)) for group in wider), reverse=True)
        if scored[0][0] <= best:
            break
        best, found = scored[0][0], [group for _, group in scored[:_GROUPS]]
    return found


def _told(lesson: Lesson, places: list[Rows]) -> float:
    shape = (len(lesson.classes), *(int(p.max()) + 1 for p in places))
    seen = np.bincount(np.ravel_multi_index((lesson.labels, *places), shape), minlength=int(np.prod(shape)))
    counts = seen.reshape(shape[0], -1).astype(np.float64)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    ratio = counts[counts > 0] * np.log(counts[counts > 0] / expected[counts > 0])
    return float(2 * ratio.sum() - (shape[0] - 1) * ((counts.sum(axis=0) > 0).sum() - 1))


def _coarse(size: int, values: Floats) -> Rows:
    if size:
        return values.astype(np.int64)
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, _COARSE + 1)[1:-1]))
    return np.searchsorted(cuts, values)


def _edges(size: int, values: Floats, bins: int) -> Floats:
    return np.arange(size + 1.0) if size else np.linspace(values.min(), np.nextafter(values.max(), np.inf), bins + 1)


def _bins(edges: Floats, values: Floats) -> Rows:
    return np.searchsorted(edges, values, side="right") - 1
