"""Centres: a density of mixed records around known ones, and what it makes of a noisy record.

Each known record is the centre of a normal density of its numbers, and of a distribution of each category that is
mostly its own one. Numbers are observed with normal noise, categories with random replacement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.kernels import Floats, Rows

_BLOCK = 1 << 21
"""The most pairs of records and centres that are compared at once."""


@dataclass(frozen=True)
class Attribute:
    """One categorical attribute: the centres' categories, what is observed, and how it was replaced."""

    centres: Rows
    shown: Rows
    """-1 where nothing is observed."""
    share: Floats
    """The distribution over all records."""
    retention: float

    def of(self, rows: slice) -> Attribute:
        """Some of the records."""
        return replace(self, shown=self.shown[rows])

    def likelihood(self, spread: float) -> Floats:
        """Of what is shown, one row per record and one column per centre."""
        other = (1 - self.retention) / len(self.share)
        code = np.maximum(self.shown, 0)
        around = spread * self.retention * self.share[code] + other
        own = (1 - spread) * self.retention * (self.shown[:, None] == self.centres[None, :])
        found: Floats = np.where(self.shown[:, None] < 0, 1.0, around[:, None] + own)
        return found

    def posterior(self, weights: Floats, spread: float) -> Floats:
        """The probability of each category, for weights of the centres given all that is observed."""
        relative = weights / self.likelihood(spread)
        prior = spread * self.share * relative.sum(axis=1, keepdims=True)
        size = len(self.share)
        own = np.eye(size)[self.centres]
        prior = prior + (1 - spread) * relative @ own
        shown = self.retention * (self.shown[:, None] == np.arange(size)) + (1 - self.retention) / size
        joint = prior * np.where(self.shown[:, None] >= 0, shown, 1.0)
        posterior: Floats = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        return posterior


@dataclass(frozen=True)
class Centres:
    """The density, for one width."""

    numbers: Floats
    """The numbers of the known records, in common units."""
    shape: Floats
    """The covariance of known records, a part of which each centre has."""
    noise: Floats
    width: float
    """The deviation around a centre, in deviations of the column."""
    spread: float
    """The probability that a category is not that of the centre."""
    weights: Floats
    """The probability of each centre."""

    def blocks(self, rows: int) -> Iterator[slice]:
        """Parts of some records that are compared at once."""
        size = max(_BLOCK // max(len(self.numbers), 1), 1)
        return (slice(start, min(start + size, rows)) for start in range(0, rows, size))

    def log_likelihood(self, observed: Floats, attributes: Sequence[Attribute]) -> Floats:
        """Of each record under each centre."""
        total = self.width**2 * self.shape + self.noise
        root = np.linalg.cholesky(total + 1e-9 * np.eye(len(total))) if len(total) else np.empty((0, 0))
        if len(total):
            first, second = (np.linalg.solve(root, some.T).T for some in (observed, self.numbers))
            squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T
            found = -0.5 * squares - np.log(np.diag(root)).sum()
        else:
            found = np.zeros((len(observed), len(self.numbers)))
        for attribute in attributes:
            found += np.log(attribute.likelihood(self.spread))
        likelihood: Floats = found
        return likelihood

    def responsibilities(self, observed: Floats, attributes: Sequence[Attribute]) -> tuple[Floats, Floats]:
        """The probability of each centre for each record, and the log-likelihood of the records."""
        logs = self.log_likelihood(observed, attributes) + np.log(np.maximum(self.weights, 1e-300))
        top = logs.max(axis=1, keepdims=True)
        found = np.exp(logs - top)
        total = found.sum(axis=1, keepdims=True)
        return found / total, (top + np.log(total))[:, 0]

    def weighted(self, observed: Floats, attributes: Sequence[Attribute], iterations: int) -> Centres:
        """The centres with the weights under which the observed records are the most likely (EM)."""
        found = self
        for _ in range(iterations):
            sums = np.zeros(len(self.numbers))
            for rows in self.blocks(len(observed)):
                sums += found.responsibilities(observed[rows], [one.of(rows) for one in attributes])[0].sum(axis=0)
            found = replace(found, weights=sums / sums.sum())
        return found

    def estimate(self, observed: Floats, attributes: Sequence[Attribute]) -> tuple[Floats, list[Floats]]:
        """The mean of the numbers of each record, and the probabilities of its categories."""
        own = self.width**2 * self.shape
        gain = np.linalg.solve((own + self.noise + 1e-9 * np.eye(len(own))).T, own.T).T if len(own) else own
        numbers, posteriors = np.empty_like(observed), [np.empty((len(observed), len(a.share))) for a in attributes]
        for rows in self.blocks(len(observed)):
            some = [one.of(rows) for one in attributes]
            weights, _ = self.responsibilities(observed[rows], some)
            centre = weights @ self.numbers
            numbers[rows] = centre + (observed[rows] - centre) @ gain.T
            for posterior, one in zip(posteriors, some, strict=True):
                posterior[rows] = one.posterior(weights, self.spread)
        return numbers, posteriors
