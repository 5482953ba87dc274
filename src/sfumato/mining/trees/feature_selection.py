"""Feature selection for decision trees: the few columns that discriminate the classes best in the original."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.mining.features.features import TrainingSet
from sfumato.mining.trees.hyperplanes import (
    PENALTIES,
    GridClassCounts,
    class_probabilities,
    rough_class_probabilities,
)
from sfumato.mining.trees.joint_density import JointGrid, KnownMarginals, joint_grid

_BINS = (48, 48, 24)
"""Bins per column of the final grid, for one, two and three columns; they divide `MARGINAL_BINS`."""
_SCREENING_BINS = 5
_GROUPS, _ROUGH_BINS = 5, 12
"""The number of groups that, with all their subsets, are reconstructed to choose among them and the penalty, and their
bins."""
_FINALISTS, _SPLITS = 4, 5
"""The number of groups that are compared again, and of random splits into halves: one split may favour any group."""
_PENALTY_SPLITS = 2
"""The number of random splits by which the penalty is chosen."""
_COST_PER_COLUMN = 0.05
"""The gain in accuracy that one more column must bring, as a share of the error rate of the majority class."""
_COST_OF_CORRELATION = 0.125
"""The gain that a pair of perfectly correlated columns must bring in addition."""
_MAX_CELLS = 1 << 17
"""The largest number of cells of a grid; more would take long, and hold too few records each."""
_MAX_RECORDS = 300_000
"""The number of records that columns are selected by."""
_EXHAUSTIVE = 12
"""The largest number of columns for which every group is scored; with more, the best groups are extended by one."""

Group = tuple[int, ...]
"""The indices of some columns."""


@dataclass(frozen=True)
class FeatureSelection:
    """The selected columns as a grid, and the penalty on changes along them."""

    grid: JointGrid
    penalty: float
    known: KnownMarginals
    """The densities of columns that were found on the way, if they are those of all records."""


def select_features(training: TrainingSet, most: int, seed: int | None) -> FeatureSelection:
    """Select at most so many columns that discriminate the classes best in the original, as far as the copy shows.

    Candidate groups are those in which the classes differ most in the copy, and their subsets. The group with the
    highest expected accuracy after reconstruction is selected, unless fewer or less correlated columns do nearly as
    well: noise leaves the joint distribution of strongly correlated columns poorly determined. The penalty is the one
    with the highest held-out log-likelihood.
    """
    training.features.check_separate()
    every = -(-len(training.labels) // _MAX_RECORDS)
    sample = replace(training, values=training.values[::every], labels=training.labels[::every])
    widest, correlations = _discriminating_groups(sample, most), _correlations(sample)
    subsets = {part for group in widest for size in range(1, len(group) + 1) for part in combinations(group, size)}
    groups = [part for part in subsets if len(part) == 1 or _cells(training, part) <= _MAX_CELLS]
    known: KnownMarginals = {}
    counts = {
        group: GridClassCounts.of(sample, joint_grid(sample, group, _ROUGH_BINS), known) for group in sorted(groups)
    }

    majority_error = 1 - float(np.bincount(sample.labels).max()) / len(sample.labels)
    seed = int(np.random.default_rng(seed).integers(1 << 32))

    def score(group: Group, splits: int) -> float:
        correlation = float(correlations[np.ix_(group, group)].max())
        cost = _COST_PER_COLUMN * len(group) + _COST_OF_CORRELATION * correlation
        return _expected_accuracy(counts[group], seed, splits) - cost * majority_error

    finalists = sorted(counts, key=lambda group: score(group, 1), reverse=True)[:_FINALISTS]
    best = max(finalists, key=lambda group: score(group, _SPLITS))
    penalty = max(PENALTIES, key=lambda penalty: _held_out_log_likelihood(counts[best], penalty, seed))
    return FeatureSelection(joint_grid(training, best, _BINS[len(best) - 1]), penalty, known if every == 1 else {})


def _cells(training: TrainingSet, group: Group) -> int:
    """The number of cells of the final grid over some columns."""
    sizes = [training.features.columns[i].size or _BINS[len(group) - 1] for i in group]
    return int(np.prod(sizes, dtype=np.float64))


def _correlations(training: TrainingSet) -> Floats:
    """The absolute correlations of numeric columns in the original; 0 on the diagonal and for categories."""
    covariance = np.atleast_2d(np.cov(training.values.T)) - training.features.noise
    is_estimable = np.diag(covariance) > 0
    deviations = np.sqrt(np.where(is_estimable, np.diag(covariance), 1.0))
    correlations = np.clip(np.abs(covariance / np.outer(deviations, deviations)), 0, 1)
    known = is_estimable & np.array([column.size == 0 for column in training.features.columns])
    off_diagonal = ~np.eye(len(known), dtype=np.bool_)
    out: Floats = np.where(np.outer(known, known) & off_diagonal, correlations, 0.0)
    return out


def _expected_accuracy(counts: GridClassCounts, seed: int, splits: int) -> float:
    """The expected accuracy on the original of a classifier that knows these columns.

    It is biased upwards if the same records choose the most probable class of a cell and estimate its probability, and
    downwards if one half of the records does the one and the other half the other: the mean of the two is taken.
    """
    rng = np.random.default_rng(seed)
    halves = [half for _ in range(splits) for half in counts.random_halves(rng)]
    every, *fits = rough_class_probabilities([counts, *halves])
    held_out = 0.0
    for one, other in zip(fits[::2], fits[1::2], strict=True):
        held_out += (_accuracy(counts, one, other) + _accuracy(counts, other, one)) / 2
    return (_accuracy(counts, every, every) + held_out / splits) / 2


def _accuracy(counts: GridClassCounts, classifying: Floats, scoring: Floats) -> float:
    """The expected accuracy, by the scoring probabilities, of the classes that are most probable by the others."""
    chosen = classifying.argmax(axis=0)[None]
    return float((counts.density * np.take_along_axis(scoring, chosen, axis=0)[0]).sum())


def _held_out_log_likelihood(counts: GridClassCounts, penalty: float, seed: int) -> float:
    """The log-likelihood of each half of the records given the fit to the other, summed over random splits."""
    rng = np.random.default_rng(seed)
    halves = [half for _ in range(_PENALTY_SPLITS) for half in counts.random_halves(rng)]
    fits = class_probabilities(halves, penalty)
    others = (fits[i ^ 1] for i in range(len(halves)))
    return sum(half.log_likelihood(other) for half, other in zip(halves, others, strict=True))


def _discriminating_groups(training: TrainingSet, most: int) -> list[Group]:
    """The groups of columns in which the classes of the copy differ most, by likelihood ratio less its expectation."""
    codes = [_coarse(column.size, training.values[:, i]) for i, column in enumerate(training.features.columns)]
    best_score = -np.inf
    best: list[Group] = []
    for size in range(1, min(most, len(codes)) + 1):
        candidates = _candidates(len(codes), size, best)
        scores = ((_likelihood_ratio(training, [codes[i] for i in group]), tuple(group)) for group in candidates)
        ranked = sorted(scores, reverse=True)
        if ranked[0][0] <= best_score:
            break
        best_score, best = ranked[0][0], [group for _, group in ranked[:_GROUPS]]
    return best


def _candidates(columns: int, size: int, best: list[Group]) -> Iterable[Group]:
    """All groups of a size, or, of many columns, the best smaller groups extended by one column."""
    if columns <= _EXHAUSTIVE or not best:
        return combinations(range(columns), size)
    return {tuple(sorted((*group, i))) for group in best for i in range(columns) if i not in group}


def _likelihood_ratio(training: TrainingSet, codes: list[Rows]) -> float:
    """The likelihood-ratio statistic of independence between classes and cells, less its degrees of freedom."""
    shape = (len(training.classes), *(int(code.max()) + 1 for code in codes))
    keys = np.ravel_multi_index((training.labels, *codes), shape)
    counts = np.bincount(keys, minlength=int(np.prod(shape))).reshape(shape[0], -1).astype(np.float64)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    ratio = counts[counts > 0] * np.log(counts[counts > 0] / expected[counts > 0])
    return float(2 * ratio.sum() - (shape[0] - 1) * ((counts.sum(axis=0) > 0).sum() - 1))


def _coarse(size: int, values: Floats) -> Rows:
    """The codes of categories, or numbers in a few bins of equal frequency."""
    if size:
        return values.astype(np.int64)
    thresholds = np.unique(np.quantile(values, np.linspace(0, 1, _SCREENING_BINS + 1)[1:-1]))
    return np.searchsorted(thresholds, values)
