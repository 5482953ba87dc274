"""Multiple imputation: plausible originals of a copy, on which any software can work, and Rubin's rules for the rest.

The truth and each imputation are draws from one distribution, that of the original given the copy: what differs between
imputations is what the copy leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import t as student

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.plausible_originals import PlausibleOriginals
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise

_MODEL_ERROR = 1.1
"""How much wider intervals are than rehearsals say, in which the joint model is right: measured on ten tables in which
it is not (`tests/statistical/test_answers.py`)."""


def impute(copy: Any, m: int = 20, *, columns: Sequence[str] | None = None, random_state: int = 0) -> list[pa.Table]:
    """Plausible originals of a copy: tables that may have been perturbed into it, each with all its records.

    A joint distribution of the columns is fitted behind the published noise, for each imputation to other records
    (bootstrap), and every record is drawn from it given what the copy shows. Fit any model to each of the tables, and
    `combine` what it estimates. Relations that the joint distribution does not have are weaker in the tables than in
    the original, the more so the lower the level.

    Args:
        copy: a copy, as a table or a path, or several, of which the most faithful is used.
        m: the number of tables.
        columns: the columns to be imputed together; all, unless they are given.
        random_state: the seed.

    """
    opened = Copy.of(copy)
    names = check_columns(opened, columns, m)
    return PlausibleOriginals.of(opened, names).each(m, random_state, lambda table: table)


@dataclass(frozen=True)
class Combined:
    """What several imputations say together, with its interval."""

    estimate: Floats
    low: Floats
    high: Floats
    missing_information: Floats
    """The share of the uncertainty that is due to the noise of the copy."""


def combine(estimates: Any, variances: Any = None, confidence: float = 0.95, biases: Any = ()) -> Combined:
    """Combine what the same analysis estimates in each imputation, by Rubin's rules.

    Args:
        estimates: a number or an array for each imputation.
        variances: the sampling variance of each, where the estimand is that of a population from which the table was
            sampled; none where it is that of the table itself, as everywhere else in this package.
        confidence: the confidence level.
        biases: by how much such estimates were off where the truth was known; the estimate is corrected for it, and its
            interval allows for a joint model that is not quite that of the original.

    """
    critical_value(confidence)  # which refuses one that is none
    values = np.asarray(estimates, np.float64)
    count = len(values)
    if count < 2:
        raise MiningError(f"at least two imputations are combined, got {count}")
    within = np.zeros(values.shape[1:]) if variances is None else np.asarray(variances, np.float64).mean(axis=0)
    between = (1 + 1 / count) * values.var(axis=0, ddof=1)
    bias: Any = 0.0
    if len(biases):
        bias, found = np.mean(biases, axis=0), np.asarray(biases, np.float64)
        between = (between + found.var(axis=0, ddof=1) / len(found)) * _MODEL_ERROR**2
    total = np.maximum(within + between, 1e-300)
    freedom = (count - 1) * (total / np.maximum(between, 1e-300)) ** 2  # Rubin 1987, eq. 3.1.6
    reach = student.ppf(0.5 + confidence / 2, np.minimum(freedom, 1e9)) * np.sqrt(np.where(total > 1e-300, total, 0.0))
    estimate = values.mean(axis=0) - bias
    return Combined(estimate, estimate - reach, estimate + reach, between / total)


def check_columns(copy: Copy, columns: Sequence[str] | None, m: int) -> list[str]:
    """The columns of an imputation; refuses those that cannot be imputed, and too few imputations."""
    if m < 2:
        raise MiningError(f"at least two imputations are needed to see how much they differ, got {m}; 20 are usual")
    names = copy.column_names if columns is None else list(columns)
    if not of_type([copy.model(name) for name in names], GaussianNoise) and not any(map(copy.replacement_model, names)):
        raise MiningError(
            "none of these columns is perturbed, so that there is nothing to impute; use them as they stand"
        )
    return names
