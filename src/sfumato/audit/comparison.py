"""What pooling gives, beside one copy and beside copies whose noise is independent."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.attacks import ATTACKS, record_errors
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.result import AttackRun, Growth, Spread, Worth


def worth(seen: AuditInput, alone: Sequence[AttackRun], pooled: AttackRun, independent: AttackRun) -> list[Worth]:
    """Of each column that an attack speaks of. Who holds several copies may also make use of one of them only."""
    found = []
    for column in seen.truth.columns:
        held = [reached for trial in alone for reached in trial.errors(column)]
        all_of_them = [*pooled.errors(column), *held]
        if all_of_them:
            value, attack = min(all_of_them)
            apart = min(independent.errors(column), default=_NOTHING)[0]
            found.append(Worth(column, "error", 1.0, min(held, default=_NOTHING)[0], value, apart, attack))
    scores = [score for trial in (pooled, *alone) for score in trial.scores]
    for columns in dict.fromkeys(category.columns for score in scores for category in score.categories):
        held = [reached for trial in alone for reached in trial.successes(columns)]
        all_of_them = [*pooled.successes(columns), *held]
        if all_of_them:
            value, attack = max(all_of_them)
            base = next(c.success.baseline.value for one in scores for c in one.categories if c.columns == columns)
            apart = max(independent.successes(columns), default=_NOTHING)[0]
            best = max(held, default=_NOTHING)[0]
            found.append(Worth(" x ".join(columns), "success", base, best, value, apart, attack))
    return found


_NOTHING = (math.nan, "")


def growth(seen: AuditInput, twin: AuditInput) -> list[Growth]:
    """The joint attack with ever more copies."""
    out = []
    if all(copy.numbers for copy in seen.copies):
        out.append(Growth("error", *(tuple(_errors(one)) for one in (seen, twin))))
    if all(copy.categories for copy in seen.copies):
        out.append(Growth("reconstruction", *(tuple(_reconstructions(one)) for one in (seen, twin))))
    return out


def _errors(seen: AuditInput) -> list[float]:
    out = []
    for count in range(1, len(seen.copies) + 1):
        found = ATTACKS["llse"]().estimate(seen.pooled(count, knows=False))
        out.append(float(np.nanmean(record_errors(found.values, seen.truth.numbers(found.columns)) ** 2)))
    return out


def _reconstructions(seen: AuditInput) -> list[float]:
    out = []
    for count in range(1, len(seen.copies) + 1):
        beliefs = ATTACKS["collusion"]().estimate(seen.pooled(count, knows=False)).beliefs
        out.append(float(np.mean([np.nanmean(b.probability(seen.truth.codes[b.columns])) for b in beliefs])))
    return out


def spread(seen: AuditInput, twin: AuditInput) -> Spread | None:
    """How the errors of the joint attack are distributed over records."""
    if not all(copy.numbers for copy in seen.copies):
        return None
    edges = np.linspace(0, 2.5, 51)
    shares = []
    for one in (seen, twin):
        found = ATTACKS["llse"]().estimate(one.pooled(knows=False))
        errors = record_errors(found.values, seen.truth.numbers(found.columns))
        counts = np.histogram(np.minimum(errors[~np.isnan(errors)], edges[-1]), edges)[0]
        shares.append(tuple(map(float, counts / max(counts.sum(), 1))))
    return Spread(tuple(map(float, edges)), *shares)
