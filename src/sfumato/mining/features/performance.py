"""Performance on the original: how good a model is that was learned from a copy, estimated from the copy alone.

A score against the copy's own records is that for noisy records, and too low. Here each fold of the copy is left out
when a model is fitted, and the model is scored on that fold of plausible originals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer, get_scorer_names

from sfumato.errors import MiningError, nearest
from sfumato.kernels import Floats, Rows
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.estimation import estimate
from sfumato.mining.copies.imputation import Combined, combine
from sfumato.mining.features.features import Records, open_records
from sfumato.mining.imputed_classifier import ImputedClassifier
from sfumato.mining.imputed_regressor import ImputedRegressor
from sfumato.tables.source import Source

FOLDS = 5
"""The number of folds, unless another is given."""

_FEWEST = 50
"""The fewest records of a fold."""

_IMPUTATIONS = 5
"""The number of plausible originals that a usual model learns from."""


@dataclass(frozen=True)
class Performance:
    """A score on records of the original that the model has not seen, with its interval."""

    metric: str
    estimate: float
    low: float
    high: float
    baseline: float
    """The score of a model that predicts the same for all records: the most frequent class, or the mean."""


def performance(
    model: Any,
    copy: Any,
    target: str,
    metrics: Sequence[str] | None = None,
    *,
    folds: int = FOLDS,
    m: int = 20,
    confidence: float = 0.95,
    random_state: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Performance]:
    """How good a model learned from a copy is on the original, by cross-validation on plausible originals.

        performance(ImputedClassifier(), "copy.parquet", "smokes")["accuracy"]

    The estimand is the score of models fitted to all folds of the copy but one, on the records of the original that are
    in this one, on average.

    Args:
        model: a classifier or regression of this package, not fitted.
        copy: a copy, as a table or a path.
        target: the column that is predicted.
        metrics: scikit-learn's names of scores; by default accuracy, with the area under the curve where there are two
            classes, or the coefficient of determination.
        folds: the number of folds.
        m: the number of plausible originals.
        confidence: the confidence level of the intervals.
        random_state: the seed.
        progress: called after each fold.

    """
    data = _records(model, copy, target, folds)
    parts = np.array_split(np.random.default_rng(random_state).permutation(len(data.target_values)), folds)
    fitted = []
    for part in parts:
        fitted.append(clone(model).fit(_without(data, part), target))
        progress(1)
    named = _metrics(model, fitted[0], metrics)

    def scores(original: pa.Table) -> Floats:
        return np.array([_scores(original, fitted, parts, target, name) for name in named])

    return _performances(named, _estimated(data, target, scores, m, confidence, random_state))


def _performances(metrics: Sequence[str], found: Combined) -> dict[str, Performance]:
    """The scores of a model and of its baseline, within what a score can be."""
    if not np.isfinite(found.estimate).all():
        raise MiningError(
            "every fold must have records of every class, and some plausible original has none; use fewer folds, or "
            "merge rare classes"
        )
    lowest, highest = np.array([_bounds(name) for name in metrics]).T
    ends = [np.clip(end[:, 0], lowest, highest) for end in (found.estimate, found.low, found.high)]
    columns = zip(metrics, *(end.tolist() for end in (*ends, found.estimate[:, 1])), strict=True)
    return {name: Performance(name, *numbers) for name, *numbers in columns}


def usual_model(copy: Any, target: str) -> Any:
    """The model that is mostly the best one to predict a column: boosting on a few plausible originals."""
    opened = Copy.of(copy)
    opened.model(target)  # refuses a name that is no column
    return (ImputedRegressor if opened.is_numeric(target) else ImputedClassifier)(m=_IMPUTATIONS)


def _records(model: Any, copy: Any, target: str, folds: int) -> Records:
    """The complete records of a copy."""
    data = open_records(clone(model), copy, target)
    if data is None:
        raise MiningError("performance is estimated from a copy; scikit-learn's cross_val_score is for the original")
    complete = data.complete
    if folds < 2 or complete.sum() < _FEWEST * folds:
        raise MiningError(
            f"at least two folds of at least {_FEWEST} complete records are needed, got {folds} folds and "
            f"{complete.sum():,} complete records; use fewer folds, or a larger copy"
        )
    table = data.table.filter(pa.array(complete))
    labels = [value for value, is_there in zip(data.target_values, complete, strict=True) if is_there]
    return Records(data.copy, table, data.features, data.values[complete], labels, data.target)


def _without(data: Records, part: Rows) -> Copy:
    """The copy without the records of a fold."""
    others = np.setdiff1d(np.arange(data.table.num_rows), part)
    return Copy(data.copy.manifest, Source.of(data.table.take(pa.array(others))))


def _estimated(
    data: Records, target: str, scores: Callable[[pa.Table], Floats], m: int, confidence: float, random_state: int
) -> Combined:
    """Scores on the original: from plausible ones or, if nothing was perturbed, from the records themselves."""
    names = [*(column.name for column in data.features.columns), target]
    whole = Copy(data.copy.manifest, Source.of(data.table.select(names)))
    if not any(whole.model(name).is_perturbed for name in names):
        return combine([scores(data.table.select(names))] * 2, confidence=confidence)
    return estimate(whole, scores, m=m, confidence=confidence, random_state=random_state)


def _metrics(model: Any, fitted: Any, metrics: Sequence[str] | None) -> list[str]:
    """The scores that are asked for, or the usual ones; refuses unknown ones."""
    if metrics is None:
        if not is_classifier(model):
            return ["r2"]
        return ["accuracy", "roc_auc"] if len(fitted.classes_) == 2 else ["accuracy"]
    known = get_scorer_names()
    for name in metrics:
        if name not in known:
            raise MiningError(f"scikit-learn has no score {name!r}; {nearest(name, known)}")
    return list(metrics)


def _scores(
    original: pa.Table, fitted: Sequence[Any], parts: Sequence[Rows], target: str, metric: str
) -> tuple[float, float]:
    """The mean score of some models over the folds that they were not fitted to, and that of the baseline."""
    scorer, labels = get_scorer(metric), np.array(original.column(target).to_pylist())
    features, own, same = original.drop_columns([target]), [], []
    for model, part in zip(fitted, parts, strict=True):
        own.append(scorer(model, features.take(pa.array(part)), labels[part]))
        constant = DummyClassifier(strategy="prior") if is_classifier(model) else DummyRegressor()
        others = np.setdiff1d(np.arange(len(labels)), part)
        constant.fit(np.zeros((len(others), 1)), labels[others])
        same.append(scorer(constant, np.zeros((len(part), 1)), labels[part]))
    return float(np.mean(own)), float(np.mean(same))


def _bounds(metric: str) -> tuple[float, float]:
    """The least and the largest value that a score of scikit-learn can have."""
    if metric.startswith("neg_"):
        return -np.inf, 0.0
    lowest = {"r2": -np.inf, "explained_variance": -np.inf, "d2_absolute_error_score": -np.inf, "matthews_corrcoef": -1}
    return (lowest.get(metric, 0.0), np.inf if "likelihood" in metric else 1.0)
