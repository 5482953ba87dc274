"""Mean and covariance of the original, as well as an attacker can estimate them from its evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks.evidence.evidence import Knowledge
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.kernels.column_moments import column_means


@dataclass(frozen=True)
class Statistics:
    """Mean and covariance of the original, and the covariance of the copy."""

    mean: Floats
    covariance: Floats
    """The covariance of the original; an estimate may have negative eigenvalues."""
    copy_covariance: Floats
    """The covariance of the copy: that of the original plus that of the noise."""
    sample_size: int | None
    """The number of records that the covariance was estimated from; none where it is known exactly."""


def statistics(columns: tuple[str, ...], copy: Floats, noise: Floats, knowledge: Knowledge) -> Statistics:
    """The known statistics; else those of a sample; else those of the copy, `Σx = Σy - Σr` (huang2005, eq. 14).

    Args:
        columns: the names of the columns.
        copy: records of the copy without missing values.
        noise: the covariance of the copy's noise.
        knowledge: the background knowledge of the attacker.

    """
    if knowledge.statistics is not None:
        names, mean, covariance = knowledge.statistics
        indices = [names.index(name) for name in columns]
        known = covariance[np.ix_(indices, indices)]
        return Statistics(mean[indices], known, known + noise, None)
    if knowledge.sample is not None:
        sample = complete_records(knowledge.sample.numbers(columns))
        if len(sample) < 2:
            raise AttackError("a sample must have at least two records without missing numbers; give a larger one")
        covariance = np.atleast_2d(np.cov(sample.T))
        return Statistics(sample.mean(axis=0), covariance, covariance + noise, len(sample))
    copy = subsample(copy, knowledge)
    total = np.atleast_2d(np.cov(copy.T))
    return Statistics(copy.mean(axis=0), total - noise, total, len(copy))


def subsample(copy: Floats, knowledge: Knowledge) -> Floats:
    """The records that statistics are estimated from: all, or `knowledge.samples` of them, evenly spaced."""
    if knowledge.samples is None or knowledge.samples >= len(copy):
        return copy
    rows = np.linspace(0, len(copy) - 1, max(knowledge.samples, 2)).astype(np.int64)
    selected: Floats = copy[rows]
    return selected


def complete_records(values: Floats) -> Floats:
    """The records without a missing value (complete cases)."""
    return values[~np.isnan(values).any(axis=1)]


def complete_or_imputed(values: Floats) -> Floats:
    """Records to estimate moments from: the complete ones or, where they are few, all of them with imputed values.

    A missing value is imputed by the mean of its column, and the others are scaled away from the mean so that the
    variance of the column is preserved.
    """
    complete = complete_records(values)
    if len(complete) >= max(50, 10 * values.shape[1]) or len(complete) == len(values):
        return complete
    present = ~np.isnan(values)
    share = present.mean(axis=0)
    means = column_means(values)
    imputed: Floats = means + np.where(present, values - means, 0.0) / np.sqrt(np.maximum(share, 1e-12))
    return imputed
