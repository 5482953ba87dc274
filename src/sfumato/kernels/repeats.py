"""Repeated records: how likely each two noisy records are of one person, and what all such records say together.

Two noisy records of one person differ by their noise, and by what varies from record to record. The ratio of their
likelihood to that of two persons is, for normal numbers and independent categories, a bilinear form in what they show,
so that all pairs are compared by a product of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.kernels import Floats, Rows
from sfumato.kernels.compiled import njit
from sfumato.kernels.covariances import nearest_covariance

Singles = npt.NDArray[np.float32]

_PAIRS = 1 << 19
"""The most pairs of records that are compared at once."""

_LARGEST = 14.0
"""Where the logarithm of the odds against it is larger, a pair is taken to be of two persons."""


@dataclass(frozen=True)
class Shown:
    """One attribute: the categories that records show, the distribution of the originals, and how it was replaced."""

    codes: Rows
    """-1 where nothing is shown."""
    prior: Floats
    retention: float
    agreement: float = 1.0
    """How often two records of one person have the same category because they are of one person."""

    @property
    def channel(self) -> Floats:
        """The probability of what is shown, one row per original category."""
        size = len(self.prior)
        return self.retention * np.eye(size) + (1 - self.retention) / size

    def log_ratios(self) -> Floats:
        """For each two categories, how much likelier they are shown of one person than of two."""
        channel, single = self.channel, self.prior @ self.channel
        same = (channel.T * self.prior) @ channel / np.outer(single, single)
        ratios: Floats = np.log(self.agreement * same + 1 - self.agreement)
        return ratios

    def one_hot(self) -> Floats:
        """Which category each record shows."""
        shown: Floats = (self.codes[:, None] == np.arange(len(self.prior))).astype(np.float64)
        return shown


@dataclass(frozen=True)
class Axes:
    """Directions in which noisy records have variance 1, and in which persons vary independently."""

    directions: Floats
    inverse: Floats
    shared: Floats
    """Along each axis, the share of the variance that records of one person have in common."""
    own: Floats
    """From what a record has beyond its person to the part of it that is not noise."""

    @classmethod
    def of(cls, noisy: Floats, noise: Floats, within: Floats) -> Axes:
        """The axes of noisy records with mean 0, of their noise, and of what varies between records of one person."""
        size = len(noise)
        units = np.sqrt(np.diag(noise))
        varies = nearest_covariance(np.cov(noisy.T).reshape(size, size) - noise, units)
        total = varies + noise + 1e-9 * np.diag(units**2)
        whitened = np.linalg.inv(np.linalg.cholesky(total))
        between = whitened @ nearest_covariance(varies - within, units) @ whitened.T
        shared, vectors = np.linalg.eigh(between)
        shared = np.clip(shared, 1e-9, 1 - 1e-9)
        directions = vectors.T @ whitened
        own = np.eye(size) - (directions @ noise @ directions.T) / (1 - shared)
        return cls(directions, np.linalg.inv(directions), shared, own)

    def estimate(self, numbers: Floats, means: Floats, counts: Floats) -> Floats:
        """The posterior mean of records, from that of all records of the same person, along the axes."""
        person = means * (self.shared / (self.shared + (1 - self.shared) / counts[:, None]))
        found: Floats = person + (numbers - person) @ self.own.T
        return found


@dataclass(frozen=True)
class Repeats:
    """Noisy records with which others are compared."""

    axes: Axes
    numbers: Floats
    """Along the axes."""
    shown: tuple[Shown, ...]
    share: float = 1e-3
    """The share of pairs that are of one person."""

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
        """The probability that each of some records and each of these are of one person, in batches of the former.

        One that equals a record to the last digit is that record itself, and does not count as another.
        """
        shared = self.axes.shared
        alone, together = -0.5 * shared**2 / (1 - shared**2), shared / (1 - shared**2)
        constant = -0.5 * float(np.sum(np.log1p(-(shared**2)))) + np.log(self.share / (1 - self.share))
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
        """The mean of the records that are of one person with each, their number, and how often they show what."""
        means, counts = np.empty_like(numbers), np.empty(len(numbers))
        tables = [np.empty((len(numbers), len(one.prior))) for one in self.shown]
        theirs = np.hstack([self.numbers, *(one.one_hot() for one in self.shown)]).astype(np.float32)
        ends = np.cumsum([numbers.shape[1], *(len(one.prior) for one in self.shown)])
        for rows, weights in self.matches(numbers, shown):
            counts[rows] = 1 + weights.sum(axis=1)
            others, *shares = np.split(weights @ theirs, ends[:-1], axis=1)
            means[rows] = (numbers[rows] + others) / counts[rows, None]
            for one, table, share in zip(shown, tables, shares, strict=True):
                table[rows] = one.one_hot()[rows] + one.agreement * share
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


def linked_pairs(numbers: Floats) -> tuple[Rows, Rows]:
    """Pairs of known records that are of one person: more of their numbers are equal than coincidence explains."""
    rows = len(numbers)
    surprise = np.zeros((rows, rows))
    for column in numbers.T:
        _, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
        coincidence = float(np.sum((counts / rows) ** 2))
        surprise += np.where(codes[:, None] == codes, -np.log(coincidence), 0.0)
    first, second = np.nonzero(np.triu(surprise > 2 * np.log(max(rows, 2)), 1))
    return first, second
