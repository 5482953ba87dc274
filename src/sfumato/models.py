"""The public models: everything an attacker or a miner may know about how a copy was made.

A record here could be printed on a poster. It completely documents the law of its columns, so that attacks and miners
need no other knowledge. Rules for change: never remove a record or a field, never change what a field means; a reader
that meets a record it does not know says so by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sfumato.errors import ManifestError


@dataclass(frozen=True)
class Unchanged:
    """Columns that are in the copy as they are in the source."""

    kind: ClassVar[str] = "unchanged"
    columns: tuple[str, ...]
    why: str
    """`keep` or `id`, the columns' role."""


@dataclass(frozen=True)
class GaussianNoise:
    """`Y = X + Z` with `Z ~ N(0, covariance)` independent of the record and of other records (li2012, section 3.1)."""

    kind: ClassVar[str] = "gaussian-noise"
    columns: tuple[str, ...]
    covariance: tuple[tuple[float, ...], ...]
    """The lower triangle, row by row, in the columns' units, to about three digits; time counts in its type's unit."""
    noise: float
    """`σ²`: where no column has a `scale` or a stated spread, the covariance is this times the columns' own."""
    scale: tuple[float, ...]
    step: tuple[float, ...]
    """The lattice: every value in the copy is a multiple of its column's step."""
    clip: tuple[tuple[float, float] | None, ...]
    rounding: tuple[float, ...]
    """Largest correlation that rounding leaves between this copy's noise and a neighbour's increment."""
    chained: bool
    """Whether copies with the same scheme and key lie on one Markov path; else their noise is independent."""


@dataclass(frozen=True)
class UniformReplacement:
    """`Y = X` with probability `retention`, else uniform over the domain (xiao2009, eq. 1).

    Several columns are one attribute over the product of their domains (xiao2009, section 4).
    """

    kind: ClassVar[str] = "uniform-replacement"
    columns: tuple[str, ...]
    domains: tuple[dict[str, Any], ...]
    retention: float
    perturbs_null: bool
    """Whether null is one more category, after the listed ones; else nulls stay."""
    chained: bool
    """As above."""


@dataclass(frozen=True)
class Rotation:
    """`Y = M·(X - centre)/unit + v`, `M` orthogonal, both secret and the same for all records (giannella2010, III-B).

    Where noise was asked for, it is added to the record before it is rotated, so that copies of several levels are
    copies with noise, seen through one rotation.
    """

    kind: ClassVar[str] = "rotation"
    columns: tuple[str, ...]
    """Of the copy; none of them is a column of the original."""
    sources: tuple[str, ...]
    """The columns of the original."""
    centre: tuple[float, ...]
    unit: tuple[float, ...]
    clip: tuple[tuple[float, float] | None, ...]
    step: float
    """Every value in the copy is a multiple of it."""
    translated: bool
    """Whether there is a secret `v`; else it is zero, and lengths survive as distances do."""
    shuffled: bool
    """Whether the rows of the copy are in a secret order."""
    noise: float
    """`σ²`, or 0 where no noise was asked for."""
    covariance: tuple[tuple[float, ...], ...]
    """Of the noise, in the units of the original; the lower triangle, or nothing."""
    chained: bool
    """As above."""


@dataclass(frozen=True)
class Projection(Rotation):
    """The same with `M = ℓ^{-1/2}·R`, whose `ℓ x n` entries are independent standard normals (giannella2010, VI).

    Distances survive up to a factor: of one pair its square is chi-squared over `ℓ` degrees of freedom.
    """

    kind: ClassVar[str] = "projection"


Model = Unchanged | GaussianNoise | UniformReplacement | Rotation

_KINDS: dict[str, Any] = {
    record.kind: record for record in (Unchanged, GaussianNoise, UniformReplacement, Rotation, Projection)
}


def encode(model: Model) -> dict[str, Any]:
    """A model as JSON."""
    return {"kind": model.kind, **dataclasses.asdict(model)}


def decode(data: dict[str, Any]) -> Model:
    """The inverse of `encode`."""
    fields = dict(data)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise ManifestError(f"this version knows no model called {kind!r}, only {', '.join(_KINDS)}; upgrade sfumato")
    try:
        model: Model = _KINDS[kind](**{name: _frozen(value) for name, value in fields.items()})
        if isinstance(model, GaussianNoise) and [len(line) for line in model.covariance] != _triangle(model.columns):
            raise TypeError("a covariance is a lower triangle")
    except TypeError:
        raise ManifestError(f"the {kind!r} model of the manifest is malformed; ask for the copy again") from None
    return model


def narrowed(model: Model, names: Sequence[str]) -> Model:
    """The model of a copy that shows only some of the columns: noise has its marginal, and so has replacement."""
    kept = [i for i, name in enumerate(model.columns) if name in names]
    if len(kept) == len(model.columns):
        return model
    columns = tuple(model.columns[i] for i in kept)
    if isinstance(model, GaussianNoise):
        triangle = tuple(tuple(model.covariance[i][j] for j in kept if j <= i) for i in kept)
        parts: dict[str, Any] = {
            part: tuple(getattr(model, part)[i] for i in kept) for part in ("scale", "step", "clip", "rounding")
        }
        return dataclasses.replace(model, columns=columns, covariance=triangle, **parts)
    if isinstance(model, UniformReplacement):
        return dataclasses.replace(model, columns=columns, domains=tuple(model.domains[i] for i in kept))
    return dataclasses.replace(model, columns=columns)


def _triangle(columns: tuple[str, ...]) -> list[int]:
    return list(range(1, len(columns) + 1))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
