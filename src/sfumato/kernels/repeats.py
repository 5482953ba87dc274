"""Repeated records: how likely each two noisy records are of one original, and what all such records say together.

Two noisy records of the same original differ by their noise alone. The ratio of their likelihood to that of two
originals is, for normal numbers and independent categories, a bilinear form in what they show, so that all pairs are
compared by a product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numba import njit

from sfumato.kernels import Floats, Rows
from sfumato.kernels.covariances import nearest_covariance

Singles = npt.NDArray[np.float32]

_PAIRS = 1 << 19
"""The most pairs of records that are compared at once."""

_LARGEST = 14.0
"""Where the logarithm of the odds against it is larger, a pair is taken to have two originals."""


@dataclass(frozen=True)
class Shown:
    """One attribute: the categories that records show, the distribution of the originals, and how it was replaced."""

    codes: Rows
    """-1 where nothing is shown."""
    prior: Floats
    retention: float

    @property
    def channel(self) -> Floats:
        """The probability of what is shown, one row per original category."""
        size = len(self.prior)
        return self.retention * np.eye(size) + (1 - self.retention) / size

    def log_ratios(self) -> Floats:
        """For each two categories, how much likelier they are shown of one original than of two."""
        channel, single = self.channel, self.prior @ self.channel
        ratios: Floats = np.log((channel.T * self.prior) @ channel) - np.log(np.outer(single, single))
        return ratios

    def one_hot(self) -> Floats:
        """Which category each record shows."""
        shown: Floats = (self.codes[:, None] == np.arange(len(self.prior))).astype(np.float64)
        return shown


@dataclass(frozen=True)
class Axes:
    """Directions in which the noise is independent and of variance 1, and in which originals vary independently."""

    directions: Floats
    inverse: Floats
    variances: Floats

    @classmethod
    def of(cls, noisy: Floats, noise: Floats) -> Axes:
        """The axes of noisy records with mean 0 and of their noise."""
        size = len(noise)
        units = np.sqrt(np.diag(noise))
        whitened = np.linalg.inv(np.linalg.cholesky(noise + 1e-9 * np.diag(units**2)))
        varies = nearest_covariance(np.cov(noisy.T).reshape(size, size) - noise, units)
        variances, vectors = np.linalg.eigh(whitened @ varies @ whitened.T)
        directions = vectors.T @ whitened
        return cls(directions, np.linalg.inv(directions), np.maximum(variances, 1e-9))


@dataclass(frozen=True)
class Repeats:
    """Noisy records with which others are compared."""

    axes: Axes
    numbers: Floats
    """Along the axes."""
    shown: tuple[Shown, ...]
    share: float = 1e-3
    """The share of pairs that are of one original."""

    def fitted(self, rows: Rows, iterations: int) -> Repeats:
        """With the share of pairs by EM, from some of the records."""
        found = self
        some = tuple(replace(one, codes=one.codes[rows]) for one in self.shown)
        for _ in range(iterations):
            total = sum(float(part.sum()) for _, part in found.matches(self.numbers[rows], some))
            share = min(max(total / (len(rows) * len(self.numbers)), 1e-12), 0.5)
            found = replace(self, share=share)
        return found

    def matches(self, numbers: Floats, shown: Sequence[Shown]) -> Iterator[tuple[slice, Singles]]:
        """The probability that each of some records and each of these are of one original, in batches of the former.

        One that equals a record to the last digit is that record itself, and does not count as another.
        """
        s = self.axes.variances
        alone = 0.5 / (s + 1) - 0.25 / (2 * s + 1) - 0.25
        together = 0.5 - 0.5 / (2 * s + 1)
        constant = float(np.sum(np.log(s + 1) - 0.5 * np.log(2 * s + 1))) + np.log(self.share / (1 - self.share))
        right = np.hstack([self.numbers, *(one.one_hot() for one in self.shown)]).astype(np.float32).T
        left = np.hstack([numbers * together, *(one.one_hot() @ one.log_ratios() for one in shown)])
        own, others = (numbers**2) @ alone + constant, (self.numbers**2) @ alone
        same = _equal_rows(numbers, self.numbers)
        step = max(_PAIRS // len(self.numbers), 1)
        for start in range(0, len(numbers), step):
            rows = slice(start, start + step)
            odds: Singles = left[rows].astype(np.float32) @ right
            _to_probabilities(odds, own[rows], others)
            for i, itself in enumerate(same[rows]):
                odds[i, itself] = 0
            yield rows, odds

    def averages(self, numbers: Floats, shown: Sequence[Shown]) -> tuple[Floats, Floats, list[Floats]]:
        """The mean of the records that are of one original with each, their number, and how often they show what."""
        means, counts = np.empty_like(numbers), np.empty(len(numbers))
        tables = [np.empty((len(numbers), len(one.prior))) for one in self.shown]
        theirs = np.hstack([self.numbers, *(one.one_hot() for one in self.shown)]).astype(np.float32)
        ours = np.hstack([numbers, *(one.one_hot() for one in shown)])
        ends = np.cumsum([numbers.shape[1], *(len(one.prior) for one in self.shown)])
        for rows, weights in self.matches(numbers, shown):
            counts[rows] = 1 + weights.sum(axis=1)
            sums = np.split(ours[rows] + weights @ theirs, ends[:-1], axis=1)
            means[rows] = sums[0] / counts[rows, None]
            for table, some in zip(tables, sums[1:], strict=True):
                table[rows] = some
        return means, counts, tables


@njit(cache=True, nogil=True)
def _to_probabilities(odds: Singles, own: Floats, others: Floats) -> None:
    """Add what each record of a pair brings alone to the logarithm of its odds, and turn it into a probability."""
    for i in range(odds.shape[0]):
        for j in range(odds.shape[1]):
            logit = odds[i, j] + np.float32(own[i]) + np.float32(others[j])
            odds[i, j] = 0 if logit < -_LARGEST else np.float32(1) / (np.float32(1) + np.exp(-logit))


def _equal_rows(some: Floats, records: Floats) -> list[list[int]]:
    """For each of some rows, the records that are equal to it."""
    found: dict[bytes, list[int]] = {}
    for i, row in enumerate(np.ascontiguousarray(records)):
        found.setdefault(row.tobytes(), []).append(i)
    return [found.get(row.tobytes(), []) for row in np.ascontiguousarray(some)]
