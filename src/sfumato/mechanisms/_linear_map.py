"""Secret linear maps of records: what rotation and projection share, after noise on the common path."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from sfumato.errors import PolicyError, SourceError
from sfumato.kernels import NULL, Floats, Words
from sfumato.kernels.lattice import fine_step
from sfumato.kernels.linear_map import apply_linear_map, random_orthogonal
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.keys.stream import Stream
from sfumato.levels import Level
from sfumato.mechanisms import Example, Mechanism, Scheme, Summary, number, path_name
from sfumato.mechanisms._gaussian_scheme import ROUNDED, GaussianScheme
from sfumato.mechanisms._gaussian_summary import Moments
from sfumato.mechanisms._published_statistics import bits, coarse, coarse_covariance
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.models.rotation import Rotation
from sfumato.tables import numeric

FINENESS = 2.0**-16
"""How much finer than the lattice of the noise the copy's lattice is, so that distances keep more digits than noise."""

FAR = 10.0
"""The size of a secret translation, in standard deviations of the records."""

WITHSTAND = 10
"""How many known records a copy must withstand unless the policy states another number."""


@dataclass(frozen=True)
class MapKind:
    """A kind of linear map: how its matrix is drawn, and how its columns and model are called."""

    role: str
    prefix: str
    """Columns of the copy are `prefix_1`, `prefix_2`, ..."""
    model: type[Rotation]
    is_orthogonal: bool


@dataclass(frozen=True)
class LinearMapSettings:
    """What a policy states about all columns that are mapped jointly."""

    standardise: bool = False
    translation: bool = False
    shuffle: bool = True
    noise: bool = False
    withstand: int = WITHSTAND
    accept: str | None = None
    dimensions: int | None = None

    @classmethod
    def of(cls, role: str, stated: Mapping[str, Any]) -> LinearMapSettings:
        """The settings in the policy's table of the role."""
        for key in ("standardise", "translation", "shuffle", "noise"):
            if not isinstance(stated.get(key, False), bool):
                raise PolicyError(f"`{key}` of [{role}] must be true or false, got {stated[key]!r}")
        for key in ("withstand", "dimensions"):
            value = stated.get(key, 1)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise PolicyError(f"`{key}` of [{role}] must be a whole number from 1 on, got {value!r}")
        accept = stated.get("accept")
        if stated.get("withstand", WITHSTAND) < WITHSTAND and accept is None:
            raise PolicyError(
                f"a copy that withstands fewer than {WITHSTAND} known records needs a reason; add `accept` to [{role}]"
            )
        if accept is not None and (not isinstance(accept, str) or len(accept.split()) < 3):
            raise PolicyError(
                f"`accept` of [{role}] must be the reason why the risk is taken, in words, got {accept!r}"
            )
        return cls(**stated)


class LinearMapScheme(Scheme):
    """`Y = M·((X - centre)/unit + Z) + v`, with `M` and `v` from the key.

    The noise `Z` has equal variance in all directions. Noise in the shape of the data would be rotated with them, and
    the difference of two copies would disclose `M`; this noise looks the same before and after any rotation.
    """

    def __init__(
        self, kind: MapKind, settings: LinearMapSettings, inner: GaussianScheme, state: dict[str, Any]
    ) -> None:
        self._kind, self._settings, self.inner, self._state = kind, settings, inner, state
        self.sources, self.shuffles = inner.columns, settings.shuffle
        count = settings.dimensions or len(inner.columns)
        self.columns = tuple(f"{kind.prefix}_{i + 1}" for i in range(count))
        self._centre, self._unit = np.array(state["centre"]), np.array(state["unit"])
        fits = len(self._centre) == len(self._unit) == len(self.sources)
        if not (fits and (self._unit > 0).all() and state["step"] > 0):
            raise ValueError("a linear map must have a centre and a positive unit for each column, and a step")
        self.path = path_name(kind.role, inner.path, state, count, settings.translation, settings.noise)

    def fields(self, schema: pa.Schema) -> list[pa.Field]:
        taken = set(self.columns) & set(schema.names)
        if taken:
            raise SourceError(f"a copy has a column {min(taken)!r} of its own, and so has the table; rename that one")
        return [pa.field(name, pa.float64()) for name in self.columns]

    def state(self) -> dict[str, Any]:
        return self._state

    def model(self, level: Level) -> Rotation:
        noise = self.inner.model(level)
        return self._kind.model(
            columns=self.columns,
            sources=self.sources,
            centre=tuple(self._state["centre"]),
            unit=tuple(self._state["unit"]),
            clip=noise.clip,
            step=self._state["step"],
            translated=self._settings.translation,
            shuffled=self._settings.shuffle,
            noise=noise.noise if self._settings.noise else 0.0,
            covariance=noise.covariance if self._settings.noise else (),
            collusion_resistant=True,
        )

    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        matrix, shift = self.linear_map(key)
        null = np.zeros(batch.num_rows, np.bool_)
        for name in self.sources:
            null |= np.asarray(batch.column(name).is_null())
        if not self._settings.noise:
            return [self._mapped(self.inner.records(batch), null, matrix, shift)] * len(levels)
        original, noise = self.inner.paths(batch, rows, levels, key)
        return [self._mapped(original + one, null, matrix, shift) for one in noise]

    def _mapped(self, values: Floats, null: np.ndarray, matrix: Floats, shift: Floats) -> list[pa.Array]:
        out = np.empty((len(self.columns), values.shape[1]))
        standardised = (values - self._centre[:, None]) / self._unit[:, None]
        apply_linear_map(matrix, shift, float(self._state["step"]), np.ascontiguousarray(standardised), out)
        mask = null if null.any() else np.empty(0, np.bool_)
        return [numeric.write(line, mask, pa.float64(), name) for line, name in zip(out, self.columns, strict=True)]

    def linear_map(self, key: Key) -> tuple[Floats, Floats]:
        """The secret matrix and translation."""
        secret = Stream(key.derive(self._kind.role, self.path))
        size, count = len(self.sources), len(self.columns)
        normals = _normals(secret, "matrix", count * size).reshape(count, size)
        matrix = random_orthogonal(normals) if self._kind.is_orthogonal else normals / math.sqrt(count)
        far = FAR * self._state["spread"] if self._settings.translation else 0.0
        return matrix, far * _normals(secret, "translation", count)

    def draws(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        if self._settings.noise:
            return self.inner.draws(batch, rows, key)
        values = [np.ascontiguousarray(line).view(np.uint64) for line in self.inner.records(batch)]
        missing = [np.asarray(batch.column(name).is_null()) for name in self.sources]
        values = [np.where(null, NULL, line) for line, null in zip(values, missing, strict=True)]
        stream = Stream(key.derive(self._kind.role, self.path))
        return stream.bits("draws", stream.addresses(rows, values))[::2]

    def drift(self, later: Scheme) -> float:
        if not isinstance(later, LinearMapScheme) or later.sources != self.sources:
            return math.inf
        return float((later.size / self.size) ** 2) if self._settings.noise else 1.0

    @property
    def size(self) -> float:
        """The standard deviation of the noise at time 1, before the map."""
        return float(self._state["size"])


def _identity(size: int) -> list[list[float]]:
    """The triangular factor of noise that is independent between columns."""
    return [[0.0] * i + [1.0] for i in range(size)]


def _normals(stream: Stream, lane: str, count: int) -> Floats:
    """Standard normals from addressed bits; there are few, so that the inverse distribution function is fast enough."""
    indices = np.arange(count, dtype=np.uint64)
    bits = stream.bits(lane, stream.addresses(indices, [indices]))[::2]
    drawn: Floats = ndtri(((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
    return drawn


@dataclass(frozen=True)
class LinearMapMechanism(Mechanism):
    """All columns of the role, mapped jointly."""

    reference = "giannella2010, section III-B"
    options = frozenset({"clip", "max_clipped", "scale"})
    settings = frozenset({"standardise", "translation", "shuffle", "noise", "withstand", "accept"})
    is_linear_map = True
    examples: ClassVar[tuple[Example, ...]] = (
        Example("numbers", 3, settings={"noise": True}),
        Example("numbers", 2, settings={"standardise": True}),
    )
    passes = 2
    inner: Gaussian
    scales: tuple[float, ...]
    linear_map: LinearMapSettings

    @classmethod
    @abc.abstractmethod
    def map_kind(cls) -> MapKind:
        """The kind of linear map that this mechanism draws."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.inner.columns

    @property
    def must_withstand(self) -> int | None:
        return None if self.linear_map.accept else self.linear_map.withstand

    @property
    def accepted_risk(self) -> str | None:
        return self.linear_map.accept

    @classmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> Sequence[Mechanism]:
        kind = cls.map_kind()
        linear_map = LinearMapSettings.of(kind.role, settings)
        if len(columns) < 2 and kind.is_orthogonal:
            raise PolicyError(f"the role {kind.role} needs at least two columns, which are mapped jointly; add one")
        clips = {
            name: {k: v for k, v in options.items() if k in ("clip", "max_clipped")}
            for name, options in columns.items()
        }
        scales = tuple(number(name, "scale", options.get("scale", 1.0), above=0) for name, options in columns.items())
        if not all(1e-9 <= scale <= 1e9 for scale in scales):
            raise PolicyError(
                f"`scale` of columns with the role {kind.role} must lie between 1e-9 and 1e9, got {scales}"
            )
        [inner] = Gaussian.of(clips, {})
        if not isinstance(inner, Gaussian):
            raise TypeError("noise before a linear map is gaussian")
        return [cls(inner, scales, linear_map)]

    def check(self, schema: pa.Schema) -> None:
        for name in self.columns:
            kind = schema.field(name).type
            if not numeric.is_number(kind):
                raise SourceError(f"the role {self.role} needs numbers, and column {name!r} holds {kind}; cast it")
        self.inner.check(schema)

    def summarise(self, batch: pa.RecordBatch, earlier: Summary | None = None) -> Summary:
        return self.inner.summarise(batch, earlier)

    def fit(self, summary: Summary, tree: PathTree) -> Scheme:
        """Fix centre, unit and step; each has few digits, since all are published."""
        if not isinstance(summary, Moments):
            raise TypeError("a linear map is fitted to the second summary")
        covariance, digits = coarse_covariance(summary.covariance(), summary.rows), bits(summary.rows)
        self.inner.check_clips(summary.extent)
        own, scales = np.sqrt(np.diag(covariance)), np.array(self.scales)
        if self.linear_map.standardise:
            unit = np.array([coarse(float(sd or 1.0), digits) for sd in own]) / scales
            centre = np.round(np.array(summary.means()) / unit * 2**digits) / 2**digits * unit
        else:
            unit, centre = 1 / scales, np.zeros(len(scales))
        ends = np.array([summary.extent.ends(i) for i in range(len(scales))])
        largest = float(np.sqrt(((np.abs(ends - centre[:, None]).max(axis=1) / unit) ** 2).sum()))
        spread = float(np.sqrt(((own / unit) ** 2).mean())) or 1.0
        # as large as the data vary in any direction: then no direction discloses more than the level allows
        size = coarse(float(np.sqrt(np.linalg.eigvalsh(covariance / np.outer(unit, unit))[-1])) * (1 + 2.0**-10) or 1.0)
        steps = [fine_step(size * one, float(np.abs(pair).max())) for one, pair in zip(unit, ends, strict=True)]
        state = {
            "noise": {"spread": (size * unit).tolist(), "step": steps, "root": _identity(len(unit)), ROUNDED: True},
            "size": size,
            "centre": centre.tolist(),
            "unit": unit.tolist(),
            "spread": coarse(spread),
            "step": fine_step(spread * FINENESS, (largest + 40 * FAR * spread) * 4),
        }
        return self.restore(state, tree)

    def restore(self, state: dict[str, Any], tree: PathTree) -> Scheme:
        inner = self.inner.restore(state["noise"], tree)
        if not isinstance(inner, GaussianScheme):
            raise TypeError("noise before a linear map has a shape")
        return LinearMapScheme(self.map_kind(), self.linear_map, inner, state)
