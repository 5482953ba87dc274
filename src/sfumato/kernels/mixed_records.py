"""Mixed records: perturbed numbers and categories, and public columns, in common units, with their known noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats, Rows, SpecialValues
from sfumato.kernels.column_moments import column_units
from sfumato.kernels.covariances import nearest_covariance
from sfumato.kernels.latent_class import Channel, Observed, without_rare_patterns

LARGEST_DOMAIN = 300
"""Attributes with more categories are left out."""
_FEW = 50
"""Public columns with at most this many values are treated as categories."""
_FEW_MISSING = 0.02
"""Where a smaller share of values is missing, it tells nothing of a record."""
_MOST_COMBINATIONS = 12
"""The most combinations of special values."""
_CERTAIN = 1 - 1e-6
"""The retention of a category that was not perturbed."""


@dataclass(frozen=True)
class MixedRecords:
    """How records are read: numbers in common units; attributes, public columns and what is missing as categories."""

    units: Floats
    """Of the perturbed numbers, and of the public ones after them."""
    public_numbers: Rows
    public_values: dict[int, Floats]
    """The values of the public columns that are treated as categories."""
    gaps: Rows
    """The columns of numbers whose missing values tell something of a record: whether one is missing is a category."""
    channel: Channel
    steps: Floats
    """The lattice that each perturbed number lies on, in common units; zero for scores."""
    special: tuple[SpecialValues, ...] = ()
    """Of each perturbed number, in common units."""

    @classmethod
    def of(
        cls,
        numbers: Floats,
        noise: Floats,
        steps: Floats,
        attributes: Sequence[tuple[float, int]],
        public: Floats,
        special: Sequence[SpecialValues] = (),
        categories: Sequence[Floats | None] = (),
    ) -> MixedRecords:
        """The reading of records with noise of some covariance, and attributes of some retention and size.

        The categories of an attribute are given where they are numbers.
        """
        few, many = _public_kinds(public)
        values = np.hstack([numbers, public[:, many]])
        units, own, gaps = column_units(values), numbers.shape[1], _gaps(values)
        scaled = np.zeros((len(units), len(units)))
        if own:
            relative = noise / np.outer(units[:own], units[:own])
            scaled[:own, :own] = nearest_covariance(relative, np.ones(own)) + 1e-9 * np.eye(own)
        retentions = (*(min(retention, _CERTAIN) for retention, _ in attributes), *[_CERTAIN] * (len(few) + len(gaps)))
        sizes = (*(size for _, size in attributes), *map(len, few.values()), *(2 for _ in gaps))
        shared = tuple(
            None if values is None else tuple((value / unit, share) for value, share in values)
            for values, unit in zip(_most_shared(special), units, strict=False)
        )
        channel = Channel(scaled, retentions, sizes, (*categories, *[None] * (len(sizes) - len(categories))))
        return cls(units, many, few, gaps, channel, steps / units[:own], shared)

    def observed(self, numbers: Floats, codes: Sequence[Rows], public: Floats) -> Observed:
        """Some records as they are shown."""
        values = np.hstack([numbers, public[:, self.public_numbers]]) / self.units
        further = [_encoded(public[:, i], distinct) for i, distinct in self.public_values.items()]
        further += [np.isnan(values[:, i]).astype(np.int64) for i in self.gaps]
        return Observed(without_rare_patterns(values), (*codes, *further))


def _most_shared(special: Sequence[SpecialValues]) -> list[SpecialValues]:
    """The special values of as many columns as classes can have, in all combinations; those of most records first."""
    order = sorted(range(len(special)), key=lambda i: -sum(share for _, share in special[i] or ()))
    found, combinations = list(special), 1
    for i in order:
        if combinations * (1 + len(special[i] or ())) > _MOST_COMBINATIONS:
            found[i] = None  # they are found as any other atoms are
        else:
            combinations *= 1 + len(special[i] or ())
    return found


def _gaps(values: Floats) -> Rows:
    """The columns in which more than a few values are missing, and not all."""
    share = np.isnan(values).mean(axis=0) if len(values) else np.zeros(values.shape[1])
    return np.flatnonzero((share > _FEW_MISSING) & (share < 1 - _FEW_MISSING))


def _public_kinds(public: Floats) -> tuple[dict[int, Floats], Rows]:
    """The values of the public columns that are treated as categories, and the indices of those that are numbers."""
    distinct = [np.unique(line[~np.isnan(line)]) for line in public.T]
    few = {i: values for i, values in enumerate(distinct) if 1 < len(values) <= _FEW}
    many = np.array([i for i, values in enumerate(distinct) if len(values) > _FEW], np.int64)
    return few, many


def _encoded(column: Floats, distinct: Floats) -> Rows:
    """The index of each value, or -1."""
    found = np.searchsorted(distinct, column).clip(0, len(distinct) - 1)
    return np.where(distinct[found] == column, found, -1)
