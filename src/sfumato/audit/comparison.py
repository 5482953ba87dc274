"""Effect of collusion: attacks on all copies compared with one copy, and with copies whose noise is independent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.attacks import ATTACKS, Estimate, Records, record_errors
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.column_risk import ColumnRisk
from sfumato.audit.result import AttackRun, CollusionCurve, ErrorDistribution
from sfumato.kernels import Floats

_NONE = (math.nan, "")
"""The result where no attack estimates a column."""

_BIN_EDGES = np.linspace(0, 2.5, 51)
"""Bins of a record's error, in standard deviations; larger errors are counted in the last one."""


def column_risks(
    released: AuditInput, single_copy: Sequence[AttackRun], all_copies: AttackRun, independent: AttackRun
) -> list[ColumnRisk]:
    """The risk of each column that some attack estimates.

    A coalition that holds several copies may also attack only one of them, so that its best attack is the best of
    those on all copies and of those on single ones.
    """
    return [
        *_number_risks(_varying_columns(released), single_copy, all_copies, independent),
        *_category_risks(single_copy, all_copies, independent),
    ]


def _varying_columns(released: AuditInput) -> list[str]:
    """The columns of numbers, or scores, that vary: of a constant one there is nothing to find out."""
    columns = released.truth.columns
    values = released.truth.numbers(columns)
    first = [line[np.isfinite(line)][:1] for line in values.T]
    return [c for c, line, one in zip(columns, values.T, first, strict=True) if (line[np.isfinite(line)] != one).any()]


def _number_risks(
    columns: Sequence[str], single_copy: Sequence[AttackRun], all_copies: AttackRun, independent: AttackRun
) -> Iterator[ColumnRisk]:
    """The smallest residual error of each column of numbers."""
    for column in columns:
        single = [result for run in single_copy for result in run.residual_errors(column)]
        combined = [*all_copies.residual_errors(column), *single]
        if combined:
            value, attack = min(combined)
            best_single = min(single, default=_NONE)[0]
            comparison = min(independent.residual_errors(column), default=_NONE)[0]
            yield ColumnRisk((column,), "error", 1.0, best_single, value, comparison, attack)


def _category_risks(
    single_copy: Sequence[AttackRun], all_copies: AttackRun, independent: AttackRun
) -> Iterator[ColumnRisk]:
    """The largest accuracy on each categorical attribute."""
    scored = [category for run in (all_copies, *single_copy) for score in run.scores for category in score.categories]
    baselines: dict[tuple[str, ...], float] = {}
    for category in scored:
        baselines.setdefault(category.columns, category.success.baseline.estimate)
    for columns, baseline in baselines.items():
        single = [result for run in single_copy for result in run.accuracies(columns)]
        combined = [*all_copies.accuracies(columns), *single]
        if combined:
            value, attack = max(combined)
            best_single = max(single, default=_NONE)[0]
            comparison = max(independent.accuracies(columns), default=_NONE)[0]
            yield ColumnRisk(columns, "success", baseline, best_single, value, comparison, attack)


def collusion_curves(released: AuditInput, independent: AuditInput) -> list[CollusionCurve]:
    """The joint attack with one copy, two copies, and so on."""
    curves = []
    if all(copy.numbers for copy in released.copies):
        curves.append(CollusionCurve("error", *(tuple(_errors(one)) for one in (released, independent))))
    if all(copy.categories for copy in released.copies):
        values = (tuple(_reconstructions(one)) for one in (released, independent))
        curves.append(CollusionCurve("reconstruction", *values))
    return curves


def _errors(copies: AuditInput) -> list[float]:
    """The mean residual error of the best linear attack, for a growing number of copies."""
    counts = range(1, len(copies.copies) + 1)
    return [float(np.nanmean(_linear_attack_errors(copies, count) ** 2)) for count in counts]


def _linear_attack_errors(copies: AuditInput, count: int | None = None) -> Floats:
    """The errors of the better of two linear attacks on the first copies, or on all, in records it does not know.

    One believes the manifests about how the copies depend on each other, the other estimates it from known records.
    """
    found = []
    for estimate, truth in _joint_estimates(copies, "llse", count):
        found.append(record_errors(estimate.values, truth.numbers(estimate.columns)))
    return min(found, key=lambda errors: np.nan_to_num(np.nanmean(errors**2), nan=np.inf))


def _reconstructions(copies: AuditInput) -> list[float]:
    """The mean posterior probability of the true category, for a growing number of copies (xiao2009, eq. 25).

    It is that of the better of two attacks, as for numbers.
    """
    out = []
    for count in range(1, len(copies.copies) + 1):
        found = []
        for estimate, truth in _joint_estimates(copies, "collusion", count):
            probabilities = [np.nanmean(one.probability(truth.codes[one.columns])) for one in estimate.posteriors]
            found.append(float(np.mean(probabilities)))
        out.append(max(found))
    return out


def _joint_estimates(copies: AuditInput, stated: str, count: int | None) -> Iterator[tuple[Estimate, Records]]:
    """The estimates by an attack that believes the manifests and by `regression`, and the truth of unknown records."""
    unknown = np.delete(np.arange(len(copies.truth)), copies.known_rows())
    evidence, truth = copies.combined(count), copies.truth.take(unknown)
    for name in (stated, "regression"):
        yield ATTACKS[name]().estimate(evidence).take(unknown), truth


def error_distribution(released: AuditInput, independent: AuditInput) -> ErrorDistribution | None:
    """A histogram over records of the error of the best linear attack on all copies."""
    if not all(copy.numbers for copy in released.copies):
        return None
    shares = []
    for copies in (released, independent):
        errors = _linear_attack_errors(copies)
        counts = np.histogram(np.minimum(errors[~np.isnan(errors)], _BIN_EDGES[-1]), _BIN_EDGES)[0]
        shares.append(tuple(map(float, counts / max(counts.sum(), 1))))
    return ErrorDistribution(tuple(map(float, _BIN_EDGES)), *shares)
