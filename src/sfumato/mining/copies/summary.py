"""What moments and quantiles need of a copy, read in one pass: sums, products and fine counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.kernels.covariances import Sums, correlation, entry_errors, positive
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.quantiles import Bins, Shares, added
from sfumato.models.gaussian_noise import GaussianNoise


@dataclass(frozen=True)
class Summary:
    """Columns of numbers of one copy."""

    copy: Copy
    names: list[str]
    origin: Floats
    sums: Sums
    """Of what lies beyond the origin, so that large numbers lose nothing."""
    bins: list[Bins]
    counts: list[tuple[int, Floats] | None]
    """None where values lie too far apart to be counted."""

    @classmethod
    def of(cls, copy: Copy, names: list[str]) -> Summary:
        """Read a copy."""
        first = next(copy.tables(names), None)
        if first is None:
            raise MiningError("moments need at least two records, and the copy has none")
        bins = _bins(copy, names, copy.values(first, names))
        sums, counts = copy.fold(names, partial(_measured, names=names, bins=bins), _merged)
        return cls(copy, names, np.array([b.origin for b in bins]), sums, bins, counts)

    @property
    def mean(self) -> Floats:
        """Of the original, as of the copy: noise has none."""
        return self.sums.means() + self.origin

    @property
    def rows(self) -> Floats:
        """How many records show each column, and each pair."""
        return self.sums.rows

    @property
    def noise(self) -> Floats:
        """The covariance of the noise."""
        return self.copy.noise(self.names)

    @property
    def units(self) -> Floats:
        """A size for each column."""
        sizes = np.sqrt(np.diag(self.sums.covariance()))
        return np.where(sizes > 0, sizes, 1.0)

    def covariance(self, *, shaped: bool) -> tuple[Floats, Floats]:
        """Of the original, before it is made positive, and how much of the difference's error it has."""
        seen, noise = self.sums.covariance(), self.noise
        models = [model for model in self.copy.manifest.models if isinstance(model, GaussianNoise)]
        noisy = np.outer(np.diag(noise) > 0, np.diag(noise) > 0)
        gain = np.where(noisy & shaped, 1 / (1 + models[0].noise) if models else 1.0, 1.0)
        return np.where(gain < 1, seen * gain, seen - noise), gain

    def entry_errors(self, *, shaped: bool) -> Floats:
        """The standard errors of that covariance."""
        found, gain = self.covariance(shaped=shaped)
        errors: Floats = entry_errors(positive(found, self.units), self.noise, self.rows) * gain
        return errors

    def correlation(self, *, shaped: bool) -> tuple[Floats, Floats]:
        """Of each pair of columns, over the records that show both, and its standard error."""
        size = len(self.names)
        found, errors = np.eye(size), np.zeros((size, size))
        for i in range(size):
            for j in range(i):
                pair, noise = self.sums.pair(i, j), self.noise[np.ix_([i, j], [i, j])]
                gain = self.covariance(shaped=shaped)[1][np.ix_([i, j], [i, j])]
                inner = positive(np.where(gain < 1, pair * gain, pair - noise), np.sqrt(np.diag(pair)) + 1e-300)
                r, error = correlation(inner, noise, float(self.rows[i, j]))
                found[i, j] = found[j, i] = r
                errors[i, j] = errors[j, i] = error * gain[0, 1]
        return found, errors

    def ends(self, name: str) -> tuple[float, float]:
        """Between which a column was clipped."""
        model = self.copy.model(name)
        clip: Any = model.clip[0] if isinstance(model, GaussianNoise) else None  # of moments it is text
        return (-np.inf, np.inf) if clip is None or isinstance(clip[0], str) else (float(clip[0]), float(clip[1]))

    def shares(self, name: str) -> Shares:
        """The share of the original below any point of a column."""
        place = self.names.index(name)
        counts = self.counts[place]
        if counts is None:
            raise MiningError(f"{name!r} has values very far apart, so that it has no quantiles to tell; clip it")
        return Shares.of(self.bins[place], counts)


_Measured = tuple[Sums, list[tuple[int, Floats] | None]]


def _measured(copy: Copy, tables: Iterable[pa.Table], *, names: list[str], bins: list[Bins]) -> _Measured:
    origin = np.array([b.origin for b in bins])
    total: _Measured = Sums.of(np.empty((0, len(names)))), [b.count(np.empty(0)) for b in bins]
    for table in tables:
        values = copy.values(table, names)
        total = _merged(total, (Sums.of(values - origin), [b.count(values[:, i]) for i, b in enumerate(bins)]))
    return total


def _merged(one: _Measured, other: _Measured) -> _Measured:
    return one[0] + other[0], [added(a, b) for a, b in zip(one[1], other[1], strict=True)]


def _bins(copy: Copy, names: list[str], first: Floats) -> list[Bins]:
    """How each column is counted; the spread of the original is guessed from the first rows, less the noise."""
    out = []
    for i, noise in enumerate(np.diag(copy.noise(names))):
        seen = first[:, i][~np.isnan(first[:, i])]
        middle, variance = (float(seen.mean()), float(seen.var())) if len(seen) else (0.0, 1.0)
        spread = np.sqrt(max(variance - noise, 0.05 * variance)) or 1.0
        # to two digits, so that copies of one table are counted alike
        out.append(Bins(float(np.sqrt(noise)), float(f"{spread:.1e}"), copy.rows, middle))
    return out
