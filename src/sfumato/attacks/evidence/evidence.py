"""Evidence: what an attacker holds. Copies of the same records, in the same order, and what it knows beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.uniform_replacement import UniformReplacement

T = TypeVar("T")


class Later(Generic[T]):
    """A field that may be given as a way to read it, which is then done at the first look.

    Most attacks give no weight to copies that a better one contains; those are never read.
    """

    def __init__(self, *default: T) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, holder: object, owner: type | None = None) -> T:
        if holder is None:  # dataclasses ask the class for a default
            if not self._default:
                raise AttributeError(self._name)
            return self._default[0]
        held = vars(holder)[self._name]
        if callable(held):
            held = vars(holder)[self._name] = held()
        value: T = held
        return value

    def __set__(self, holder: object, value: T | Callable[[], T]) -> None:
        vars(holder)[self._name] = value


@dataclass(frozen=True)
class Numbers:
    """The noisy columns of one copy."""

    model: GaussianNoise
    path: str
    """Copies that name the same path lie on it; others are blurred independently."""
    values: Later[Floats] = Later()
    """One row a record, one column a column; NaN where missing."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return self.model.columns

    @property
    def covariance(self) -> Floats:
        """Of the noise."""
        lower = np.zeros((len(self.columns), len(self.columns)))
        for i, line in enumerate(self.model.covariance):
            lower[i, : i + 1] = line
        return lower + np.tril(lower, -1).T


@dataclass(frozen=True)
class Categories:
    """One perturbed attribute of one copy: a column, or the columns of a joint group."""

    model: UniformReplacement
    path: str
    codes: Later[Rows] = Later()
    """The index of each record's value in the product of the domains; -1 where missing."""

    @property
    def size(self) -> int:
        """How many values there are."""
        return size_of(self.model)


@dataclass(frozen=True)
class MappedRows:
    """The turned columns of one copy."""

    model: Rotation
    path: str
    values: Later[Floats] = Later()
    """As above."""

    def placed(self, records: Floats) -> Floats:
        """Records of the original, as they are before they are turned."""
        held = [(-np.inf, np.inf) if clip is None else clip for clip in self.model.clip]
        low, high = (np.array([ends[i] for ends in held]) for i in (0, 1))
        centred: Floats = (np.clip(records, low, high) - np.array(self.model.centre)) / np.array(self.model.unit)
        return centred

    def restored(self, placed: Floats) -> Floats:
        """The inverse, but for clipping."""
        original: Floats = placed * np.array(self.model.unit) + np.array(self.model.centre)
        return original


def size_of(model: UniformReplacement) -> int:
    """How many values an attribute can take."""
    size = 1
    for domain in model.domains:
        size *= int(domain["count"]) + model.perturbs_null
    return size


@dataclass(frozen=True)
class Records:
    """Records as they really are: what an attacker tries to find, or happens to know."""

    columns: tuple[str, ...]
    values: Floats
    """Numbers, a record a row; NaN where missing."""
    codes: dict[tuple[str, ...], Rows] = field(default_factory=dict)
    """Categories by attribute, as in `Categories`."""

    def numbers(self, columns: Iterable[str]) -> Floats:
        """Some columns, in this order."""
        taken: Floats = self.values[:, [self.columns.index(name) for name in columns]]
        return taken

    def take(self, rows: Rows) -> Records:
        """Some of the records."""
        return Records(self.columns, self.values[rows], {name: codes[rows] for name, codes in self.codes.items()})

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Knowledge:
    """What an attacker knows beside the copies. All of it is optional; the models of the copies are always known."""

    statistics: tuple[tuple[str, ...], Floats, Floats] | None = None
    """Columns, mean and covariance of the original: the perfect knowledge of li2012, section 6.1."""
    samples: int | None = None
    """How many records of its copies it estimates statistics from, if not all (li2012, section 6.1: 100N² and more)."""
    sample: Records | None = None
    """Other records of the same population."""
    known: Records | None = None
    """The truth about some records; those in the places `places` of the copies, where these are known too."""
    places: Rows | None = None
    prior: dict[tuple[str, ...], Floats] = field(default_factory=dict)
    """The distribution of an attribute, where it is known."""


@dataclass(frozen=True)
class Evidence:
    """Copies and knowledge. It holds nothing of the original but what the knowledge declares."""

    rows: int
    numbers: tuple[Numbers, ...] = ()
    """The noisy columns of every copy."""
    categories: tuple[Categories, ...] = ()
    """The perturbed attributes of every copy."""
    public: Later[Floats | None] = Later(None)
    """Public columns, as numbers: what is shown as it is."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    turned: tuple[MappedRows, ...] = ()
    """The turned columns of every copy."""

    def take(self, rows: Rows) -> Evidence:
        """Some of the records; what is known of places in the copies is left out."""
        return replace(
            self,
            rows=len(rows),
            numbers=tuple(replace(part, values=part.values[rows]) for part in self.numbers),
            categories=tuple(replace(part, codes=part.codes[rows]) for part in self.categories),
            turned=tuple(replace(part, values=part.values[rows]) for part in self.turned),
            public=None if self.public is None else self.public[rows],
            knowledge=replace(self.knowledge, known=None, places=None),
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of models that there are."""
        parts: tuple[Numbers | Categories | MappedRows, ...] = (*self.numbers, *self.categories, *self.turned)
        return tuple(dict.fromkeys(part.model.kind for part in parts))

    @property
    def columns(self) -> tuple[str, ...]:
        """The noisy columns of all copies."""
        return tuple(dict.fromkeys(name for part in self.numbers for name in part.columns))

    def attributes(self) -> dict[tuple[str, ...], list[Categories]]:
        """The copies of each attribute, the most faithful first."""
        found: dict[tuple[str, ...], list[Categories]] = {}
        for part in self.categories:
            found.setdefault(part.model.columns, []).append(part)
        return {name: sorted(parts, key=lambda part: -part.model.retention) for name, parts in found.items()}
