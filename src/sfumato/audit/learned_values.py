"""Values of margin-preserving columns, learned from known records, by kernels, forests and discriminants.

A score estimated without bias is not the best guess of a value: between values that are not ordered, as letters are,
only what known records look like tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from sfumato.attacks import Evidence
from sfumato.attacks.evidence.simulation import simulate_copies
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.known_scores import KnownScores
from sfumato.audit.value_kernels import KnownColumn, kernel_values
from sfumato.kernels import Floats, Rows
from sfumato.kernels.discriminant import most_probable
from sfumato.kernels.threads import in_threads
from sfumato.tables.columns import contiguous
from sfumato.tables.margin import Margin, known_values

_TREES, _LEAF = 40, 2
"""The number of trees, and the fewest known records in a leaf."""

_SIMULATED = 4
"""Copies with fresh noise that a forest learns from, for each known record."""

_MOST_VALUES = 100
"""Columns with more categories are not learned by a forest."""

_DRAWS = 8
"""How often the scores of known records are drawn."""


def learned_values(
    evidence: Evidence, released: AuditInput, columns: Mapping[str, Margin], rows: Rows
) -> dict[str, list[Floats]]:
    """For each column the integers of its margin that known records teach of some others; nothing if they cannot."""
    ranked = next((part for part in evidence.numbers if part.copula), None)
    if ranked is None or ranked.copula is None:
        return {name: [] for name in columns}
    known = released.known_rows()
    table = released.original.take(pa.array(known))
    taught = {name: _known_column(table, name, margin) for name, margin in columns.items()}
    scores = KnownScores.of(ranked.copula, table, _DRAWS)
    copies, shown = np.nan_to_num(scores.copies()), np.nan_to_num(ranked.values)
    simulated = _simulated(evidence, released, known, copies[: _SIMULATED * len(known)])
    features, further = (np.nan_to_num(one.features()) for one in (evidence, simulated))
    by_forest = np.vstack([features[known], further]), features[rows]
    by_discriminant = np.vstack([shown[known], copies]), shown[rows]

    def learn(name: str) -> list[Floats]:
        column = taught[name]
        targets = column.integers[column.present]
        if len(targets) < 2 * _LEAF or targets.min() == targets.max():
            return []
        learned = []
        if not column.is_category or len(np.unique(targets)) <= _MOST_VALUES:
            inputs, some = by_forest
            present, answers = np.tile(column.present, 1 + _SIMULATED), np.tile(targets, 1 + _SIMULATED)
            learned.append(_forest(inputs[present], answers, some, categories=column.is_category))
        if column.is_category:
            inputs, some = by_discriminant
            present, answers = np.tile(column.present, 1 + _DRAWS), np.tile(targets, 1 + _DRAWS)
            learned.append(most_probable(inputs[present], answers, some, 1 + _DRAWS))
        return learned

    voted = kernel_values(ranked.values, scores, taught, rows)
    learned = dict(zip(columns, in_threads(learn, columns), strict=True))
    return {name: [*voted[name], *learned[name]] for name in columns}


def _known_column(table: pa.Table, name: str, margin: Margin) -> KnownColumn:
    cells = margin.cells(known_values(contiguous(table.column(name)), margin), name)
    return KnownColumn(cells.integers.astype(np.float64), ~cells.missing, bool(margin.values))


def _simulated(evidence: Evidence, released: AuditInput, known: Rows, copies: Floats) -> Evidence:
    """What further copies of the known records would show, of which the scores are given."""
    rows = np.tile(known, _SIMULATED)
    simulated = simulate_copies(evidence, released.truth.take(rows))
    numbers = tuple(replace(part, data=copies) if part.copula else part for part in simulated.numbers)
    return replace(simulated, numbers=numbers, public_data=None if evidence.public is None else evidence.public[rows])


def _forest(inputs: Floats, targets: Floats, some: Floats, *, categories: bool) -> Floats:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor  # noqa: PLC0415 - slow to import

    options = {"n_estimators": _TREES, "min_samples_leaf": _LEAF, "random_state": 0, "n_jobs": 1}
    if categories:
        found = ExtraTreesClassifier(**options).fit(inputs, targets.astype(np.int64)).predict(some)
    else:
        found = ExtraTreesRegressor(**options).fit(inputs, targets).predict(some)
    estimated: Floats = np.asarray(found, np.float64)
    return estimated
