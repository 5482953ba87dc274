"""Ridge regression with a penalty that is chosen by leave-one-out cross-validation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.kernels import Floats

_PENALTIES = np.logspace(-6, 4, 11)
"""Ridge penalties to choose from, for inputs in standard deviations."""


def ridge_regression(inputs: Floats, targets: Floats) -> Callable[[Floats], Floats]:
    """A linear prediction of each target, with an intercept.

    Args:
        inputs: one row per record, without missing values.
        targets: one row per record and one column per target, without missing values.

    """
    centre, level, units = inputs.mean(axis=0), targets.mean(axis=0), inputs.std(axis=0)
    units[units == 0] = 1.0
    left, singular, right = np.linalg.svd((inputs - centre) / units, full_matrices=False)
    projected = left.T @ (targets - level)
    errors, weights = [], []
    for penalty in _PENALTIES:
        shrinkage = singular**2 / (singular**2 + penalty)
        leverage = np.square(left) @ shrinkage + 1 / len(inputs)
        residuals = targets - level - left @ (shrinkage[:, None] * projected)
        errors.append(np.square(residuals / np.maximum(1 - leverage, 1e-12)[:, None]).mean(axis=0))
        weights.append(right.T @ ((singular / (singular**2 + penalty))[:, None] * projected) / units[:, None])
    chosen = np.choose(np.argmin(errors, axis=0), weights)
    return lambda some: (some - centre) @ chosen + level
