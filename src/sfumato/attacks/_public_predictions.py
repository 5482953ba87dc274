"""Public predictions: what public columns tell of each noisy number, learned from the noisy numbers of other records.

Noise is independent of public columns, so that the mean of a noisy number given these is that of the original: every
record is one to learn from, and none need be known. Predictions are cross-fitted, and handed on as public columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.spatial import KDTree

from sfumato.attacks import Evidence
from sfumato.attacks.evidence.pooling import Pool, pool
from sfumato.kernels import Floats, Rows
from sfumato.kernels.column_moments import column_means, column_units
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.kernels.ridge import ridge_regression

_FOLDS = 5
"""A record is predicted by what was learned from the other parts."""

_ROWS = 10_000
"""The most records that are learned from."""

_CODED = 12
"""The most public columns whose combinations are tried as groups."""

_PRIOR = 4.0
"""The weight of the overall mean in that of a group, in records."""

_LEAST = 0.02
"""The least share of a number's noisy variance that predictions must tell to be of use."""

_FEWEST = 200
"""The fewest records of which some are neighbours."""

_MANY, _DIMENSIONS = 50, 2
"""The fewest values of a public column by which records are neighbours, and the most such columns."""

_NEAREST = (10, 40)
"""How many neighbours are averaged."""


@dataclass(frozen=True)
class _Neighbours:
    """Records by the public columns that have many values, such as coordinates on a map."""

    columns: Rows
    units: Floats
    public: Floats
    values: Floats

    @classmethod
    def of(cls, columns: Rows, public: Floats, values: Floats) -> _Neighbours:
        """Records of which others may be neighbours."""
        return cls(columns, column_units(public[:, columns]), public[:, columns], values)

    def means(self, public: Floats) -> list[Floats]:
        """The mean of each number over the nearest records, for each number of them."""
        if not len(self.columns):
            return []
        _, nearest = KDTree(self.public / self.units).query(public[:, self.columns] / self.units, max(_NEAREST))
        return [self.values[nearest[:, :count]].mean(axis=1) for count in _NEAREST]


@dataclass(frozen=True)
class _Part:
    """What was learned from all parts of the records but one."""

    tables: list[tuple[tuple[int, ...], Floats, Floats]]
    """Combinations of public columns, the values that they have, and the mean of each number for each."""
    neighbours: _Neighbours
    models: list[Callable[[Floats], Floats]]
    """One for each number."""

    def predict(self, public: Floats) -> Floats:
        """The mean of each number, given public columns."""
        means = [_looked_up(public[:, columns], *table) for columns, *table in self.tables]
        means += self.neighbours.means(public)
        return np.hstack([model(_inputs(public, means, k)) for k, model in enumerate(self.models)])


@dataclass(frozen=True)
class PublicPredictions:
    """Predictions of every number from public columns, by parts of the records."""

    pooled: Pool
    parts: list[_Part]
    useful: Rows
    """The numbers of which public columns tell something."""

    @classmethod
    def of(cls, evidence: Evidence) -> PublicPredictions | None:
        """Learn them; none if there are no public columns, or these tell nothing."""
        if evidence.public is None or not evidence.public.shape[1] or not evidence.numbers:
            return None
        pooled, some = pool(evidence.numbers), evidence.take(evenly_spaced(evidence.rows, _ROWS))
        values, public = pooled.apply(some.numbers), _filled(some.public)
        values = np.where(np.isnan(values), column_means(values), values)
        fold = _fold(public, values)
        combined = _combinations(public, values, fold)
        near = _coordinates(public)
        parts = [_learned(public[fold != i], values[fold != i], combined, near) for i in range(_FOLDS)]
        found = _by_part(parts, fold, public)
        told = 1 - ((values - found) ** 2).mean(axis=0) / np.maximum(values.var(axis=0), 1e-300)
        useful = np.flatnonzero(told > _LEAST)
        return cls(pooled, parts, useful) if len(useful) else None

    def extended(self, evidence: Evidence) -> Evidence:
        """The evidence with predictions as further public columns."""
        return replace(evidence, public_data=np.column_stack([np.asarray(evidence.public), self(evidence)]))

    def __call__(self, evidence: Evidence) -> Floats:
        """The prediction of each number of which public columns tell something."""
        values, public = self.pooled.apply(evidence.numbers), _filled(evidence.public)
        fold = _fold(public, np.where(np.isnan(values), 0.0, values))
        found: Floats = _by_part(self.parts, fold, public)[:, self.useful]
        return found


def _inputs(public: Floats, means: Sequence[Floats], number: int) -> Floats:
    """What one number is predicted from: public columns as they are, and its means over groups and neighbours."""
    return np.column_stack([public, *(one[:, number] for one in means)])


def _filled(public: Floats | None) -> Floats:
    """Public columns, a missing value as one beyond all others."""
    found: Floats = np.nan_to_num(np.asarray(public), nan=-1e9)
    return found


def _fold(public: Floats, values: Floats) -> Rows:
    """The part of each record, by what it shows: the same whenever it is looked at."""
    bits = np.ascontiguousarray(np.column_stack([public, values]), np.float64).view(np.uint64)
    mixed = np.zeros(len(bits), np.uint64)
    for column in bits.T:
        mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(_FOLDS)).astype(np.int64)


def _by_part(parts: Sequence[_Part], fold: Rows, public: Floats) -> Floats:
    """Predictions of each record by the part that it does not belong to."""
    out = np.empty((len(public), len(parts[0].models)))
    for i, part in enumerate(parts):
        rows = np.flatnonzero(fold == i)
        if len(rows):
            out[rows] = part.predict(public[rows])
    return out


def _coordinates(public: Floats) -> Rows:
    """The public columns by which records are neighbours: those of the most values."""
    if len(public) < _FEWEST:
        return np.empty(0, np.int64)
    values = np.array([len(np.unique(column)) for column in public.T])
    order = np.argsort(-values, kind="stable")  # text is hashed, and mostly has fewer values than coordinates
    return order[values[order] > _MANY][:_DIMENSIONS]


def _combinations(public: Floats, values: Floats, fold: Rows) -> list[tuple[int, ...]]:
    """The public columns and their combinations whose groups predict the best: extended as long as that helps."""
    scaled = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-300)
    coded = [i for i in range(public.shape[1]) if len(np.unique(public[:, i])) <= len(public) / 4][:_CODED]

    codes = {i: np.unique(public[:, i], return_inverse=True)[1].ravel() for i in coded}

    def left(columns: tuple[int, ...]) -> float:
        labels = np.zeros(len(public), np.int64)
        for i in columns:
            labels = np.unique(labels * (codes[i].max() + 1) + codes[i], return_inverse=True)[1].ravel()
        return float(((scaled - _means_of_others(labels, scaled, fold)) ** 2).sum())

    found: list[tuple[int, ...]] = [(i,) for i in coded]
    errors = {one: left(one) for one in [*found, *combinations(coded, 2)]}
    best = sorted(errors, key=lambda one: errors[one])[:3]
    for start in best:
        current = start
        while len(current) < len(coded):
            tried = {tuple(sorted((*current, i))): 0.0 for i in coded if i not in current}
            errors |= {one: left(one) for one in tried if one not in errors}
            following = min(tried, key=lambda one: errors[one])
            if errors[following] >= errors[current]:
                break
            current = following
        found.append(current)
    pairs = sorted((one for one in errors if len(one) == 2), key=lambda one: errors[one])[:4]
    return list(dict.fromkeys([*found, *pairs]))


def _means(public: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The values that some public columns have together, and the mean of each number for each, drawn to that of all."""
    groups, labels, counts = np.unique(public, axis=0, return_inverse=True, return_counts=True)
    level = values.mean(axis=0)
    sums = np.column_stack([np.bincount(labels.ravel(), column, len(groups)) for column in values.T])
    means: Floats = (sums + _PRIOR * level) / (counts + _PRIOR)[:, None]
    return groups, np.vstack([means, level])


def _means_of_others(labels: Rows, values: Floats, fold: Rows) -> Floats:
    """The mean of each group over records of other parts, drawn to that of all."""
    size, level = int(labels.max()) + 1, values.mean(axis=0)
    own = labels * _FOLDS + fold
    counts = np.bincount(labels, minlength=size)[labels] - np.bincount(own, minlength=size * _FOLDS)[own]
    out = np.empty_like(values)
    for k, column in enumerate(values.T):
        sums = np.bincount(labels, column, size)[labels] - np.bincount(own, column, size * _FOLDS)[own]
        out[:, k] = (sums + _PRIOR * level[k]) / (counts + _PRIOR)
    return out


def _looked_up(public: Floats, groups: Floats, means: Floats) -> Floats:
    """The mean of each number for what records have in public columns; that of all for what no other record has."""
    _, both = np.unique(np.vstack([groups, public]), axis=0, return_inverse=True)
    both = both.ravel()
    index = np.full(both.max() + 1, len(groups))
    index[both[: len(groups)]] = np.arange(len(groups))
    found: Floats = means[index[both[len(groups) :]]]
    return found


def _learned(public: Floats, values: Floats, combined: Sequence[tuple[int, ...]], near: Rows) -> _Part:
    """Means of groups and neighbours, and a regression on them; what it sees of these excludes the record itself."""
    inner = _fold(values, public)
    tables, shown = [], []
    for columns in combined:
        labels = np.unique(public[:, columns], axis=0, return_inverse=True)[1].ravel()
        shown.append(_means_of_others(labels, values, inner))
        tables.append((columns, *_means(public[:, columns], values)))
    shown += _neighbours_of_others(near, public, values, inner)
    models = [ridge_regression(_inputs(public, shown, k), target[:, None]) for k, target in enumerate(values.T)]
    return _Part(tables, _Neighbours.of(near, public, values), models)


def _neighbours_of_others(near: Rows, public: Floats, values: Floats, inner: Rows) -> list[Floats]:
    """The mean of each number over the nearest records of other parts."""
    out: list[Floats] = []
    for i in range(_FOLDS):
        found = _Neighbours.of(near, public[inner != i], values[inner != i]).means(public[inner == i])
        out = out or [np.tile(values.mean(axis=0), (len(values), 1)) for _ in found]
        for whole, part in zip(out, found, strict=True):
            whole[inner == i] = part
    return out
