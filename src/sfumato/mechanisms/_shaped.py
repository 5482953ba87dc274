"""The fitted gaussian mechanism: noise of a fixed shape, at any place on the path."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from sfumato.errors import LevelError, SourceError
from sfumato.kernels import Floats, Mask, Words, lattice
from sfumato.kernels.factor import gram
from sfumato.kernels.ziggurat import normals
from sfumato.keys.key import Key
from sfumato.keys.path import Node, PathTree, Point, Slot, ancestry
from sfumato.keys.stream import Stream
from sfumato.mechanisms import Scheme
from sfumato.models import GaussianNoise
from sfumato.schema import numeric
from sfumato.schema.levels import Level

FEWEST_STEPS = 4
"""Noise whose standard deviation is fewer lattice steps than this is refused: the lattice would show through."""

_CACHE = 1 << 18
"""Numbers a chunk, over all columns and nodes: what is worked on stays in a processor's cache."""

_FEWEST_ROWS, _MOST_ROWS = 1 << 12, 1 << 15
"""Rows a chunk: with fewer, calls cost more than the cache saves; with more, arrays are too large to be reused."""

_NOTHING: Floats = np.empty(0)


class Spec(Protocol):
    """What the policy says about a column."""

    @property
    def name(self) -> str: ...
    @property
    def scale(self) -> float: ...
    @property
    def integer(self) -> bool: ...
    @property
    def clip(self) -> tuple[Any, Any] | None: ...
    def bounds(self, kind: pa.DataType) -> tuple[float, float]: ...


class ShapedNoise(Scheme):
    """`Y = X + L·W(t)` on the lattice, with `L·Lᵀ` the columns' covariance."""

    def __init__(
        self, specs: Sequence[Spec], spread: list[float], step: list[float], root: list[list[float]], tree: PathTree
    ) -> None:
        self._specs, self._tree = tuple(specs), tree
        self._spread, self._step, self._lines = spread, step, root
        self.columns = tuple(spec.name for spec in specs)
        self.path = self._path()

    def fields(self, schema: pa.Schema) -> list[pa.Field]:
        kinds = [numeric.result_type(schema.field(s.name).type, integer=s.integer) for s in self._specs]
        return [pa.field(name, kind) for name, kind in zip(self.columns, kinds, strict=True)]

    def state(self) -> dict[str, Any]:
        return {"spread": self._spread, "step": self._step, "root": self._lines}

    def model(self, level: Level) -> GaussianNoise:
        point = self._locate(level)
        sizes = self._sizes()
        covariance = point.node.time * gram(self._root() * sizes[:, None])
        apart = math.sqrt(self._tree.apart(point.node.time))
        return GaussianNoise(
            columns=self.columns,
            covariance=tuple(tuple(map(float, line[: i + 1])) for i, line in enumerate(covariance)),
            noise=point.node.time,
            scale=tuple(spec.scale for spec in self._specs),
            step=tuple(self._step),
            clip=tuple(None if spec.clip is None else _plain(spec.clip) for spec in self._specs),
            rounding=tuple(
                lattice.rounding_correlation(step, size * math.sqrt(point.node.time), size * apart)
                for step, size in zip(self._step, sizes.tolist(), strict=True)
            ),
            path=self.path,
        )

    def _path(self) -> str:
        """A name for everything that the noise depends on besides the key.

        It enters the keys: noise of one shape must never be combined with noise of a slightly different shape made
        from the same draws, since the difference of two such copies of a cell would give the draws away.
        """
        content = [*self.columns, self.state(), [spec.scale for spec in self._specs], self._tree.declaration]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        points = [self._locate(level) for level in levels]
        kinds = [batch.column(name).type for name in self.columns]
        read = [numeric.read(batch.column(name)) for name in self.columns]
        out = [np.empty((len(self.columns), batch.num_rows)) for _ in points]
        secret = key.derive("gaussian", self.path)
        streams = [Stream(secret.derive("column", name)) for name in self.columns]
        nodes = ancestry(point.node for point in points)
        chunk = min(max(_CACHE // (2 * len(self.columns) + len(nodes)), _FEWEST_ROWS), _MOST_ROWS)
        for start in range(0, batch.num_rows, chunk):
            part = slice(start, start + chunk)
            cells = [(values[part], null[part]) for values, null in read]
            self._perturb(cells, kinds, rows[part], points, nodes, streams, [copy[:, part] for copy in out])
        results = [field.type for field in self.fields(batch.schema)]
        return [
            [
                numeric.write(values, null, kind, name)
                for values, (_, null), kind, name in zip(copy, read, results, self.columns, strict=True)
            ]
            for copy in out
        ]

    def _perturb(
        self,
        cells: list[tuple[Floats, Mask]],
        kinds: list[pa.DataType],
        rows: Words,
        points: list[Point],
        nodes: list[Node],
        streams: list[Stream],
        out: list[Floats],
    ) -> None:
        """Blur one chunk of rows at all points, which lie at some of the nodes."""
        count = len(rows)
        whole = np.empty((len(cells), count))
        paths = np.empty((len(points), len(cells), count))
        addresses = np.empty(2 * count, np.uint64)
        for i, (values, null) in enumerate(cells):
            low, high = self._specs[i].bounds(kinds[i])
            lost = lattice.place(values, null, low, high, self._step[i], rows, whole[i], addresses)
            if lost:
                raise SourceError(
                    f"column {self.columns[i]!r} must hold finite numbers of magnitude at most "
                    f"{self._step[i] * lattice.LARGEST:g}, got {lost} others in one batch; clean or clip them"
                )
            path = walk(streams[i], addresses, nodes)
            for place, point in enumerate(points):
                paths[place, i] = path[point.node.slot]
        factor = self._root() * (self._sizes() / self._step)[:, None]
        steps = np.array(self._step)
        for noise, copy in zip(paths, out, strict=True):
            lattice.shape(factor, noise, whole, steps, copy)

    def _locate(self, level: Level) -> Point:
        """The place of a level, refused where some column's noise would be too few steps."""
        point = self._tree.locate(level)
        steps = self._sizes() / self._step * math.sqrt(point.node.time)
        worst = int(steps.argmin())
        if steps[worst] < FEWEST_STEPS:
            advice = "leave out `integer = true`" if self._specs[worst].integer else "ask for a less trusted level"
            raise LevelError(
                f"the noise of column {self.columns[worst]!r} must be at least {FEWEST_STEPS} lattice steps of "
                f"{self._step[worst]:g}, and at fidelity {point.level.fidelity:.6g} it is {steps[worst]:.2g}; {advice}"
            )
        return point

    def _sizes(self) -> Floats:
        """The standard deviation of each column's noise at `t = 1`."""
        return np.array([s * spec.scale for s, spec in zip(self._spread, self._specs, strict=True)])

    def _root(self) -> Floats:
        matrix = np.zeros((len(self.columns), len(self.columns)))
        for i, line in enumerate(self._lines):
            matrix[i, : i + 1] = line
        return matrix


def walk(stream: Stream, addresses: Words, nodes: Sequence[Node]) -> dict[Slot, Floats]:
    """The Brownian path of each cell at each node; `nodes` come after those they depend on.

    Each normal is drawn once, whatever the number of levels that share it.
    """
    bits: dict[str, Words] = {}
    path: dict[Slot, Floats] = {}
    for node in nodes:
        lane, word = node.slot
        if lane not in bits:
            bits[lane] = stream.bits(lane, addresses)
        drawn = normals(bits[lane], word, addresses, partial(stream.bits, f"{lane}/{word}"))
        left, right = (_NOTHING if end is None else path[end.slot] for end in (node.left, node.right))
        path[node.slot] = lattice.bridge(left, right, node.weight, node.size, drawn)
    return path


def _plain(clip: tuple[Any, Any]) -> tuple[Any, Any]:
    low, high = (end if isinstance(end, float) else end.isoformat() for end in clip)
    return low, high
