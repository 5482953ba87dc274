"""Information loss: how far statistics of a copy as it stands are from those of the original."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.audit.measures.mixed_table import MixedTable
from sfumato.kernels import Floats, Mask, Rows
from sfumato.kernels.column_moments import column_deviations, column_means
from sfumato.kernels.convergence_warnings import ignore_convergence_warnings

_FITTED = 5_000
"""The most records that a model is fitted to."""
_ITERATIONS = 30
"""The boosting iterations of a model."""

MOST_GROUPS = 50
"""A column with more values does not make groups."""
_GROUP_RECORDS = 32
"""The fewest records of a group whose means are compared."""
_ERRORS = 4.0
"""A group's mean has moved if it did by more standard errors than this."""


@dataclass(frozen=True)
class ModelAccuracy:
    """A model trained on a copy, tested on original records that were not released."""

    column: str
    """What it predicts from all other columns."""
    measure: str
    """`accuracy` for categories, `R²` for numbers."""
    original: float
    """The result of the same model trained on the original."""
    copy: float
    baseline: float
    """The result without any model: the commonest category, or the mean."""


@dataclass(frozen=True)
class GroupChange:
    """How far the mean of a number moved in one of the groups that another column makes."""

    column: str
    by: str
    """The column that makes the groups."""
    moved: float
    """The largest change of a group's mean, in standard deviations of the column."""


@dataclass(frozen=True)
class Utility:
    """What a copy as it stands preserves of the original."""

    il1s: float
    """The mean distance of a number from its original, in `√2` standard deviations (IL1s, per value)."""
    eigenvalues: float
    """The mean relative difference of the eigenvalues of the correlation matrices."""
    overlap: float
    """The mean overlap of the 95 % confidence intervals of the means of numbers: 1 if they are the same."""
    largest_mean_error: float
    """The largest difference of a mean, as a share of the column's standard deviation."""
    propensity: float
    """How well copy and original can be distinguished by their records (pMSE, as a share of the largest possible)."""
    models: tuple[ModelAccuracy, ...] = ()
    group_changes: tuple[GroupChange, ...] = ()
    """For each number whose mean moved in some group, where it moved most; the largest first."""


def utility(original: MixedTable, copy: MixedTable, control: MixedTable) -> Utility:
    """The utility of a copy of the same records, and of models trained on it for records that were not released."""
    first, second = (table.values[:, table.is_number] for table in (original, copy))
    return Utility(
        il1s(first, second) / max(first.size, 1),
        eigenvalue_difference(first, second) / max(first.shape[1], 1),
        _mean_overlap(first, second),
        _largest_mean_error(first, second),
        propensity_error(original, copy),
        tuple(model_accuracies(original, copy, control)),
        tuple(group_changes(original, copy)),
    )


def il1s(original: Floats, copy: Floats) -> float:
    """IL1s (Yancey, Winkler and Creecy 2002): the sum over all values of `|x - y|/(√2·sd)`, as in sdcMicro."""
    deviations = column_deviations(original)
    used = deviations > 0
    return float(np.nansum(np.abs(original - copy)[:, used] / (deviations[used] * math.sqrt(2))))


def eigenvalue_difference(original: Floats, copy: Floats) -> float:
    """The sum of relative differences of the eigenvalues of the correlation matrices (sdcMicro's `eigen`)."""
    if original.shape[1] < 2:
        return 0.0
    before, after = (np.sort(np.linalg.eigvalsh(_correlations(some)))[::-1] for some in (original, copy))
    return float((np.abs(before - after) / np.maximum(before, 1e-6)).sum())


def _correlations(values: Floats) -> Floats:
    """Correlations of the records without missing values; a constant column has none with others."""
    complete = values[~np.isnan(values).any(axis=1)]
    complete = values if len(complete) < 3 else complete
    centred = np.nan_to_num(complete - column_means(complete))
    norms = np.sqrt((centred**2).sum(axis=0))
    scaled = centred / np.where(norms > 0, norms, 1.0)
    found: Floats = scaled.T @ scaled
    np.fill_diagonal(found, 1.0)
    return found


def _mean_overlap(original: Floats, copy: Floats) -> float:
    """The overlap of confidence intervals (Karr et al. 2006), on average over the columns."""
    found = [interval_overlap(_interval(x), _interval(y)) for x, y in zip(original.T, copy.T, strict=True)]
    return float(np.mean(found)) if found else math.nan


def _interval(values: Floats) -> tuple[float, float]:
    present = values[~np.isnan(values)]
    if not len(present):
        return 0.0, 0.0
    reach = 1.96 * float(present.std()) / math.sqrt(len(present))
    return float(present.mean()) - reach, float(present.mean()) + reach


def interval_overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """The mean share of two intervals that is common to both; zero if they are apart."""
    common = min(first[1], second[1]) - max(first[0], second[0])
    widths = [end - start for start, end in (first, second)]
    if min(widths) <= 0:
        return float(common >= 0)
    return max(common, 0.0) * (1 / widths[0] + 1 / widths[1]) / 2


def _largest_mean_error(original: Floats, copy: Floats) -> float:
    deviations = column_deviations(original)
    used = deviations > 0
    if not used.any():
        return math.nan
    moved = np.abs(column_means(original[:, used]) - column_means(copy[:, used]))
    return float((moved / deviations[used]).max())


def group_changes(original: MixedTable, copy: MixedTable) -> list[GroupChange]:
    """For each number, the group whose mean moved most, where it moved by more than samples of it differ."""
    distinct = [len(np.unique(line[~np.isnan(line)])) for line in original.values.T]
    groupings = [at for at, count in enumerate(distinct) if 2 <= count <= MOST_GROUPS]
    found = []
    for at in np.flatnonzero(original.is_number):
        moved = {by: _moved(original, copy, int(at), by) for by in groupings if by != at and distinct[at] > 2}
        by = max(moved, key=lambda other: abs(moved[other]), default=-1)
        if by >= 0 and moved[by]:
            found.append(GroupChange(original.columns[at], original.columns[by], moved[by]))
    return sorted(found, key=lambda one: -abs(one.moved))


def _moved(original: MixedTable, copy: MixedTable, column: int, by: int) -> float:
    """The largest significant change of a group's mean, in standard deviations; zero where there is none."""
    first, second = (table.values[:, [column, by]] for table in (original, copy))
    first, second = (some[~np.isnan(some).any(axis=1)] for some in (first, second))
    deviation = float(first[:, 0].std()) if len(first) else 0.0
    largest = 0.0
    for group in np.unique(first[:, 1]) if deviation else ():
        before, after = (some[some[:, 1] == group, 0] for some in (first, second))
        if min(len(before), len(after)) >= _GROUP_RECORDS:
            change = float(after.mean() - before.mean())
            error = math.sqrt(float(before.var()) / len(before) + float(after.var()) / len(after))
            if abs(change) > max(_ERRORS * error, abs(largest) * deviation):
                largest = change / deviation
    return largest


def propensity_error(original: MixedTable, copy: MixedTable) -> float:
    """The pMSE (Woo et al. 2009) of trees with cross-validation, as a share of 1/4: 0 if nobody can tell them apart."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - takes long to import
    from sklearn.model_selection import cross_val_predict  # noqa: PLC0415

    step = max(len(original) // _FITTED, 1)
    inputs = np.vstack([original.values[::step], copy.values[::step]])
    labels = np.repeat([0, 1], [len(original.values[::step]), len(copy.values[::step])])
    used = _varying(inputs)
    if len(labels) < 40 or not used.any():
        return math.nan
    model = HistGradientBoostingClassifier(
        max_iter=_ITERATIONS, max_leaf_nodes=15, random_state=0, early_stopping=False
    )
    order = np.random.default_rng(0).permutation(len(labels))
    with ignore_convergence_warnings():
        predicted = cross_val_predict(model, inputs[order][:, used], labels[order], cv=2, method="predict_proba")[:, 1]
    return float(4 * ((predicted - 0.5) ** 2).mean())


def model_accuracies(original: MixedTable, copy: MixedTable, control: MixedTable) -> list[ModelAccuracy]:
    """Models that predict one category and one number from all other columns: those predicted best."""
    step = max(len(original) // _FITTED, 1)
    rows: Rows = np.arange(0, len(original), step)
    if len(rows) < 100 or len(control) < 50 or len(original.columns) < 2:
        return []
    found = []
    for number in (False, True):
        chosen = _most_predictable(original.take(rows), number=number)
        if chosen is not None:
            results = [_tested(some.take(rows), control, chosen) for some in (original, copy)]
            measure = "R²" if number else "accuracy"
            base = 0.0 if number else _commonest(control.values[:, chosen])
            found.append(ModelAccuracy(original.columns[chosen], measure, results[0], results[1], base))
    return found


def _most_predictable(original: MixedTable, *, number: bool) -> int | None:
    """The column that a linear regression on all others predicts best, with codes of categories as numbers.

    The share of variance that it explains is `1 - 1/(R⁻¹)ⱼⱼ` for the correlation matrix `R`.
    """
    distinct = [len(np.unique(line[~np.isnan(line)])) for line in original.values.T]
    usable = [
        i
        for i, (count, kind) in enumerate(zip(distinct, original.is_number, strict=True))
        if kind == number and (count > 2 if number else 2 <= count <= 50)
    ]
    if not usable:
        return None
    correlations = _correlations(original.values) + 1e-6 * np.eye(len(distinct))
    explained = 1 - 1 / np.diag(np.linalg.inv(correlations))
    return max(usable, key=lambda column: float(explained[column]))


def _commonest(values: Floats) -> float:
    _, counts = np.unique(values, return_counts=True)
    return float(counts.max() / len(values))


def _tested(training: MixedTable, test: MixedTable, column: int) -> float:
    """The accuracy, or R², of gradient boosting on other records."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # noqa: PLC0415

    is_number = bool(training.is_number[column])
    kind = HistGradientBoostingRegressor if is_number else HistGradientBoostingClassifier
    model = kind(max_iter=_ITERATIONS, max_leaf_nodes=15, early_stopping=False, random_state=0)
    inputs, secret = (np.delete(training.values, column, axis=1), training.values[:, column])
    known, there = ~np.isnan(secret), ~np.isnan(test.values[:, column])
    if len(np.unique(secret[known])) < 2:
        return 0.0
    used = _varying(inputs[known])
    if not used.any() or not there.any():
        return 0.0
    with ignore_convergence_warnings():
        model.fit(inputs[known][:, used], secret[known])
        others = np.delete(test.values, column, axis=1)[there][:, used]
        return float(model.score(others, test.values[there, column]))


def _varying(values: Floats) -> Mask:
    """The columns with at least two values; trees cannot be grown on others."""
    return np.array([len(np.unique(line[~np.isnan(line)])) > 1 for line in values.T], np.bool_)
