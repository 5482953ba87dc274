"""Values of margin-preserving columns, learned from known records: a forest from all that a copy shows to each column.

A score estimated without bias is not the best guess of a value: between values that are not ordered, as letters are,
only what known records look like tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sfumato.attacks import Evidence
from sfumato.attacks.evidence.simulation import simulate_copies
from sfumato.audit.audit_input import AuditInput
from sfumato.kernels import Floats, Rows
from sfumato.kernels.column_moments import column_deviations
from sfumato.kernels.threads import in_threads
from sfumato.tables.columns import contiguous
from sfumato.tables.margin import Margin, known_values

_TREES, _LEAF = 40, 2
"""The number of trees, and the fewest known records in a leaf."""

_SIMULATED = 4
"""Copies with fresh noise that are learned from, for each known record."""

_MOST_VALUES = 100
"""Columns with more categories are not learned."""


def learned_values(
    evidence: Evidence, released: AuditInput, columns: Mapping[str, Margin], rows: Rows
) -> dict[str, list[Floats]]:
    """For each column the integers of its margin that a forest estimates for some records; nothing if it cannot."""
    known = released.known_rows()
    shown = np.nan_to_num(evidence.features())
    simulated = np.nan_to_num(_simulated(evidence, released, known).features())
    inputs = np.vstack([shown[known], simulated])

    def learn(name: str) -> list[Floats]:
        margin = columns[name]
        if len(margin.values or ()) > _MOST_VALUES:
            return []
        cells = margin.cells(known_values(contiguous(released.original.column(name)), margin), name)
        present = ~cells.missing[known]
        targets = cells.integers[known[present]].astype(np.float64)
        if len(targets) < 2 * _LEAF or targets.min() == targets.max():
            return []
        taught, answers = inputs[np.tile(present, 1 + _SIMULATED)], np.tile(targets, 1 + _SIMULATED)
        return [_forest(taught, answers, shown[rows], categories=bool(margin.values))]

    return dict(zip(columns, in_threads(learn, columns), strict=True))


def _simulated(evidence: Evidence, released: AuditInput, known: Rows) -> Evidence:
    """What further copies of the known records would show: their scores with fresh noise of the published size.

    A value leaves open where in its interval of scores a record is: that part is drawn, too.
    """
    rows = np.tile(known, _SIMULATED)
    records = released.truth.take(rows)
    ranked = np.isin(records.columns, [name for part in evidence.numbers if part.copula for name in part.columns])
    within = np.where(ranked, np.maximum(1 - column_deviations(records.values) ** 2, 0), 0) ** 0.5
    values = records.values + within * np.random.default_rng(1).normal(size=records.values.shape)
    simulated = simulate_copies(evidence, replace(records, values=values))
    return replace(simulated, public_data=None if evidence.public is None else evidence.public[rows])


def _forest(inputs: Floats, targets: Floats, some: Floats, *, categories: bool) -> Floats:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor  # noqa: PLC0415 - slow to import

    options = {"n_estimators": _TREES, "min_samples_leaf": _LEAF, "random_state": 0, "n_jobs": 1}
    if categories:
        found = ExtraTreesClassifier(**options).fit(inputs, targets.astype(np.int64)).predict(some)
    else:
        found = ExtraTreesRegressor(**options).fit(inputs, targets).predict(some)
    estimated: Floats = np.asarray(found, np.float64)
    return estimated
