"""Values of margin-preserving columns, learned from known records: a forest from all that a copy shows to each column.

A score estimated without bias is not the best guess of a value: between values that are not ordered, as letters are,
only what known records look like tells them apart.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sfumato.attacks import Evidence
from sfumato.audit.audit_input import AuditInput
from sfumato.kernels import Floats, Rows
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
    shown = _shown(evidence)
    known = released.known_rows()
    simulated = _simulated(evidence, released, shown, known)

    def learn(name: str) -> list[Floats]:
        margin = columns[name]
        if len(margin.values or ()) > _MOST_VALUES:
            return []
        cells = margin.cells(known_values(contiguous(released.original.column(name)), margin), name)
        taught = known[~cells.missing[known]]
        targets = cells.integers[taught].astype(np.float64)
        if len(taught) < 2 * _LEAF or targets.min() == targets.max():
            return []
        inputs = np.vstack([shown[taught], *(some[~cells.missing[known]] for some in simulated)])
        answers = np.tile(targets, 1 + len(simulated))
        return [_forest(inputs, answers, shown[rows], categories=bool(margin.values))]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(columns, pool.map(learn, columns), strict=True))


def _simulated(evidence: Evidence, released: AuditInput, shown: Floats, known: Rows) -> list[Floats]:
    """What further copies of the known records would show: their scores with fresh noise of the published size."""
    if len(evidence.numbers) != 1:
        return []
    part, rng = evidence.numbers[0], np.random.default_rng(0)
    scores = np.nan_to_num(released.truth.take(known).numbers(part.columns))
    within = np.sqrt(np.maximum(1 - scores.var(axis=0), 0))  # what a value leaves open of its score
    values, vectors = np.linalg.eigh(part.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    out = []
    for _ in range(_SIMULATED):
        some = shown[known].copy()
        fresh, open_ = (rng.normal(size=scores.shape) for _ in range(2))
        some[:, : scores.shape[1]] = scores + within * open_ + fresh @ root.T
        out.append(some)
    return out


def _shown(evidence: Evidence) -> Floats:
    """All that the copies show of each record."""
    parts = [part.values for part in evidence.numbers]
    parts += [part.codes[:, None].astype(np.float64) for part in evidence.categories]
    parts += [] if evidence.public is None else [evidence.public]
    return np.nan_to_num(np.hstack(parts))


def _forest(inputs: Floats, targets: Floats, some: Floats, *, categories: bool) -> Floats:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor  # noqa: PLC0415 - slow to import

    options = {"n_estimators": _TREES, "min_samples_leaf": _LEAF, "random_state": 0, "n_jobs": 1}
    if categories:
        found = ExtraTreesClassifier(**options).fit(inputs, targets.astype(np.int64)).predict(some)
    else:
        found = ExtraTreesRegressor(**options).fit(inputs, targets).predict(some)
    estimated: Floats = np.asarray(found, np.float64)
    return estimated
