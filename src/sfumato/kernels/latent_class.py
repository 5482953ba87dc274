"""Latent classes behind known noise: within a class numbers are normal and categories independent, fitted by EM.

What is observed is `y = x + noise` for numbers (Bovy, Hogg and Roweis 2011), and a category that was retained with a
known probability or else drawn from all of them (xiao2009, eq. 1). Numbers tell about categories and the other way
round, through the class. Iteration stops when records that were held out become less likely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.linalg import cholesky, solve_triangular

from sfumato.kernels import Floats, Rows
from sfumato.kernels.convergence_warnings import ignore_convergence_warnings

_HELD_OUT = 5
"""One record in so many is held out."""
_LEAST_GAIN = 1e-4
"""Iteration stops when the mean log-likelihood of held-out records rises by less in `_EVERY` iterations."""
_EVERY = 4
_PSEUDO_COUNT = 2.0
"""The weight of the overall distribution in each class, in records, where classes shall fit other records best."""
_SMALL_PSEUDO_COUNT = 0.2
"""The same where classes shall have no bias."""
_CONVERGED = 1e-6
"""Iteration ends when the mean log-likelihood rises by less in `_EVERY` iterations."""
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
        logs = np.tile(np.log(self.weights), (len(observed), 1))
        for present, rows in missing_patterns(observed.numbers):
            logs[rows] += self._log_densities(observed.numbers[rows][:, present], present, channel.noise)
        for table, codes, retention, size in zip(
            self.shares, observed.codes, channel.retentions, channel.sizes, strict=True
        ):
            shown = np.log(retention * table + (1 - retention) / size).T
            logs += np.where(codes[:, None] >= 0, shown[codes], 0.0)
        top = logs.max(axis=1, keepdims=True)
        joint = np.exp(logs - top)
        total = joint.sum(axis=1, keepdims=True)
        return joint / total, float((np.log(total) + top).mean())

    def _log_densities(self, values: Floats, columns: Rows, noise: Floats) -> Floats:
        """The log density of noisy numbers in each class, up to a constant."""
        logs = np.zeros((len(values), len(self.weights)))
        if not len(columns):
            return logs
        block = np.ix_(columns, columns)
        for k, covariance in enumerate(self.covariances):
            root = cholesky(covariance[block] + noise[block], lower=True)
            white = solve_triangular(
                root, (values - self.means[k][columns]).T, lower=True, overwrite_b=True, check_finite=False
            )
            logs[:, k] = -np.log(np.diag(root)).sum() - 0.5 * np.einsum("ij,ij->j", white, white)
        return logs

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


def draw_codes(weights: Floats, rng: np.random.Generator) -> Rows:
    """One index for each row of weights, with probabilities proportional to them."""
    cumulative = np.cumsum(weights, axis=1)
    drawn: Rows = (rng.random((len(weights), 1)) * cumulative[:, -1:] > cumulative[:, :-1]).sum(axis=1)
    return drawn


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
    if len(np.unique(np.isnan(numbers), axis=0)) <= _MOST_PATTERNS:
        return numbers
    present = ~np.isnan(numbers)
    means = np.where(present, numbers, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    filled: Floats = np.where(present, numbers, means)
    return filled


def fit(observed: Observed, channel: Channel, classes: int, iterations: int) -> LatentClasses:
    """The maximum-likelihood classes behind observed records without missing numbers."""
    held_out = np.arange(len(observed)) % _HELD_OUT == 0
    training, test = observed.take(np.flatnonzero(~held_out)), observed.take(np.flatnonzero(held_out))
    prior = _one_class(training, channel)
    current = best = _initial(training, channel, classes, prior, _PSEUDO_COUNT)
    likelihood = -np.inf
    for iteration in range(iterations):
        current = _step(training, channel, current, prior, _PSEUDO_COUNT)
        if iteration % _EVERY == _EVERY - 1:
            reached = current.responsibilities(test, channel)[1]
            if reached > likelihood:
                best = current
            if reached < likelihood + _LEAST_GAIN:
                break
            likelihood = reached
    return best


def fit_to_convergence(
    observed: Observed, channel: Channel, classes: int, iterations: int, start: LatentClasses | None = None
) -> LatentClasses:
    """Classes with as little bias as the records allow: hardly drawn to the overall distribution, and converged.

    Stopped early, they would be more likely for other records, and relations between columns weaker than they are.
    """
    prior = _one_class(observed, channel)
    current = _initial(observed, channel, classes, prior, _SMALL_PSEUDO_COUNT) if start is None else start
    likelihood = -np.inf
    for iteration in range(iterations):
        current = _step(observed, channel, current, prior, _SMALL_PSEUDO_COUNT)
        if iteration % _EVERY == _EVERY - 1:
            reached = current.responsibilities(observed, channel)[1]
            if reached < likelihood + _CONVERGED:
                break
            likelihood = reached
    return current


def _one_class(observed: Observed, channel: Channel) -> LatentClasses:
    """The overall distribution: moments without those of the noise, and frequencies without replacement."""
    size = observed.numbers.shape[1]
    total = np.atleast_2d(np.cov(observed.numbers.T)) if size else np.empty((0, 0))
    variances = np.where(np.diag(total) > 0, np.diag(total), 1.0)
    values, vectors = np.linalg.eigh(total - channel.noise)
    covariance = (vectors * np.maximum(values, 0)) @ vectors.T + 1e-4 * np.diag(variances)
    shares = []
    for codes, retention, categories in zip(observed.codes, channel.retentions, channel.sizes, strict=True):
        counts = np.bincount(codes[codes >= 0], minlength=categories).astype(np.float64)
        inverted = np.maximum((counts / max(counts.sum(), 1.0) - (1 - retention) / categories) / retention, 0)
        smoothed = inverted + 0.5 / max(counts.sum(), 1.0)
        shares.append((smoothed / smoothed.sum())[None, :])
    means = observed.numbers.mean(axis=0)[None, :]
    return LatentClasses(np.ones(1), means, covariance[None], tuple(shares))


def _initial(
    observed: Observed, channel: Channel, classes: int, prior: LatentClasses, pseudo_count: float
) -> LatentClasses:
    """Classes from a clustering of numbers and, weighted by how faithful they are, categories."""
    units = observed.numbers.std(axis=0)
    parts = [observed.numbers / np.where(units > 0, units, 1.0)]
    for codes, retention, size in zip(observed.codes, channel.retentions, channel.sizes, strict=True):
        parts.append(one_hot(codes, size) * retention)
    rng = np.random.default_rng(0)
    with ignore_convergence_warnings():  # an empty cluster is dropped
        _, labels = kmeans2(np.hstack(parts), min(classes, len(observed) // 4), minit="points", rng=rng)
    found, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
    start = LatentClasses(
        counts / counts.sum(),
        np.repeat(prior.means, len(found), axis=0),
        np.repeat(prior.covariances, len(found), axis=0),
        tuple(np.repeat(table, len(found), axis=0) for table in prior.shares),
    )
    return _maximised(observed, channel, start, np.eye(len(found))[labels.reshape(-1)], prior, pseudo_count)


def one_hot(codes: Rows, size: int) -> Floats:
    """One column per category, 1 where a record shows it."""
    shown = np.zeros((len(codes), size))
    rows = np.flatnonzero(codes >= 0)
    shown[rows, codes[rows]] = 1.0
    return shown


def _step(
    observed: Observed, channel: Channel, current: LatentClasses, prior: LatentClasses, pseudo_count: float
) -> LatentClasses:
    """One iteration of EM; classes that have lost their records are dropped."""
    responsibilities, _ = current.responsibilities(observed, channel)
    kept = responsibilities.sum(axis=0) > 1.0
    if not kept.all():
        responsibilities = responsibilities[:, kept] / responsibilities[:, kept].sum(axis=1, keepdims=True)
        current = LatentClasses(
            current.weights[kept],
            current.means[kept],
            current.covariances[kept],
            tuple(table[kept] for table in current.shares),
        )
    return _maximised(observed, channel, current, responsibilities, prior, pseudo_count)


def _maximised(
    observed: Observed,
    channel: Channel,
    old: LatentClasses,
    responsibilities: Floats,
    prior: LatentClasses,
    pseudo_count: float,
) -> LatentClasses:
    """The M-step; each class is drawn to the overall distribution by a few records."""
    total = responsibilities.sum(axis=0)
    drawn_to = [pseudo_count * table for table in prior.shares]
    shares = _shares(observed.codes, channel, old, responsibilities, drawn_to)
    updated = replace(old, weights=(total + 1e-9) / (total + 1e-9).sum(), shares=tuple(shares))
    if not observed.numbers.shape[1]:
        return updated
    means, covariances = np.empty_like(old.means), np.empty_like(old.covariances)
    size = observed.numbers.shape[1]
    within = prior.covariances[0] * len(total) ** (-2 / size)
    for k, before in enumerate(old.covariances):
        weight = responsibilities[:, k]
        centre = weight @ observed.numbers / total[k]
        centred = observed.numbers - centre
        scatter = (centred * weight[:, None]).T @ centred / total[k]
        gain = np.linalg.solve(before + channel.noise, before).T
        means[k] = old.means[k] + gain @ (centre - old.means[k])
        covariance = gain @ scatter @ gain.T + before - gain @ before
        covariance = (total[k] * covariance + pseudo_count * within) / (total[k] + pseudo_count)
        covariances[k] = (covariance + covariance.T) / 2 + 1e-6 * np.diag(np.diag(prior.covariances[0]))
    return replace(updated, means=means, covariances=covariances)


def _shares(
    codes: Sequence[Rows], channel: Channel, old: LatentClasses, responsibilities: Floats, drawn_to: Sequence[Floats]
) -> list[Floats]:
    """The distribution of each attribute in each class: shown and retained, or replaced and then as before."""
    found = []
    for i, column in enumerate(codes):
        retention, size = channel.retentions[i], channel.sizes[i]
        there = column >= 0
        counts = one_hot(column[there], size).T @ responsibilities[there]
        kept = retention * old.shares[i] / (retention * old.shares[i] + (1 - retention) / size)
        retained = counts.T * kept
        replaced = (counts.T - retained).sum(axis=1, keepdims=True)
        table = retained + replaced * old.shares[i] + drawn_to[i]
        found.append(table / table.sum(axis=1, keepdims=True))
    return found
