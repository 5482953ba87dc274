"""How right an estimate was: the only place where an estimate meets the truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.attacks.evidence.evidence import Records
from sfumato.attacks.evidence.statistics import means_of
from sfumato.attacks.results.estimate import Belief, Estimate, column_of
from sfumato.attacks.results.measure import Figure, Measured, mean, proportion, root
from sfumato.errors import AttackError, nearest
from sfumato.kernels import Floats, Rows

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class NumberScore:
    """What an attack found out about one column of numbers."""

    column: str
    rmse: Measured
    error: Measured
    """The mean square error as a share of the column's variance: 0 is everything, 1 no more than its mean tells."""
    quantiles: tuple[float, ...]
    """Of the absolute error, at `QUANTILES`."""


@dataclass(frozen=True)
class CategoryScore:
    """What an attack found out about one attribute."""

    columns: tuple[str, ...]
    reconstruction: Measured
    """The mean probability it gives to the true value (xiao2009, eq. 25)."""
    success: Measured
    """How often its likeliest value is the true one."""


@dataclass(frozen=True)
class Score:
    """How right an attack was, beside a guess without any copy and a control of records that were not released."""

    attack: str
    rows: int
    numbers: tuple[NumberScore, ...]
    categories: tuple[CategoryScore, ...]
    breaches: dict[str, Measured]
    """How often a record's numbers were found within `epsilon`: `euclidean`, `entry` (the nearest of its columns) and
    `cosine` (giannella2010, Definition 3.1, with |â| where a = 0). Where the baseline is 1, it says nothing."""
    quantiles: tuple[float, ...]
    """Of a record's error over all columns, in standard deviations, at `QUANTILES`."""
    epsilon: float

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "quantiles at": list(QUANTILES)}

    def has(self, column: str) -> bool:
        """Whether the attack spoke of a column of numbers."""
        return any(score.column == column for score in self.numbers)

    def number(self, column: str) -> NumberScore:
        """The score of a column of numbers."""
        found = [score for score in self.numbers if score.column == column]
        if not found:
            names = [score.column for score in self.numbers]
            raise AttackError(f"{self.attack} says nothing of a number {column!r}; {nearest(column, names)}")
        return found[0]

    def category(self, *columns: str) -> CategoryScore:
        """The score of a category, or of the columns of a joint group."""
        found = [score for score in self.categories if score.columns == columns]
        if not found:
            names = [" x ".join(score.columns) for score in self.categories]
            raise AttackError(
                f"{self.attack} says nothing of a category {columns}; {nearest(' x '.join(columns), names)}"
            )
        return found[0]


def score(
    estimate: Estimate,
    truth: Records,
    *,
    control: Records | None = None,
    epsilon: float = 0.05,
    confidence: float = 0.95,
) -> Score:
    """How right an estimate is.

    Args:
        truth: the same records in the same order.
        control: records that were not released. The estimate of a record is held against one of them, and what it
            finds there it would find without the record's being in the table. By default, other records of the table.
        epsilon: what counts as a breach.
        confidence: of the intervals.

    """
    if len(truth) != len(estimate):
        raise AttackError(f"the truth must have the {len(estimate):,} records of the estimate, got {len(truth):,}")
    rows = len(estimate)
    other = truth.take(np.roll(np.arange(rows), rows // 2)) if control is None else control.take(_cycled(rows, control))
    real, strange = truth.numbers(estimate.columns), other.numbers(estimate.columns)
    numbers = [
        _number(name, guess, there, elsewhere, confidence)
        for name, guess, there, elsewhere in zip(estimate.columns, estimate.values.T, real.T, strange.T, strict=True)
    ]
    categories = [
        found
        for belief in estimate.beliefs
        for found in _categories(belief, truth.codes[belief.columns], other.codes[belief.columns], confidence)
    ]
    breaches = _breaches(estimate.values, real, strange, epsilon, confidence) if numbers else {}
    return Score(
        estimate.attack,
        rows,
        tuple(numbers),
        tuple(categories),
        breaches,
        _quantiles(record_errors(estimate.values, real)),
        epsilon,
    )


def record_errors(guess: Floats, truth: Floats) -> Floats:
    """Each record's root mean square error over its columns, in standard deviations; NaN where nothing is known."""
    there = ~np.isnan(guess) & ~np.isnan(truth)
    spread = np.array(
        [column[seen].var() if seen.any() else 1.0 for column, seen in zip(truth.T, there.T, strict=True)]
    )
    squares = np.where(there, (guess - truth) ** 2, 0.0) / np.where(spread > 0, spread, 1.0)
    count = there.sum(axis=1)
    errors: Floats = np.where(count > 0, np.sqrt(squares.sum(axis=1) / np.maximum(count, 1)), np.nan)
    return errors


def _cycled(rows: int, control: Records) -> Rows:
    if not len(control):
        raise AttackError("a control must have at least one record; leave it out, or give some")
    return np.arange(rows) % len(control)


def _number(name: str, guess: Floats, truth: Floats, other: Floats, confidence: float) -> NumberScore:
    there = ~np.isnan(guess) & ~np.isnan(truth)
    real = truth[there]
    if not len(real):
        nothing = Measured(*(Figure(np.nan, np.nan, np.nan),) * 3)
        return NumberScore(name, nothing, nothing, (np.nan,) * len(QUANTILES))
    variance = float(real.var()) or 1.0
    apart = guess - other
    squares = [(guess[there] - real) ** 2, (real - real.mean()) ** 2, apart[~np.isnan(apart)] ** 2]
    found = [mean(square, confidence, least=0.0) for square in squares]
    return NumberScore(
        name,
        Measured(*map(root, found)),
        Measured(*(figure.scaled(1 / variance) for figure in found)),
        _quantiles(np.sqrt(squares[0])),
    )


def _categories(belief: Belief, truth: Rows, other: Rows, confidence: float) -> list[CategoryScore]:
    """Of an attribute and, if it is a joint group, of each of its columns."""
    found = [_category(belief, truth, other, confidence)]
    for i, part in enumerate(belief.marginals()):
        real, strange = (np.where(whole >= 0, column_of(whole, belief.model, i), -1) for whole in (truth, other))
        found.append(_category(part, real, strange, confidence))
    return found


def _category(belief: Belief, truth: Rows, other: Rows, confidence: float) -> CategoryScore:
    there, elsewhere = truth >= 0, other >= 0
    share = np.bincount(truth[there]) / max(there.sum(), 1)
    alone = share[truth[there]]
    guess = belief.guess()
    commonest = int(share.argmax()) if share.size else 0
    hits = [(guess == truth)[there], (truth == commonest)[there], (guess == other)[elsewhere]]
    chances = [belief.probability(truth)[there], alone, belief.probability(other)[elsewhere]]
    return CategoryScore(
        belief.columns,
        Measured(*(mean(chance, confidence) for chance in chances)),
        Measured(*(proportion(hit, confidence) for hit in hits)),
    )


def _breaches(guess: Floats, truth: Floats, other: Floats, epsilon: float, confidence: float) -> dict[str, Measured]:
    constant = np.broadcast_to(means_of(truth), truth.shape)
    pairs = [(guess, truth), (constant, truth), (guess, other)]
    rates = [breached(*pair, epsilon) for pair in pairs]
    return {
        name: Measured(*(proportion(rate[name], confidence) for rate in rates))
        for name in ("euclidean", "entry", "cosine")
    }


def breached(guess: Floats, truth: Floats, epsilon: float) -> dict[str, Any]:
    """Which records' guesses are breaches, by each of the three definitions (giannella2010, Definition 3.1).

    At a true entry of 0 the definition prints the guess itself where its size is meant, and cosines lie in [-1, 1].
    """
    missing = np.isnan(guess).any(axis=1) | np.isnan(truth).any(axis=1)
    if missing.any():
        guess, truth = guess[~missing], truth[~missing]
    apart = np.abs(guess - truth)
    length, guessed, wrong = (np.sqrt(np.einsum("ij,ij->i", part, part)) for part in (truth, guess, apart))
    product = length * guessed
    cosine = np.einsum("ij,ij->i", guess, truth) / np.where(product > 0, product, 1.0)
    # at a true entry of 0, the difference is the size of the guess
    return {
        "euclidean": wrong <= epsilon * length,
        "entry": (apart <= epsilon * np.where(truth == 0, 1.0, np.abs(truth))).any(axis=1),
        "cosine": 1 - cosine <= epsilon,
    }


def _quantiles(values: Floats) -> tuple[float, ...]:
    there = values[~np.isnan(values)]
    return tuple(map(float, np.quantile(there, QUANTILES))) if len(there) else (np.nan,) * len(QUANTILES)
