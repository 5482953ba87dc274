"""Scoring of attacks: the only module that compares an estimate with the truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.attacks.evidence.evidence import MappedRows, Records
from sfumato.attacks.results.estimate import Estimate, Posterior, marginal_codes
from sfumato.attacks.results.measure import Measure, mean, proportion, ratio, root
from sfumato.errors import AttackError, nearest
from sfumato.kernels import Floats, Rows
from sfumato.kernels.column_moments import column_means
from sfumato.kernels.intervals import UNKNOWN
from sfumato.models import of_type
from sfumato.models.rotation import Rotation
from sfumato.pages.described import Described, Description

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""The probabilities at which quantiles of errors are reported."""


@dataclass(frozen=True)
class NumberScore:
    """The score of an attack on one numeric column."""

    column: str
    rmse: Measure
    """The root mean square error, in the units of the column."""
    error: Measure
    """The residual error, the mean square error as a share of the column's variance: 0 if the column is known exactly,
    1 if the estimate is no better than the mean."""
    quantiles: tuple[float, ...]
    """Quantiles of the absolute error, at the probabilities `QUANTILES`."""


@dataclass(frozen=True)
class CategoryScore:
    """The score of an attack on one categorical attribute (attribute inference)."""

    columns: tuple[str, ...]
    reconstruction: Measure
    """The mean posterior probability of the true category (xiao2009, eq. 25)."""
    success: Measure
    """The accuracy: the share of records whose most probable category is the true one."""


@dataclass(frozen=True, repr=False)
class Score(Described):
    """The score of an attack, with a baseline without any copy and a control of records that were not released."""

    attack: str
    rows: int
    numbers: tuple[NumberScore, ...]
    categories: tuple[CategoryScore, ...]
    breaches: dict[str, Measure]
    """The share of records whose numbers, as they are before a linear map (centred and scaled with `standardise`), were
    estimated within `epsilon`: `euclidean`, `entry` (the closest of its
    columns) and `cosine` (giannella2010, Definition 3.1, with |â| where a = 0). With a baseline of 1, a rate means
    nothing."""
    quantiles: tuple[float, ...]
    """Quantiles of a record's error over all columns, in standard deviations, at the probabilities `QUANTILES`."""
    epsilon: float

    def description(self) -> Description:
        """What notebooks and prompts show."""
        rows = [(one.column, "residual error", *_shown(one.error)) for one in self.numbers]
        rows += [(" x ".join(one.columns), "accuracy", *_shown(one.success)) for one in self.categories]
        names = ("column", "measure", "attack", "without a copy", "records never released")
        facts = (f"{self.rows:,} records", *(f"{row[0]} {row[1]} {row[2]}" for row in rows[:4]))
        return Description(f"Score of {self.attack!r}", facts, names, rows, texts=2)

    def summary(self) -> dict[str, Any]:
        """The score as a JSON object."""
        return {**asdict(self), "quantiles at": list(QUANTILES)}

    def has(self, column: str) -> bool:
        """Whether the attack estimates a numeric column of this name."""
        return any(score.column == column for score in self.numbers)

    def number(self, column: str) -> NumberScore:
        """The score of a numeric column."""
        scores = [score for score in self.numbers if score.column == column]
        if not scores:
            names = [score.column for score in self.numbers]
            raise AttackError(f"{self.attack} does not estimate a numeric column {column!r}; {nearest(column, names)}")
        return scores[0]

    def category(self, *columns: str) -> CategoryScore:
        """The score of a categorical column, or of the columns of a joint group."""
        scores = [score for score in self.categories if score.columns == columns]
        if not scores:
            name, names = " x ".join(columns), [" x ".join(score.columns) for score in self.categories]
            raise AttackError(
                f"{self.attack} does not estimate a categorical attribute {name!r}; {nearest(name, names)}"
            )
        return scores[0]


def score(
    estimate: Estimate,
    truth: Records,
    *,
    control: Records | None = None,
    epsilon: float = 0.05,
    confidence: float = 0.95,
) -> Score:
    """Compare an estimate with the truth.

    Args:
        estimate: the result of an attack.
        truth: the original of the same records, in the same order.
        control: records that were not released. The estimate of a record is also compared with one of them: success
            there is no disclosure, because it does not depend on the record being in the table. By default, other
            records of the table.
        epsilon: the relative error up to which an estimate is a breach.
        confidence: the confidence level of the intervals.

    """
    if len(truth) != len(estimate):
        raise AttackError(f"the truth must have the {len(estimate):,} records of the estimate, got {len(truth):,}")
    rows = len(estimate)
    other = truth.take(np.roll(np.arange(rows), rows // 2)) if control is None else control.take(_cycled(rows, control))
    real, unrelated = truth.numbers(estimate.columns), other.numbers(estimate.columns)
    numbers = [
        _score_number(name, guess, values, others, confidence)
        for name, guess, values, others in zip(estimate.columns, estimate.values.T, real.T, unrelated.T, strict=True)
    ]
    categories = [
        category
        for one in estimate.posteriors
        for category in _score_categories(one, truth.codes[one.columns], other.codes[one.columns], confidence)
    ]
    guess, actual, elsewhere = (_before_linear_map(estimate, part) for part in (estimate.values, real, unrelated))
    breaches = _breaches(guess, actual, elsewhere, epsilon, confidence) if numbers else {}
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
    """Each record's root mean square error over its columns, in standard deviations; NaN where all are missing."""
    present = ~np.isnan(guess) & ~np.isnan(truth)
    variance = np.array(
        [column[rows].var() if rows.any() else 1.0 for column, rows in zip(truth.T, present.T, strict=True)]
    )
    squares = np.where(present, (guess - truth) ** 2, 0.0) / np.where(variance > 0, variance, 1.0)
    count = present.sum(axis=1)
    errors: Floats = np.where(count > 0, np.sqrt(squares.sum(axis=1) / np.maximum(count, 1)), np.nan)
    return errors


def _cycled(rows: int, control: Records) -> Rows:
    """Row indices of the control records, repeated until there is one for every estimated record."""
    if not len(control):
        raise AttackError("a control must have at least one record, got none; leave it out, or give some records")
    return np.arange(rows) % len(control)


def _score_number(name: str, guess: Floats, truth: Floats, other: Floats, confidence: float) -> NumberScore:
    present = ~np.isnan(guess) & ~np.isnan(truth)
    real = truth[present]
    if not len(real):
        unknown = Measure(UNKNOWN, UNKNOWN, UNKNOWN)
        return NumberScore(name, unknown, unknown, (np.nan,) * len(QUANTILES))
    variance = float(real.var()) or 1.0
    difference = guess - other
    squares = [(guess[present] - real) ** 2, (real - real.mean()) ** 2, difference[~np.isnan(difference)] ** 2]
    mean_squares = [mean(square, confidence, least=0.0) for square in squares]
    error, baseline = (ratio(square, squares[1], confidence) for square in squares[:2])
    return NumberScore(
        name,
        Measure(*map(root, mean_squares)),
        Measure(error, baseline, mean_squares[2].scaled(1 / variance)),
        _quantiles(np.sqrt(squares[0])),
    )


def _score_categories(posterior: Posterior, truth: Rows, other: Rows, confidence: float) -> list[CategoryScore]:
    """The scores of an attribute and, if it is a joint group, of each of its columns."""
    scores = [_score_category(posterior, truth, other, confidence)]
    for i, marginal in enumerate(posterior.marginals()):
        real, unrelated = (
            np.where(codes >= 0, marginal_codes(codes, posterior.model, i), -1) for codes in (truth, other)
        )
        scores.append(_score_category(marginal, real, unrelated, confidence))
    return scores


def _score_category(posterior: Posterior, truth: Rows, other: Rows, confidence: float) -> CategoryScore:
    present, other_present = truth >= 0, other >= 0
    share = np.bincount(truth[present]) / max(present.sum(), 1)
    guess = posterior.mode()
    commonest = int(share.argmax()) if share.size else 0
    hits = [(guess == truth)[present], (truth == commonest)[present], (guess == other)[other_present]]
    probabilities = [
        posterior.probability(truth)[present],
        share[truth[present]],
        posterior.probability(other)[other_present],
    ]
    return CategoryScore(
        posterior.columns,
        Measure(*(mean(probability, confidence) for probability in probabilities)),
        Measure(*(proportion(hit, confidence) for hit in hits)),
    )


def _before_linear_map(estimate: Estimate, values: Floats) -> Floats:
    """Records in the coordinates that a linear map is applied to, in which a breach is defined; else as they are."""
    for model in of_type(estimate.models, Rotation):
        if model.sources == estimate.columns:
            return MappedRows(model, "", values).standardised(values)
    return values


def _breaches(guess: Floats, truth: Floats, other: Floats, epsilon: float, confidence: float) -> dict[str, Measure]:
    """The breach rates of the estimate, of the constant guess of the means, and of the estimate against the control."""
    constant = np.broadcast_to(column_means(truth), truth.shape)
    pairs = [(guess, truth), (constant, truth), (guess, other)]
    rates = [breached(*pair, epsilon) for pair in pairs]
    return {
        name: Measure(*(proportion(rate[name], confidence) for rate in rates))
        for name in ("euclidean", "entry", "cosine")
    }


def breached(guess: Floats, truth: Floats, epsilon: float) -> dict[str, Any]:
    """Which records are breached, by each of the three definitions of a breach (giannella2010, Definition 3.1).

    At a true entry of 0 the paper prints the guess itself where its absolute value is meant; cosines lie in [-1, 1].
    """
    missing = np.isnan(guess).any(axis=1) | np.isnan(truth).any(axis=1)
    if missing.any():
        guess, truth = guess[~missing], truth[~missing]
    difference = np.abs(guess - truth)
    true_norm, norm, distance = (np.sqrt(np.einsum("ij,ij->i", part, part)) for part in (truth, guess, difference))
    product = true_norm * norm
    cosine = np.einsum("ij,ij->i", guess, truth) / np.where(product > 0, product, 1.0)
    return {
        "euclidean": distance <= epsilon * true_norm,
        # at a true entry of 0, the difference is the absolute value of the guess
        "entry": (difference <= epsilon * np.where(truth == 0, 1.0, np.abs(truth))).any(axis=1),
        "cosine": 1 - cosine <= epsilon,
    }


def _quantiles(values: Floats) -> tuple[float, ...]:
    present = values[~np.isnan(values)]
    return tuple(map(float, np.quantile(present, QUANTILES))) if len(present) else (np.nan,) * len(QUANTILES)


def _shown(measure: Measure) -> tuple[str, str, str]:
    attack = measure.attack
    found = f"{attack.estimate:.3f} ({attack.low:.3f} to {attack.high:.3f})"
    return found, f"{measure.baseline.estimate:.3f}", f"{measure.control.estimate:.3f}"
