"""Evidence of an attacker: copies of the same records, in the same order, and background knowledge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.attacks.evidence.lazy import Lazy, lazy, value_of
from sfumato.kernels import Floats, Rows
from sfumato.kernels.covariances import symmetric
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.uniform_replacement import UniformReplacement


@dataclass(frozen=True)
class Numbers:
    """The numeric columns of one copy that carry Gaussian noise."""

    model: GaussianNoise
    path: str
    """Copies with the same path identity lie on one path; the noise of others is independent."""
    data: Floats | Lazy[Floats]
    """What `values` returns, or a way to read it."""
    copula: GaussianCopula | None = None
    """The copula of whose scores these are the means, if they are no values of columns."""

    @property
    def values(self) -> Floats:
        """One row per record and one column per column of the model; NaN where missing."""
        return value_of(self.data)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.model.columns

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise, as a full matrix."""
        return symmetric(self.model.covariance)


@dataclass(frozen=True)
class Categories:
    """One categorical attribute of one copy: a column, or the columns of a joint group."""

    model: UniformReplacement
    path: str
    """Copies with the same path identity lie on one path; others are replaced independently."""
    data: Rows | Lazy[Rows]
    """What `codes` returns, or a way to read it."""

    @property
    def codes(self) -> Rows:
        """The index of each record's value in the product of the domains; -1 where missing."""
        return value_of(self.data)

    @property
    def size(self) -> int:
        """The number of categories."""
        return self.model.size


@dataclass(frozen=True)
class MappedRows:
    """The columns of one copy that are a secret linear map of numeric columns: a rotation or a projection."""

    model: Rotation
    path: str
    """Copies with the same path identity lie on one path, under one map."""
    data: Floats | Lazy[Floats]
    """What `values` returns, or a way to read it."""

    @property
    def values(self) -> Floats:
        """One row per record and one column per column of the model; NaN where missing."""
        return value_of(self.data)

    def standardised(self, records: Floats) -> Floats:
        """Records of the original in the coordinates that the map is applied to: clipped, centred and scaled."""
        bounds = [(-np.inf, np.inf) if clip is None else clip for clip in self.model.clip]
        low, high = (np.array([ends[i] for ends in bounds]) for i in (0, 1))
        centred: Floats = (np.clip(records, low, high) - np.array(self.model.centre)) / np.array(self.model.unit)
        return centred

    def original_units(self, standardised: Floats) -> Floats:
        """The inverse of `standardised`, except for clipping."""
        original: Floats = standardised * np.array(self.model.unit) + np.array(self.model.centre)
        return original


@dataclass(frozen=True)
class Records:
    """Original records: the target of an attack, or those that an attacker knows."""

    columns: tuple[str, ...]
    values: Floats
    """The numeric columns, one row per record; NaN where missing."""
    codes: dict[tuple[str, ...], Rows] = field(default_factory=dict)
    """The categories of each attribute, encoded as in `Categories`."""

    def numbers(self, columns: Iterable[str]) -> Floats:
        """Some numeric columns, in this order."""
        selected: Floats = self.values[:, [self.columns.index(name) for name in columns]]
        return selected

    def take(self, rows: Rows) -> Records:
        """The records in these rows."""
        return Records(self.columns, self.values[rows], {name: codes[rows] for name, codes in self.codes.items()})

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Knowledge:
    """Background knowledge of an attacker, all of it optional; the models of the copies are always known."""

    statistics: tuple[tuple[str, ...], Floats, Floats] | None = None
    """Columns, mean and covariance of the original: the perfect knowledge of li2012, section 6.1."""
    samples: int | None = None
    """The number of records of the copies that statistics are estimated from, by default all of them (li2012, section
    6.1: 100N² and more)."""
    sample: Records | None = None
    """Other records of the same population."""
    known: Records | None = None
    """The original values of some records of the copies."""
    known_rows: Rows | None = None
    """The row indices of the known records in the copies, where the attacker knows these too."""
    prior: dict[tuple[str, ...], Floats] = field(default_factory=dict)
    """The distribution of an attribute, where it is known."""

    @property
    def records(self) -> Records | None:
        """Original records to learn from: the sample or, without one, the known records."""
        return self.known if self.sample is None else self.sample


@dataclass(frozen=True)
class Evidence:
    """Everything that an attack may use: copies and background knowledge.

    It contains nothing of the original except what the knowledge declares. Copies may be lazy: `take` and
    `dataclasses.replace` do not read them.
    """

    rows: int
    """The number of records."""
    numbers: tuple[Numbers, ...] = ()
    """The noisy numeric columns of every copy."""
    categories: tuple[Categories, ...] = ()
    """The perturbed categorical attributes of every copy."""
    public_data: Floats | Lazy[Floats | None] | None = None
    """What `public` returns, or a way to read it."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """The background knowledge of the attacker."""
    linear_maps: tuple[MappedRows, ...] = ()
    """The rotated or projected columns of every copy."""
    position_data: Floats | Lazy[Floats | None] | None = None
    """What `positions` returns, or a way to read it."""

    @property
    def positions(self) -> Floats | None:
        """The position of each record in the orders that recipients see: of rows, or of published ids, if any."""
        return value_of(self.position_data)

    @property
    def public(self) -> Floats | None:
        """The columns that are released unchanged, as numbers, if there are any."""
        return value_of(self.public_data)

    def take(self, rows: Rows) -> Evidence:
        """The evidence about the records in these rows, without knowledge of individual records."""
        return replace(
            self,
            rows=len(rows),
            numbers=tuple(replace(part, data=_selected(part.data, rows)) for part in self.numbers),
            categories=tuple(replace(part, data=_selected(part.data, rows)) for part in self.categories),
            linear_maps=tuple(replace(part, data=_selected(part.data, rows)) for part in self.linear_maps),
            public_data=None if self.public_data is None else _selected(self.public_data, rows),
            position_data=None if self.position_data is None else _selected(self.position_data, rows),
            knowledge=replace(self.knowledge, known=None, known_rows=None),
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the models of the copies, without repetition."""
        parts: tuple[Numbers | Categories | MappedRows, ...] = (*self.numbers, *self.categories, *self.linear_maps)
        return tuple(dict.fromkeys(part.model.kind for part in parts))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the noisy numeric columns of all copies, without repetition."""
        return tuple(dict.fromkeys(name for part in self.numbers for name in part.columns))

    def features(self) -> Floats:
        """All columns of all copies side by side, public ones included, one row per record."""
        parts = [part.values for part in self.numbers]
        parts += [part.codes[:, None].astype(np.float64) for part in self.categories]
        parts += [] if self.public is None else [self.public]
        return np.hstack(parts)

    def attributes(self) -> dict[tuple[str, ...], list[Categories]]:
        """The copies of each categorical attribute, the most faithful first."""
        copies: dict[tuple[str, ...], list[Categories]] = {}
        for part in self.categories:
            copies.setdefault(part.model.columns, []).append(part)
        return {name: sorted(parts, key=lambda part: -part.model.retention) for name, parts in copies.items()}


def _selected(data: Any, rows: Rows) -> Lazy[Any]:
    """Some rows of an array that may be lazy, or of one that may be absent; nothing is read."""
    return lazy(data).map(lambda values: None if values is None else values[rows])
