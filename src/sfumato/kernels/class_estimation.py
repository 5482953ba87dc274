"""Latent classes fitted by EM: the likeliest for other records, or those with the least bias.

Iteration stops when records that were held out become less likely, or when it has converged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.cluster.vq import kmeans2

from sfumato.kernels import Floats, Mask, Rows, SpecialValues
from sfumato.kernels.class_probabilities import weighted_moments
from sfumato.kernels.convergence_warnings import ignore_convergence_warnings
from sfumato.kernels.latent_class import Channel, LatentClasses, Observed, one_hot

_HELD_OUT = 5
"""One record in so many is held out."""
_LEAST_GAIN = 1e-4
"""Iteration stops when the mean log-likelihood of held-out records rises by less in `_EVERY` iterations."""
_EVERY = 4
_PSEUDO_COUNT = 2.0
"""The weight of the overall distribution in each class, in records, where classes shall fit other records best."""
_SMALL_PSEUDO_COUNT = 0.2
"""The same where classes shall have no bias."""
_ROUNDS = 4
"""How often the shares of several columns are made to fit in turn."""
_LEAST_SPREAD = 0.05
"""The least variance of whole numbers in a class, in squares of the least distance between two of them."""
_CONVERGED = 1e-6
"""Iteration ends when the mean log-likelihood rises by less in `_EVERY` iterations."""


def fit(
    observed: Observed, channel: Channel, classes: int, iterations: int, special: Sequence[SpecialValues] = ()
) -> LatentClasses:
    """The maximum-likelihood classes behind observed records without missing numbers."""
    held_out = np.arange(len(observed)) % _HELD_OUT == 0
    training, test = observed.take(np.flatnonzero(~held_out)), observed.take(np.flatnonzero(held_out))
    prior = _one_class(training, channel)
    current = best = _spiked(_initial(training, channel, classes, prior, _PSEUDO_COUNT), special)
    likelihood = -np.inf
    for iteration in range(iterations):
        current, _ = _step(training, channel, current, prior, _PSEUDO_COUNT, special)
        if iteration % _EVERY == _EVERY - 1:
            reached = current.responsibilities(test, channel)[1]
            if reached > likelihood:
                best = current
            if reached < likelihood + _LEAST_GAIN:
                break
            likelihood = reached
    return best


def fit_to_convergence(
    observed: Observed,
    channel: Channel,
    classes: int,
    iterations: int,
    start: LatentClasses | None = None,
    special: Sequence[SpecialValues] = (),
) -> LatentClasses:
    """Classes with as little bias as the records allow: hardly drawn to the overall distribution, and converged.

    Stopped early, they would be more likely for other records, and relations between columns weaker than they are.
    """
    prior = _one_class(observed, channel)
    if start is None:
        start = _spiked(_initial(observed, channel, classes, prior, _SMALL_PSEUDO_COUNT), special)
    current = start
    likelihood = -np.inf
    for iteration in range(iterations):
        current, reached = _step(observed, channel, current, prior, _SMALL_PSEUDO_COUNT, special)
        if iteration % _EVERY == _EVERY - 1:
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
        _, labels = kmeans2(np.hstack(parts), max(1, min(classes, len(observed) // 4)), minit="points", rng=rng)
    found, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
    start = LatentClasses(
        counts / counts.sum(),
        np.repeat(prior.means, len(found), axis=0),
        np.repeat(prior.covariances, len(found), axis=0),
        tuple(np.repeat(table, len(found), axis=0) for table in prior.shares),
    )
    return _maximised(observed, channel, start, np.eye(len(found))[labels.reshape(-1)], prior, pseudo_count)


def _spiked(start: LatentClasses, special: Sequence[SpecialValues]) -> LatentClasses:
    """Classes of which some are at special values: there they have no variance, and EM leaves them so."""
    columns = [i for i, values in enumerate(special) if values]
    choices = list(product(*([None, *(value for value, _ in special[i] or ())] for i in columns)))
    largest = np.argsort(-start.weights)[: max(2, len(start.weights) // len(choices))]
    some = _taken(start, largest)
    parts = [start, *(_at(some, dict(zip(columns, choice, strict=True))) for choice in choices[1:])]
    weights = np.concatenate([part.weights for part in parts])
    return LatentClasses(
        weights / weights.sum(),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.covariances for part in parts]),
        tuple(np.concatenate(tables) for tables in zip(*(part.shares for part in parts), strict=True)),
    )


def _at(classes: LatentClasses, values: Mapping[int, float | None]) -> LatentClasses:
    """The same classes at some values, wherever one is given for a column."""
    means, covariances = classes.means.copy(), classes.covariances.copy()
    for column, value in values.items():
        if value is not None:
            means[:, column] = value
            covariances[:, column], covariances[:, :, column] = 0.0, 0.0
    return replace(classes, means=means, covariances=covariances)


def _taken(classes: LatentClasses, some: Rows | Mask) -> LatentClasses:
    return LatentClasses(
        classes.weights[some],
        classes.means[some],
        classes.covariances[some],
        tuple(table[some] for table in classes.shares),
    )


def _with_shares(classes: LatentClasses, special: Sequence[SpecialValues]) -> LatentClasses:
    """The same classes, of which those at each special value have the share of records that is known to be there."""
    weights = classes.weights.copy()
    columns = [i for i, values in enumerate(special) if values]
    for i in columns * min(len(columns), _ROUNDS):
        fixed = classes.covariances[:, i, i] == 0
        parts = [(fixed & (classes.means[:, i] == value), share) for value, share in special[i] or ()]
        for part, share in [(~fixed, 1 - sum(share for _, share in parts)), *parts]:
            weights[part] *= share / max(weights[part].sum(), 1e-12)
    return replace(classes, weights=weights / weights.sum())


def _step(
    observed: Observed,
    channel: Channel,
    current: LatentClasses,
    prior: LatentClasses,
    pseudo_count: float,
    special: Sequence[SpecialValues],
) -> tuple[LatentClasses, float]:
    """One iteration of EM, and the mean log-likelihood before it; classes that have lost their records are dropped."""
    responsibilities, likelihood = current.responsibilities(observed, channel)
    kept = responsibilities.sum(axis=0) > 1.0
    if not kept.all():
        responsibilities = responsibilities[:, kept] / responsibilities[:, kept].sum(axis=1, keepdims=True)
        current = _taken(current, kept)
    updated = _maximised(observed, channel, current, responsibilities, prior, pseudo_count)
    return _with_shares(updated, special), likelihood


def _maximised(
    observed: Observed,
    channel: Channel,
    old: LatentClasses,
    responsibilities: Floats,
    prior: LatentClasses,
    pseudo_count: float,
) -> LatentClasses:
    """The M-step; each class is drawn to the overall distribution by a few records."""
    classes, size = old.means.shape
    total = responsibilities.sum(axis=0)
    first, second = np.zeros((classes, size)), np.zeros((classes, size, size))
    counts = np.zeros((sum(channel.sizes), classes))
    codes = observed.stacked_codes(channel.sizes)
    weighted_moments(observed.numbers, codes, old.means, responsibilities, first, second, counts)
    shares = _shares(counts, channel, old, [pseudo_count * table for table in prior.shares])
    centre = first / total[:, None]
    lower = np.tril(second, -1)
    scatter = (second + lower.transpose(0, 2, 1)) / total[:, None, None] - centre[:, :, None] * centre[:, None, :]
    gain = np.linalg.solve(old.covariances + channel.noise, old.covariances).transpose(0, 2, 1)
    covariances = gain @ scatter @ gain.transpose(0, 2, 1) + old.covariances - gain @ old.covariances
    within = prior.covariances[0] * classes ** (-2 / max(size, 1))
    weights, varies = total[:, None, None], np.diagonal(old.covariances, axis1=1, axis2=2) > 0
    covariances = (weights * covariances + pseudo_count * within) / (weights + pseudo_count)
    covariances = (covariances + covariances.transpose(0, 2, 1)) / 2 + 1e-6 * np.diag(np.diag(prior.covariances[0]))
    covariances *= varies[:, :, None] * varies[:, None, :]  # a class at a special value stays there
    means = old.means + np.einsum("kij,kj->ki", gain, centre)
    return LatentClasses((total + 1e-9) / (total + 1e-9).sum(), means, covariances, tuple(shares))


def _shares(counts: Floats, channel: Channel, old: LatentClasses, drawn_to: Sequence[Floats]) -> list[Floats]:
    """The distribution of each attribute in each class: shown and retained, or replaced and then as before."""
    found = []
    parts = np.split(counts.T, np.cumsum(channel.sizes)[:-1], axis=1) if channel.sizes else []
    for i, shown in enumerate(parts):
        retention, size = channel.retentions[i], channel.sizes[i]
        kept = retention * old.shares[i] / (retention * old.shares[i] + (1 - retention) / size)
        retained = shown * kept
        replaced = (shown - retained).sum(axis=1, keepdims=True)
        table = retained + replaced * old.shares[i] + drawn_to[i]
        values = channel.values[i] if channel.values else None
        if values is not None:
            table = _bell_shaped(table, values, drawn_to[i][0])
        found.append(table / table.sum(axis=1, keepdims=True))
    return found


def _bell_shaped(counts: Floats, values: Floats, overall: Floats) -> Floats:
    """Counts of numbers in each class that follow a normal density, times what makes them add up to all records.

    Free counts would fit the noise: no count is negative, so that each class would have some records of every number,
    and relations would be weaker than they are.
    """
    weights = counts.sum(axis=1)
    mean = counts @ values / weights
    spread = counts @ values**2 / weights - mean**2
    spread = np.maximum(spread, _LEAST_SPREAD * np.diff(values).min() ** 2)
    found: Floats = np.exp(-((values - mean[:, None]) ** 2) / (2 * spread[:, None])) + 1e-12
    for _ in range(_ROUNDS):
        found *= (weights / found.sum(axis=1))[:, None]
        found *= overall * (weights.sum() / overall.sum()) / found.sum(axis=0)
    return found
