"""Risk of margin-preserving columns in their own values: an estimated score and its error, read off the margin.

Attacks estimate normal scores. What they tell about the values depends on the margin: a category is that of the most
probable interval, and a number is the mean of the values that are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import ndtr, ndtri

from sfumato.attacks import ATTACKS, Evidence
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.best_estimates import BestEstimates
from sfumato.audit.column_risk import ColumnRisk
from sfumato.audit.learned_values import learned_values
from sfumato.kernels import Floats, Rows
from sfumato.models import of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.tables.columns import contiguous
from sfumato.tables.margin import Margin, known_values

ATTACK = "posterior"

Scores = Mapping[str, tuple[Floats, Floats]]
"""The estimated and the true scores of columns."""

_LINEAR = ("llse", "regression")
"""The attacks whose scores are read off the margin: the one believes the manifests, the other learns from records."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)

_SHARES = 512
"""The number of quantiles by which an expectation is computed."""

_RECORDS = 20_000
"""The most records whose values are estimated."""


def value_risks(released: AuditInput, independent: AuditInput, best: BestEstimates) -> tuple[ColumnRisk, ...]:
    """The risk of each margin-preserving column in its own values: by the best copy, all copies, independent ones.

    Args:
        released: the copies.
        independent: as many copies whose noise is independent.
        best: the best estimates of scores, of the records that attackers do not know.

    """
    columns = margins_of(released)
    if not columns:
        return ()
    unknown = np.delete(np.arange(len(released.truth)), released.known_rows())[:_RECORDS]
    copy = released.best_copy
    evidence = [released.single(copy, known_records=True), released.combined(), independent.combined()]
    found = [_estimates(one, released, columns, unknown) for one in evidence]
    by_any = _read_off(_best_scores(best, released, unknown), columns)
    learned = learned_values(evidence[0], released, columns, unknown)
    for name in columns:  # of copies on one path the best one tells as much as all
        found[0][name] += by_any[name] + learned[name]
        found[1][name] += by_any[name] + learned[name]
    risks = (_risk(name, margin, released, unknown, found) for name, margin in columns.items())
    return tuple(risk for risk in risks if risk is not None)


def margins_of(released: AuditInput) -> dict[str, Margin]:
    """The margins of all columns that have one."""
    models = [model for manifest in released.manifests for model in of_type(manifest.models, GaussianCopula)]
    return {name: Margin.decode(data) for m in models for name, data in zip(m.columns, m.margins, strict=True)}


def score_error(estimated: Floats, truth: Floats) -> float:
    """The mean square error of estimated scores, where `truth` are the mean scores of values: 1 without any value.

    What a value leaves open of its score is added.
    """
    both = np.isfinite(estimated) & np.isfinite(truth)
    if not both.any():
        return 1.0
    within = max(1.0 - float(truth[both].var()), 0.0)
    return float(((estimated[both] - truth[both]) ** 2).mean()) + within


def value_estimates(scores: Floats, error: float, margin: Margin) -> Floats:
    """The integers of a margin that scores with a normal error lead to: their mean, or the most probable category."""
    deviation = float(np.sqrt(error))
    if not margin.values:
        nodes = np.stack([margin.from_scores(scores + deviation * node) for node in _NODES]).astype(np.float64)
        means: Floats = _WEIGHTS @ nodes / _WEIGHTS.sum()
        return means
    likeliest: Floats = np.array(margin.low, np.float64)[bin_probabilities(scores, error, margin).argmax(axis=1)]
    return likeliest


def bin_probabilities(scores: Floats, error: float, margin: Margin) -> Floats:
    """The probability of each bin for scores with a normal error, one row per score."""
    _, ends = margin.groups(len(margin.share))
    deviation = max(float(np.sqrt(error)), 1e-6)
    masses: Floats = np.diff(ndtr((ends[None, :] - scores[:, None]) / deviation), axis=1)
    return masses


def _estimates(
    evidence: Evidence, released: AuditInput, columns: dict[str, Margin], rows: Rows
) -> dict[str, list[Floats]]:
    """The values that each linear attack estimates for some records."""
    made: dict[str, list[Floats]] = {name: [] for name in columns}
    for attack in _LINEAR:
        estimate = ATTACKS[attack]().estimate(evidence).take(rows)
        truth = released.truth.take(rows).numbers(estimate.columns)
        scores = {name: (estimate.values[:, i], truth[:, i]) for i, name in enumerate(estimate.columns)}
        for name, values in _read_off(scores, columns).items():
            made[name] += values
    return made


def _best_scores(best: BestEstimates, released: AuditInput, rows: Rows) -> Scores:
    """The best estimate of each column's scores by any attack, with the true scores."""
    truth = released.truth.take(rows)
    return {
        name: (estimate[: len(rows)], truth.numbers([name])[:, 0])
        for name, (_, _, estimate) in best.numbers.items()
        if name in truth.columns
    }


def _read_off(scores: Scores, columns: Mapping[str, Margin]) -> dict[str, list[Floats]]:
    """The values of columns that estimated scores lead to, by their true error."""
    made: dict[str, list[Floats]] = {name: [] for name in columns}
    for name, margin in columns.items():
        if name in scores:
            estimated, truth = scores[name]
            made[name].append(value_estimates(np.nan_to_num(estimated), score_error(estimated, truth), margin))
    return made


def _risk(
    name: str, margin: Margin, released: AuditInput, rows: Rows, found: list[dict[str, list[Floats]]]
) -> ColumnRisk | None:
    """The best of the attacks by each adversary, in records that have a value; none for a column that is constant."""
    array = known_values(contiguous(released.original.column(name)), margin)
    cells = margin.cells(array, name).take(rows)
    truth = cells.integers[~cells.missing].astype(np.float64)
    if not len(truth) or truth.min() == truth.max():
        return None
    values = [[one[~cells.missing] for one in estimates[name]] for estimates in found]
    if margin.values:
        shares = np.bincount(truth.astype(np.int64)) / max(len(truth), 1)
        results = [max((float((one == truth).mean()) for one in some), default=np.nan) for some in values]
        return ColumnRisk((name,), "success", float(shares.max(initial=0.0)), *_ordered(results, max), ATTACK)
    variance = float(truth.var())
    results = [min((float(((one - truth) ** 2).mean()) / variance for one in some), default=np.nan) for some in values]
    return ColumnRisk((name,), "error", 1.0, *_ordered(results, min), ATTACK)


def _ordered(results: list[float], best: Callable[[float, float], float]) -> tuple[float, float, float]:
    """One copy, all copies, and independent ones; a coalition may also attack only one copy."""
    single, combined, independent = results
    return single, best(single, combined), independent


def expected_error(margin: Margin, fidelity: float) -> tuple[float, float, float]:
    """The mean and the variance of a column of numbers, and the mean square error of the best estimate from one copy.

    In integers of the margin, by its published distribution: the score given that of a copy is normal.
    """
    shown = ndtri((np.arange(_SHARES) + 0.5) / _SHARES)
    values = margin.from_scores(shown).astype(np.float64)
    estimated = value_estimates(np.sqrt(fidelity) * shown, 1 - fidelity, margin)
    return float(values.mean()), float(values.var()), max(float(values.var() - estimated.var()), 0.0)


def expected_accuracy(margin: Margin, fidelity: float) -> float:
    """How often the most probable category is right, given the score that a copy has."""
    shown = ndtri((np.arange(_SHARES) + 0.5) / _SHARES)
    return float(bin_probabilities(np.sqrt(fidelity) * shown, 1 - fidelity, margin).max(axis=1).mean())
