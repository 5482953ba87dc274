"""Guided survey perturbation against randomised response on the House votes (zhang2005, section 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.naive_bayes import CategoricalNB

from sfumato.experiments import _data
from sfumato.survey import leakage
from sfumato.survey.classifiers import (
    categorical_naive_bayes,
    class_conditional,
    naive_bayes_from_guided,
    naive_bayes_from_randomised,
)
from sfumato.survey.guidance import CooccurrenceCounts, disclosure_level, spectrum
from sfumato.survey.perturbation import guided_response, one_hot, randomised_response

Array = Any
SIZES = (2,) * 16
TRAIN = 228
"""The size of the training set: only 228 with 207 for testing allow both accuracies that the paper prints."""


def imputed(rng: np.random.Generator) -> Array:
    """The votes, with missing ones drawn uniformly, as in the paper."""
    votes, _ = _data.votes()
    return np.where(votes < 0, rng.integers(0, 2, votes.shape), votes)


def counts_of(bits: Array, labels: Array) -> CooccurrenceCounts:
    """The counts that a collector keeps of these rows."""
    return CooccurrenceCounts.empty(2, bits.shape[1]).add(bits, labels)


def random_words(rng: np.random.Generator, count: int) -> Array:
    """Random integers of 53 bits, as a respondent's device draws them."""
    return rng.integers(0, 2**53, count)


def naive_bayes_by_ratios(counts: CooccurrenceCounts, sizes: Sequence[int]) -> CategoricalNB:
    """Naive Bayes by `n_cv / Σ_v n_cv`: empty groups are ignored, and a group with two bits set counts for both.

    This is another reading of guided rows, which the paper may have meant; the product reads them bit by bit.
    """
    sums = np.diagonal(counts.pairs, axis1=1, axis2=2).astype(float)
    parts = np.split(sums, np.cumsum(sizes)[:-1], axis=1)
    tables = [class_conditional(part / np.maximum(part.sum(1, keepdims=True), 1e-9)) for part in parts]
    return categorical_naive_bayes(tables, counts.rows.astype(float), sizes)


@dataclass(frozen=True)
class Comparison:
    """Accuracies over train-test splits at one disclosure level of the guided mode, both modes at equal leakage."""

    level: int
    bits: float
    """The mutual information of a row and its respondent, in bits, equal for both modes."""
    guided: Any
    """Accuracies of the better reading of guided rows: by ratios, or bit by bit."""
    randomised: Any
    original: Any
    """Accuracies with unperturbed rows."""
    ratio: Any
    bitwise: Any

    @property
    def gain(self) -> tuple[float, float]:
        """The mean advantage of the randomised mode in accuracy, and its standard error."""
        gap = self.randomised - self.guided
        return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))


def retention_for_bits(votes: Any, bits: float, rng: np.random.Generator) -> float:
    """The retention probability at which randomised response leaks this many bits, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(9):
        middle = (low + high) / 2
        leaked = leakage.randomised(votes, SIZES, [middle] * 16, rng, draws=3000)
        low, high = (middle, high) if leaked < bits else (low, middle)
    return (low + high) / 2


def compare(levels: tuple[int, ...], splits: int, rng: np.random.Generator) -> Iterator[Comparison]:
    """Guided rows and randomised response at equal leakage, for each disclosure level."""
    for level in levels:
        yield _compare_at(level, splits, rng)


def _compare_at(level: int, splits: int, rng: np.random.Generator) -> Comparison:
    _, party = _data.votes()
    scores: dict[str, list[float]] = {"ratio": [], "bitwise": [], "randomised": [], "original": []}
    votes = imputed(rng)
    directions = spectrum(counts_of(one_hot(votes, SIZES), party).pairs)[1][:, :level]
    bits = leakage.guided(votes, SIZES, directions, rng, draws=8000)
    retention = retention_for_bits(votes, bits, rng)
    for _ in range(splits):
        votes, order = imputed(rng), rng.permutation(435)
        train, test = order[:TRAIN], order[TRAIN:]
        rows = one_hot(votes, SIZES)
        directions = spectrum(counts_of(rows, party).pairs)[1][:, :level]
        sent = guided_response(rows[train], directions, 0.0, random_words(rng, TRAIN * 32))
        counts = counts_of(sent, party[train])
        randomised = randomised_response(votes[train], SIZES, [retention] * 16, random_words(rng, TRAIN * 32))
        labels, ones = np.eye(2)[party[train]], np.ones((TRAIN, 16))
        models = {
            "ratio": naive_bayes_by_ratios(counts, SIZES),
            "bitwise": naive_bayes_from_guided(counts, SIZES, 0.0),
            "randomised": naive_bayes_from_randomised(randomised, retention * ones, SIZES, labels),
            "original": naive_bayes_from_randomised(votes[train], ones, SIZES, labels),
        }
        for name, model in models.items():
            scores[name].append(float((model.predict(votes[test]) == party[test]).mean()))
    accuracy = {name: np.array(values) for name, values in scores.items()}
    better = max(("ratio", "bitwise"), key=lambda name: accuracy[name].mean())
    return Comparison(
        level,
        bits,
        accuracy[better],
        accuracy["randomised"],
        accuracy["original"],
        accuracy["ratio"],
        accuracy["bitwise"],
    )


def protocol(
    rng: np.random.Generator, boot: int, rows: int, *, every: int = 5, real: bool = True, error: float = 0.15
) -> Iterator[tuple[int, int, Array, CooccurrenceCounts, Array, Array]]:
    """The complete protocol: guidance from the rows received so far, refreshed every few rows.

    Yields the number of rows received, k*, the directions, the counts of guided rows, the votes, and their order.
    """
    _, party = _data.votes()
    votes = imputed(rng)
    order = rng.integers(0, 435, boot + rows) if rows > 435 else rng.permutation(435)[: boot + rows]
    bits, labels = one_hot(votes, SIZES), party
    first = bits[order[:boot]] if real else one_hot(rng.integers(0, 2, (boot, 16)), SIZES)
    first_labels = labels[order[:boot]] if real else rng.integers(0, 2, boot)
    known, sent = counts_of(first, first_labels), CooccurrenceCounts.empty(2, 32)
    for start in range(boot, boot + rows, every):
        values, vectors = spectrum(known.pairs)
        level = max(disclosure_level(values, error), 2)
        batch = order[start : start + every]
        row = guided_response(bits[batch], vectors[:, :level], 0.0, random_words(rng, len(batch) * 32))
        known, sent = known.add(row, labels[batch]), sent.add(row, labels[batch])
        yield start + len(batch), disclosure_level(values, error), vectors[:, :level], sent, votes, order
