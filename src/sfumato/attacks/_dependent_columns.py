"""Dependent columns: the groups into which the columns of copies fall, where those of different groups are unrelated.

A distribution of all columns together would have to spread its classes over all combinations of what the groups do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from sfumato.attacks import Estimate, Evidence, FittedAttack
from sfumato.attacks._common_units import CommonUnits
from sfumato.attacks.evidence.lazy import Lazy, lazy
from sfumato.kernels import Floats, Rows
from sfumato.kernels.column_moments import column_means, column_units
from sfumato.kernels.evenly_spaced import evenly_spaced

_CATEGORIES = 20
"""The most categories of an attribute, the most frequent ones, by which dependence is found."""

_ROWS = 20_000
"""The most records by which dependence is found."""

_SIGNIFICANT = 4.5
"""Standard errors of a correlation that unrelated columns exceed in few tables; there, groups are not separated."""


@dataclass(frozen=True)
class Group:
    """Columns that depend on each other: of numbers, of categories, and the indices of public ones."""

    numbers: tuple[str, ...]
    attributes: frozenset[tuple[str, ...]]
    public: Rows

    def of(self, evidence: Evidence) -> Evidence:
        """What some evidence tells of these columns."""
        numbers = []
        for part in evidence.numbers:
            own = [i for i, name in enumerate(part.columns) if name in self.numbers]
            if own:
                model = part.model.narrowed([part.columns[i] for i in own])
                numbers.append(replace(part, model=model, data=_columns(part.data, own)))
        public: Floats | Lazy[Floats | None] | None = None
        if evidence.public_data is not None and len(self.public):
            whole: Lazy[Any] = lazy(evidence.public_data)
            public = whole.map(lambda values: None if values is None else values[:, self.public])
        return replace(
            evidence,
            numbers=tuple(numbers),
            categories=tuple(part for part in evidence.categories if part.model.columns in self.attributes),
            public_data=public,
        )


def _columns(data: Floats | Lazy[Floats], indices: list[int]) -> Lazy[Floats]:
    """Some columns of an array that may be lazy."""
    return lazy(data).map(lambda values: values[:, indices])


def dependent_groups(evidence: Evidence) -> list[Group]:
    """The groups of the columns of some copies; those of public columns alone are left out."""
    some = evidence.take(evenly_spaced(evidence.rows, _ROWS))
    scale = CommonUnits.of(some)
    attributes = {name: parts[0].codes for name, parts in some.attributes().items()}
    public = np.empty((some.rows, 0)) if some.public is None else some.public
    features = [_of_numbers(column) for column in scale.values(some).T]
    features += [_of_categories(codes) for codes in attributes.values()]
    features += [_of_numbers(column) for column in public.T]
    labels = connected_components(_related(features), directed=False)[1] if features else np.empty(0, np.int64)
    first, second = len(scale.columns), len(scale.columns) + len(attributes)
    names, groups = list(attributes), []
    for label in dict.fromkeys(labels[:second].tolist()):
        own = np.flatnonzero(labels == label)
        groups.append(
            Group(
                tuple(scale.columns[i] for i in own if i < first),
                frozenset(names[i - first] for i in own if first <= i < second),
                own[own >= second] - second,
            )
        )
    return groups


def fit_groups(evidence: Evidence, fit: Callable[[Evidence, int], FittedAttack], name: str) -> FittedAttack:
    """Fit an attack to each group of columns separately, given the number of groups, and join what it estimates."""
    groups = dependent_groups(evidence)
    if len(groups) < 2:
        return fit(evidence, 1)
    fitted = [(group, fit(group.of(evidence), len(groups))) for group in groups]

    def estimate(some: Evidence) -> Estimate:
        parts = [own(group.of(some)) for group, own in fitted]
        values = {column: part.values[:, i] for part in parts for i, column in enumerate(part.columns)}
        columns = tuple(column for column in evidence.columns if column in values)
        stacked = np.column_stack([values[column] for column in columns]) if columns else np.empty((some.rows, 0))
        return Estimate(name, columns, stacked, tuple(one for part in parts for one in part.posteriors))

    return estimate


def _of_numbers(column: Floats) -> Floats:
    """What a number may be related by: itself, how far it is from the mean, and whether it is missing."""
    values = column[:, None]
    scaled = np.nan_to_num((values - column_means(values)) / column_units(values))
    return np.hstack([scaled, scaled**2, np.abs(scaled), np.isnan(values)])


def _of_categories(codes: Rows) -> Floats:
    """Which of the most frequent categories a record shows."""
    frequent = np.argsort(-np.bincount(codes[codes >= 0], minlength=1))[:_CATEGORIES]
    shown: Floats = (codes[:, None] == frequent).astype(np.float64)
    return shown


def _related(features: list[Floats]) -> Floats:
    """For each two columns, whether some of their features are correlated beyond sampling error."""
    widths = [one.shape[1] for one in features]
    stacked = np.hstack(features)
    stacked = stacked - stacked.mean(axis=0)
    sizes = np.sqrt((stacked**2).sum(axis=0))
    correlations = np.abs((stacked.T @ stacked) / np.maximum(np.outer(sizes, sizes), 1e-300))
    ends = np.cumsum([0, *widths])
    largest = np.maximum.reduceat(np.maximum.reduceat(correlations, ends[:-1], axis=0), ends[:-1], axis=1)
    related: Floats = (largest * np.sqrt(len(stacked)) > _SIGNIFICANT).astype(np.float64)
    return related
