"""Code classes: the categories of one attribute are the classes of records, behind its own replacement.

As latent classes, but of many kinds, such as municipalities: the distributions of other attributes in each class are
sparse. Absolute discounting (Ney, Essen and Kneser 1994) keeps EM from believing what few records show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from sfumato.kernels import Floats, Rows
from sfumato.kernels.covariances import nearest_covariance

_FEW_CATEGORIES = 20
_DISCOUNT, _SMALL_DISCOUNT = 0.6, 0.1
"""What is taken off each count, in attributes of many categories and of few."""

_LEAST = 0.05
"""The least variance of numbers within a class, in that of all."""

_WHOLE = 1e-3
"""The weight of the overall distribution in each class, in records and per category."""


@dataclass(frozen=True)
class Shown:
    """An attribute as records show it: codes, -1 where missing, the number of categories, and the retention."""

    codes: Rows
    size: int
    retention: float

    @property
    def other(self) -> float:
        """The probability of each category if it is drawn at random."""
        return (1 - self.retention) / self.size

    def frequencies(self) -> Floats:
        """The frequency of each category in the original."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=self.size).astype(np.float64)
        found = np.maximum((counts / max(counts.sum(), 1.0) - self.other) / self.retention, 1e-5)
        return np.asarray(found / found.sum(), np.float64)


@dataclass(frozen=True)
class Labels:
    """Records whose original is known: their rows, classes, categories and numbers."""

    rows: Rows
    classes: Rows
    codes: tuple[Rows, ...]
    numbers: Floats


@dataclass(frozen=True)
class CodeClasses:
    """How often records are of each class, and what those of a class are like."""

    weights: Floats
    tables: tuple[Floats, ...]
    """The distribution of each other attribute, one row per class."""
    means: Floats
    spread: Floats
    """The covariance of the numbers within a class."""
    noise: Floats

    def probabilities(self, own: Shown, others: Sequence[Shown], numbers: Floats) -> tuple[Floats, float]:
        """The probability of each class for each record, and the mean log-likelihood."""
        logs = np.tile(np.log(self.weights), (len(own.codes), 1))
        there = np.flatnonzero(own.codes >= 0)
        likelihood = np.full((len(own.codes), own.size), own.other)
        likelihood[there, own.codes[there]] += own.retention
        logs += np.log(likelihood)
        for part, table in zip(others, self.tables, strict=True):
            shown = np.log(part.retention * table + part.other).T[np.maximum(part.codes, 0)]
            logs += np.where(part.codes[:, None] >= 0, shown, 0.0)
        if numbers.shape[1]:
            precision = np.linalg.inv(self.spread + self.noise)
            scaled = numbers @ precision
            squares = (scaled * numbers).sum(axis=1)[:, None] - 2 * scaled @ self.means.T
            logs -= 0.5 * (squares + ((self.means @ precision) * self.means).sum(axis=1))
        top = logs.max(axis=1, keepdims=True)
        found = np.exp(logs - top)
        total = found.sum(axis=1, keepdims=True)
        return found / total, float((top + np.log(total)).mean())

    def categories(self, part: Shown, table: Floats, classes: Floats) -> Floats:
        """The posterior distribution of another attribute."""
        kept = _kept(part, table)
        found: Floats = (classes * (1 - kept)) @ table
        there = np.flatnonzero(part.codes >= 0)
        found[there, part.codes[there]] += (classes * kept).sum(axis=1)[there]
        return found

    def originals(self, numbers: Floats, classes: Floats) -> Floats:
        """The posterior mean of the numbers."""
        centre = classes @ self.means
        gain = np.linalg.solve(self.spread + self.noise, self.spread)
        found: Floats = centre + (numbers - centre) @ gain
        return found


def fit(
    own: Shown, others: Sequence[Shown], numbers: Floats, noise: Floats, labels: Labels | None, iterations: int
) -> tuple[CodeClasses, float]:
    """The classes of some records by EM, and the mean log-likelihood of what is shown.

    Args:
        own: the attribute whose categories are the classes.
        others: the other attributes.
        numbers: noisy numbers with mean 0 and variance 1.
        noise: the covariance of their noise.
        labels: the records that are known.
        iterations: the number of iterations.

    """
    frequencies = own.frequencies()
    size = len(frequencies)
    tables = tuple(np.tile(part.frequencies(), (size, 1)) for part in others)
    spread = nearest_covariance(np.cov(numbers.T).reshape(noise.shape) - noise, np.ones(len(noise)))
    model, likelihood = CodeClasses(frequencies, tables, np.zeros((size, len(noise))), spread, noise), -np.inf
    for _ in range(iterations):
        classes, likelihood = model.probabilities(own, others, numbers)
        learned, known = classes.copy(), numbers
        if labels is not None:
            learned[labels.rows] = 0.0
            learned[labels.rows, labels.classes] = 1.0
            known = numbers.copy()
            known[labels.rows] = labels.numbers
        counts = learned.sum(axis=0)
        tables = tuple(
            _table(part, old, learned, None if labels is None else (labels, labels.codes[i]))
            for i, (part, old) in enumerate(zip(others, model.tables, strict=True))
        )
        model = replace(_with_means(model, known, learned, counts), weights=(counts + 0.3) / (counts + 0.3).sum())
        model = replace(model, tables=tables)
    return model, likelihood


def _kept(part: Shown, table: Floats) -> Floats:
    """The probability that what a record shows was retained, in each class."""
    shown = part.retention * table.T[np.maximum(part.codes, 0)]
    return np.where(part.codes[:, None] >= 0, shown / (shown + part.other), 0.0)


def _table(part: Shown, old: Floats, classes: Floats, known: tuple[Labels, Rows] | None) -> Floats:
    """The distribution of an attribute in each class: shown and retained, or replaced and then as before."""
    kept = _kept(part, old)
    retained, replaced = classes * kept, classes * (1 - kept)
    if known is not None:
        retained[known[0].rows], replaced[known[0].rows] = 0.0, 0.0
    records = np.arange(len(part.codes))
    belong = csr_array((np.ones(len(records)), (np.maximum(part.codes, 0), records)), (part.size, len(records)))
    counts = np.asarray(belong @ retained)
    counts += replaced.sum(axis=0) * old.T
    if known is not None:
        there = np.flatnonzero(known[1] >= 0)
        np.add.at(counts, (known[1][there], known[0].classes[there]), 1.0)
    discount = _DISCOUNT if part.size > _FEW_CATEGORIES else _SMALL_DISCOUNT
    weight = _WHOLE * part.size
    left = np.maximum(counts - discount, 0.0) + weight * part.frequencies()[:, None]
    table: Floats = (left / left.sum(axis=0)).T
    return table


def _with_means(model: CodeClasses, numbers: Floats, classes: Floats, counts: Floats) -> CodeClasses:
    """The means of the classes, drawn to 0 where few records tell them, and the covariance within classes."""
    if not numbers.shape[1]:
        return model
    means = (classes.T @ numbers) / (counts + 1e-9)[:, None]
    between = np.maximum((means**2 * counts[:, None]).sum(axis=0) / len(numbers), 1e-3)
    means *= counts[:, None] / (counts[:, None] + numbers.var(axis=0) / between)
    total = numbers.T @ numbers / len(numbers) - (means * counts[:, None]).T @ means / len(numbers)
    values, vectors = np.linalg.eigh(total - model.noise)
    return replace(model, means=means, spread=(vectors * np.maximum(values, _LEAST)) @ vectors.T)
