"""Latent classes behind known noise: within a class numbers are normal and categories independent.

What is observed is `y = x + noise` for numbers (Bovy, Hogg and Roweis 2011), and a category that was retained with a
known probability or else drawn from all of them (xiao2009, eq. 1). Numbers tell about categories and the other way
round, through the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.class_probabilities import class_probabilities

_MOST_PATTERNS = 64
"""With more patterns of missing values, these are replaced by means."""
_CHUNK = 1 << 14


@dataclass(frozen=True)
class Observed:
    """Records as they are shown: noisy numbers, NaN where missing, and one code per attribute, -1 where missing."""

    numbers: Floats
    codes: tuple[Rows, ...]

    def take(self, rows: Rows | slice) -> Observed:
        """Some of the records."""
        return Observed(self.numbers[rows], tuple(codes[rows] for codes in self.codes))

    def stacked_codes(self, sizes: Sequence[int]) -> Rows:
        """The codes of all attributes, a column each, counted on from attribute to attribute; -1 where missing."""
        out = np.empty((len(self), len(self.codes)), np.int64)
        for i, (own, start) in enumerate(zip(self.codes, np.cumsum([0, *sizes]), strict=False)):
            out[:, i] = np.where(own >= 0, own + start, -1)
        return out

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class Channel:
    """What lies between the original and the records observed."""

    noise: Floats
    """The covariance of the noise of the numbers."""
    retentions: tuple[float, ...]
    """The probability with which each attribute was retained."""
    sizes: tuple[int, ...]
    """The number of categories of each attribute."""
    values: tuple[Floats | None, ...] = ()
    """The categories of each attribute where they are numbers."""


@dataclass(frozen=True)
class NumberPosterior:
    """The posterior of the numbers of some records: in each class normal, with one covariance for all of them."""

    responsibilities: Floats
    """The probability of each class, one row per record."""
    means: Floats
    """The mean of each record, in each class: classes, records, columns."""
    variances: Floats
    """The variance of each column, in each class."""

    def mean(self) -> Floats:
        """The posterior mean of each record."""
        mean: Floats = np.einsum("rc,crj->rj", self.responsibilities, self.means)
        return mean


@dataclass(frozen=True)
class LatentClasses:
    """The joint distribution of a record: the weight of each class, and what its records are like."""

    weights: Floats
    means: Floats
    covariances: Floats
    shares: tuple[Floats, ...]
    """The distribution of each attribute, one row per class."""

    def responsibilities(self, observed: Observed, channel: Channel) -> tuple[Floats, float]:
        """The probability of each class for each record, and the mean log-likelihood; numbers may be missing."""
        out = np.empty((len(observed), len(self.weights)))
        codes, tables, total = observed.stacked_codes(channel.sizes), self._log_shares(channel), 0.0
        for present, rows in missing_patterns(observed.numbers):
            shown = self.covariances + channel.noise
            roots = np.linalg.cholesky(shown[:, present[:, None], present])
            logs = np.log(self.weights) - np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
            total += class_probabilities(
                np.ascontiguousarray(observed.numbers[rows][:, present]),
                codes[rows],
                logs,
                tables,
                np.ascontiguousarray(self.means[:, present]),
                np.linalg.inv(roots),
                rows,
                out,
            )
        return out, total / max(len(observed), 1)

    def _log_shares(self, channel: Channel) -> Floats:
        """The logarithm of the probability with which each class shows each category, attribute after attribute."""
        shown = [
            retention * table + (1 - retention) / size
            for table, retention, size in zip(self.shares, channel.retentions, channel.sizes, strict=True)
        ]
        return np.log(np.ascontiguousarray(np.hstack(shown).T)) if shown else np.empty((0, len(self.weights)))

    def number_posteriors(
        self, observed: Observed, responsibilities: Floats, channel: Channel
    ) -> Iterator[tuple[Rows, NumberPosterior]]:
        """The posteriors of the numbers, for the rows of each pattern of missing values, in chunks."""
        for present, rows in missing_patterns(observed.numbers):
            gains = [posterior_gain(covariance, channel.noise, present) for covariance in self.covariances]
            variances = np.stack(
                [
                    np.maximum(np.diag(covariance) - np.einsum("ij,ji->i", gain, covariance[present]), 1e-12)
                    for gain, covariance in zip(gains, self.covariances, strict=True)
                ]
            )
            for start in range(0, len(rows), _CHUNK):
                some = rows[start : start + _CHUNK]
                values = observed.numbers[some][:, present]
                means = np.stack(
                    [mean + (values - mean[present]) @ gain.T for gain, mean in zip(gains, self.means, strict=True)]
                )
                yield some, NumberPosterior(responsibilities[some], means, variances)

    def category_posterior(
        self, observed: Observed, responsibilities: Floats, channel: Channel, attribute: int
    ) -> Floats:
        """The posterior distribution of one attribute, one row per record."""
        table, codes = self.shares[attribute], observed.codes[attribute]
        retention, size = channel.retentions[attribute], channel.sizes[attribute]
        shown = retention * table + (1 - retention) / size
        there = codes >= 0
        weights = np.where(there[:, None], responsibilities / shown.T[codes], responsibilities)
        posterior: Floats = weights @ table
        posterior *= np.where(there, (1 - retention) / size, 1.0)[:, None]
        rows = np.flatnonzero(there)
        posterior[rows, codes[rows]] += retention * np.einsum("rc,rc->r", weights[rows], table.T[codes[rows]])
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
        return posterior


def posterior_gain(covariance: Floats, noise: Floats, present: Rows) -> Floats:
    """The matrix by which all numbers of a class follow those that are present, which carry noise."""
    block = np.ix_(present, present)
    gain = np.linalg.solve(covariance[block] + noise[block], covariance[present])
    return np.asarray(gain.T, np.float64)


def missing_patterns(numbers: Floats) -> list[tuple[Rows, Rows]]:
    """The columns that are present and the rows in which exactly these are, for each pattern of missing values."""
    missing = np.isnan(numbers)
    if not missing.any():
        return [(np.arange(numbers.shape[1]), np.arange(len(numbers)))]
    patterns, which = np.unique(missing, axis=0, return_inverse=True)
    which = which.reshape(-1)
    return [(np.flatnonzero(~pattern), np.flatnonzero(which == i)) for i, pattern in enumerate(patterns)]


def without_rare_patterns(numbers: Floats) -> Floats:
    """Numbers whose missing values are replaced by means where there are too many patterns of them."""
    present = ~np.isnan(numbers)
    if present.all() or len(np.unique(present, axis=0)) <= _MOST_PATTERNS:
        return numbers
    means = np.where(present, numbers, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    filled: Floats = np.where(present, numbers, means)
    return filled


def one_hot(codes: Rows, size: int) -> Floats:
    """One column per category, 1 where a record shows it."""
    shown = np.zeros((len(codes), size))
    rows = np.flatnonzero(codes >= 0)
    shown[rows, codes[rows]] = 1.0
    return shown
