"""The House votes of zhang2005, section 6: guided and randomised rows of them, and what models make of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.naive_bayes import CategoricalNB

from sfumato.experiments import _data
from sfumato.survey import leakage
from sfumato.survey.classifiers import _categorical, _law, bayes_from_guided, bayes_from_randomised
from sfumato.survey.guidance import Tally, needed, spectrum
from sfumato.survey.perturbation import bits_of, guided, randomise

Array = Any
SIZES = (2,) * 16
TRAIN = 228
"""Only 228 for training and 207 for testing allow both accuracies that the paper prints."""


def imputed(rng: np.random.Generator) -> Array:
    """The votes, with the missing ones drawn uniformly, as in the paper."""
    votes, _ = _data.votes()
    return np.where(votes < 0, rng.integers(0, 2, votes.shape), votes)


def tally(bits: Array, labels: Array) -> Tally:
    """What a collector keeps of these rows."""
    return Tally.empty(2, bits.shape[1]).add(bits, labels)


def draws(rng: np.random.Generator, count: int) -> Array:
    """As many random words as a device would take."""
    return rng.integers(0, 2**53, count)


def ratio_bayes(kept: Tally, sizes: Sequence[int]) -> CategoricalNB:
    """Naive Bayes by `n_cv / Σ_v n_cv`: empty groups are ignored, and double ones count for both.

    Another reading of guided rows, which the paper may have meant; the product reads them bit by bit.
    """
    sums = np.diagonal(kept.together, axis1=1, axis2=2).astype(float)
    parts = np.split(sums, np.cumsum(sizes)[:-1], axis=1)
    tables = [_law(part / np.maximum(part.sum(1, keepdims=True), 1e-9)) for part in parts]
    return _categorical(tables, kept.rows.astype(float), sizes)


@dataclass(frozen=True)
class Compared:
    """Accuracies over splits, at one disclosure level of the guided mode."""

    level: int
    bits: float
    """What either mode tells of a respondent."""
    guided: Any
    """The better reading of guided rows, split by split: by ratios, or bit by bit."""
    randomised: Any
    original: Any
    """Of the rows as they are."""
    ratio: Any
    bitwise: Any

    @property
    def gain(self) -> tuple[float, float]:
        """By how much the randomised mode is better, and the standard error of that."""
        gap = self.randomised - self.guided
        return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))


def equally_telling(votes: Any, bits: float, rng: np.random.Generator) -> float:
    """The retention at which randomised response tells so many bits."""
    low, high = 0.0, 1.0
    for _ in range(9):
        middle = (low + high) / 2
        told = leakage.randomised(votes, SIZES, [middle] * 16, rng, draws=3000)
        low, high = (middle, high) if told < bits else (low, middle)
    return (low + high) / 2


def compare(levels: tuple[int, ...], splits: int, rng: np.random.Generator) -> Iterator[Compared]:
    """Guided and randomised rows that tell as much, at each disclosure level."""
    for level in levels:
        yield _at(level, splits, rng)


def _at(level: int, splits: int, rng: np.random.Generator) -> Compared:
    _, party = _data.votes()
    scores: dict[str, list[float]] = {"ratio": [], "bitwise": [], "randomised": [], "original": []}
    votes = imputed(rng)
    directions = spectrum(tally(bits_of(votes, SIZES), party).together)[1][:, :level]
    bits = leakage.guided(votes, SIZES, directions, rng, draws=8000)
    kept = equally_telling(votes, bits, rng)
    for _ in range(splits):
        votes, order = imputed(rng), rng.permutation(435)
        train, test = order[:TRAIN], order[TRAIN:]
        rows = bits_of(votes, SIZES)
        directions = spectrum(tally(rows, party).together)[1][:, :level]
        sent = tally(guided(rows[train], directions, 0.0, draws(rng, TRAIN * 32)), party[train])
        told = randomise(votes[train], SIZES, [kept] * 16, draws(rng, TRAIN * 32))
        labels, whole = np.eye(2)[party[train]], np.ones((TRAIN, 16))
        models = {
            "ratio": ratio_bayes(sent, SIZES),
            "bitwise": bayes_from_guided(sent, SIZES, 0.0),
            "randomised": bayes_from_randomised(told, kept * whole, SIZES, labels),
            "original": bayes_from_randomised(votes[train], whole, SIZES, labels),
        }
        for name, model in models.items():
            scores[name].append(float((model.predict(votes[test]) == party[test]).mean()))
    found = {name: np.array(values) for name, values in scores.items()}
    better = max(("ratio", "bitwise"), key=lambda name: found[name].mean())
    return Compared(
        level, bits, found[better], found["randomised"], found["original"], found["ratio"], found["bitwise"]
    )


def protocol(
    rng: np.random.Generator, boot: int, rows: int, *, every: int = 5, real: bool = True, error: float = 0.15
) -> Iterator[tuple[int, int, Array, Tally, Array, Array]]:
    """The whole protocol: guidance from what was received, refreshed as it comes; yields rows, k* and directions."""
    _, party = _data.votes()
    votes = imputed(rng)
    order = rng.integers(0, 435, boot + rows) if rows > 435 else rng.permutation(435)[: boot + rows]
    bits, labels = bits_of(votes, SIZES), party
    first = bits[order[:boot]] if real else bits_of(rng.integers(0, 2, (boot, 16)), SIZES)
    own = labels[order[:boot]] if real else rng.integers(0, 2, boot)
    known, sent = tally(first, own), Tally.empty(2, 32)
    for start in range(boot, boot + rows, every):
        values, vectors = spectrum(known.together)
        level = max(needed(values, error), 2)
        some = order[start : start + every]
        row = guided(bits[some], vectors[:, :level], 0.0, draws(rng, len(some) * 32))
        known, sent = known.add(row, labels[some]), sent.add(row, labels[some])
        yield start + len(some), needed(values, error), vectors[:, :level], sent, votes, order
