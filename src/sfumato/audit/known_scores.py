"""Scores of known records: drawn within the intervals of their values, as a release draws them, and shown as copies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats
from sfumato.kernels.covariances import symmetric
from sfumato.keys.key import Key
from sfumato.keys.stream import Stream
from sfumato.mechanisms._score_sampler import ScoreSampler
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.tables.columns import contiguous
from sfumato.tables.margin import Margin, coarsened_scores, known_values

_PUBLIC = Key.from_bytes(bytes(32))
"""The key of an attacker's own draws, which has nothing to do with any copy."""


@dataclass(frozen=True)
class KnownScores:
    """The scores of known records, drawn several times, and the noise that copies add to them."""

    model: GaussianCopula
    noise: Floats
    """The covariance of the noise."""
    drawn: Floats
    """One row per record, once for each draw."""
    times: int

    @classmethod
    def of(cls, model: GaussianCopula, known: pa.Table, times: int) -> KnownScores:
        """Draw the scores of some records."""
        correlation = symmetric(model.correlation)
        margins = tuple(Margin.decode(data) for data in model.margins)
        sampler = ScoreSampler(margins, correlation)
        arrays = [contiguous(known.column(name)) for name in model.columns]
        cells = [
            margin.cells(known_values(array, margin), name)
            for margin, array, name in zip(margins, arrays, model.columns, strict=True)
        ]
        rows = np.arange(known.num_rows, dtype=np.uint64)
        draws = []
        for i in range(times):
            stream = Stream(_PUBLIC.derive("draw", str(i)))
            draws.append(sampler.draw(cells, sampler.addresses(cells, rows, stream), stream).T)
        return cls(model, model.noise * correlation, np.vstack(draws), times)

    def copies(self) -> Floats:
        """The scores of copies that these records might have: each draw with fresh noise, as a copy shows it."""
        values, vectors = np.linalg.eigh(self.noise)
        noise = np.random.default_rng(2).normal(size=self.drawn.shape) @ (vectors * np.sqrt(np.maximum(values, 0))).T
        return coarsened_scores(self.drawn + noise, self.model)
