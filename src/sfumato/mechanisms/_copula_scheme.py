"""The fitted copula mechanism: normal scores of records, on the Brownian path of their correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats, Words
from sfumato.kernels.cholesky import largest_variance_ratio
from sfumato.kernels.covariances import symmetric
from sfumato.kernels.score_arrays import FURTHEST
from sfumato.kernels.scores import degrade
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree, Point
from sfumato.keys.stream import Stream
from sfumato.levels import Level
from sfumato.mechanisms import Scheme, path_name
from sfumato.mechanisms._brownian_noise import BrownianNoise
from sfumato.mechanisms._score_sampler import SWEEPS, ScoreSampler
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.tables.margin import Cells, Margin

_CHUNK = 1 << 15
"""Rows that are worked on at once: with fewer, calls cost more than a processor's cache saves."""


class CopulaScheme(Scheme):
    """`Y = Q(Φ(√f·(z + L·W(t))))` with `L·Lᵀ` the correlations of the scores `z`."""

    is_shaped = True

    def __init__(self, columns: tuple[str, ...], state: dict[str, Any], tree: PathTree) -> None:
        self.columns, self._state, self._tree = columns, state, tree
        margins = tuple(Margin.decode(data) for data in state["margins"])
        maps = tuple((tuple(before), tuple(after)) for before, after in state["maps"])
        self.sampler = ScoreSampler(margins, _symmetric(state["correlation"]), maps)
        if len(margins) != len(columns) or not self.sampler.size == len(maps) == len(self.sampler.correlation):
            raise ValueError("each column must have a margin, and each score a line of correlations and a map")
        if not all(_is_map(before, after) for before, after in maps):
            raise ValueError("a map must send rising scores to as many others that do not fall")
        self.root = np.linalg.cholesky(self.sampler.correlation).astype(np.float64)
        self.path = path_name(*columns, state, SWEEPS, tree.declaration)

    def fields(self, schema: pa.Schema) -> list[pa.Field]:
        return [
            pa.field(name, margin.result_type(schema.field(name).type))
            for name, margin in zip(self.columns, self.sampler.margins, strict=True)
        ]

    def state(self) -> dict[str, Any]:
        return self._state

    def model(self, level: Level) -> GaussianCopula:
        return GaussianCopula(
            columns=self.columns,
            margins=tuple(margin.published() for margin in self.sampler.margins),
            correlation=tuple(tuple(line) for line in self._state["correlation"]),
            noise=self._locate(level).node.time,
        )

    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        points = [self._locate(level) for level in levels]
        cells = self._read(batch)
        secret = key.derive("copula", self.path)
        stream, noise = Stream(secret), self._noise(secret, points)
        whole = [np.zeros((2, len(self.columns), len(rows)), np.int64) for _ in points]
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            noisy = self._noisy_scores([one.take(part) for one in cells], rows[part], points, stream, noise)
            for (codes, gone), scores in zip(whole, noisy, strict=True):
                for i, margin in enumerate(self.sampler.margins):
                    codes[i, part] = margin.from_scores(scores[i])
                for i, score in zip(self.sampler.with_missing, scores[len(self.columns) :], strict=True):
                    gone[i, part] = score <= self.sampler.margins[i].missing_end
        kinds = [batch.column(name).type for name in self.columns]
        return [
            [
                margin.array(code, absent.astype(np.bool_), kind)
                for margin, code, absent, kind in zip(self.sampler.margins, codes, gone, kinds, strict=True)
            ]
            for codes, gone in whole
        ]

    def paths(self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key) -> tuple[Floats, Floats]:
        """The scores of some records, `(score, row)`, and their noise at some levels, `(level, score, row)`.

        Scores of missing values come last. The scores of a copy are `√f` times the sum.
        """
        cells, secret = self._read(batch), key.derive("copula", self.path)
        points = [self._locate(level) for level in levels]
        scores, paths = self._walked(cells, rows, Stream(secret), self._noise(secret, points))
        return scores, np.einsum("ab,jbr->jar", self.root, paths)

    def draws(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        stream = Stream(key.derive("copula", self.path))
        return stream.bits("draws", self.sampler.addresses(self._read(batch), rows, stream))[::2]

    def drift(self, later: Scheme) -> float:
        if not isinstance(later, CopulaScheme) or later.columns != self.columns or later.root.shape != self.root.shape:
            return math.inf
        return largest_variance_ratio(self.root, later.root)

    def scores(self, batch: pa.RecordBatch) -> Floats:
        """The scores of some rows, `(column, row)`, drawn with bits that anybody could draw.

        Their variance is 1 in the table that this was fitted to.
        """
        cells, stream = self._read(batch), Stream(Key.from_bytes(bytes(32)))
        addresses = self.sampler.addresses(cells, np.zeros(batch.num_rows, np.uint64), stream)
        return self.sampler.draw(cells, addresses, stream)[: len(self.columns)]

    def _locate(self, level: Level) -> Point:
        return self._tree.locate(level)

    def _read(self, batch: pa.RecordBatch) -> list[Cells]:
        """The values of each column in the terms of its margin."""
        columns = zip(self.columns, self.sampler.margins, strict=True)
        return [margin.cells(batch.column(name), name) for name, margin in columns]

    def _noise(self, secret: Key, points: Sequence[Point]) -> BrownianNoise:
        """The noise of each score at some points of the path."""
        streams = tuple(("score", str(i)) for i in range(self.sampler.size))
        return BrownianNoise(secret, streams, tuple(point.node for point in points))

    def _noisy_scores(
        self, cells: Sequence[Cells], rows: Words, points: Sequence[Point], stream: Stream, noise: BrownianNoise
    ) -> list[Floats]:
        """The scores of copies at some points of the path, one row per score."""
        scores, walked = self._walked(cells, rows, stream, noise)
        return [
            degrade(self.root, one, scores, math.sqrt(point.level.fidelity))
            for one, point in zip(walked, points, strict=True)
        ]

    def _walked(
        self, cells: Sequence[Cells], rows: Words, stream: Stream, noise: BrownianNoise
    ) -> tuple[Floats, Floats]:
        """The scores of records, and the Brownian paths of their noise at each point, one row per score."""
        addresses = self.sampler.addresses(cells, rows, stream)
        return self.sampler.draw(cells, addresses, stream), noise.walk(addresses)


def _is_map(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Whether a piecewise linear map is given by these knots, or none."""
    numbers = all(type(one) in (int, float) and abs(one) <= FURTHEST for one in (*before, *after))
    if not numbers or len(before) != len(after) or len(before) == 1:
        return False
    return all(a < b for a, b in pairwise(before)) and all(a <= b for a, b in pairwise(after))


def _symmetric(lines: Sequence[Sequence[float]]) -> Floats:
    """The matrix with this lower triangle; `ValueError` unless it is a correlation matrix."""
    if [len(line) for line in lines] != list(range(1, len(lines) + 1)):
        raise ValueError("a correlation matrix must be a lower triangle")
    whole = symmetric(lines)
    if not np.allclose(np.diag(whole), 1.0) or not np.linalg.eigvalsh(whole)[0] > 1e-6:
        raise ValueError("correlations must be those of scores that vary")
    return whole
