"""Conditional-score logistic regression: coefficients from covariates with Gaussian measurement error.

Given `Δ = W + y·Λβ`, the class does not depend on the unobserved covariate: `P(y=1 | Δ) = H(α + βᵀΔ - βᵀΛβ/2)` for
normal errors of covariance `Λ` (Stefanski and Carroll 1987; Carroll et al. 2006, section 7.2). The estimating equation
`Σ (y - H)·(1, Δ) = 0` therefore has the true coefficients as a root, without any assumption on the distribution of the
covariate behind `W`.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import root
from scipy.special import expit

from sfumato.kernels import Floats

_NEAR = 0.5
"""The largest relative distance of an accepted root from the initial coefficients; spurious roots lie further out."""


def solve(
    observed: Floats, labels: Floats, error_covariance: Floats, initial: Floats, penalty: float = 0.0
) -> Floats | None:
    """The coefficients `(α, β)`, for covariates of about unit scale; none if no root is near the initial ones.

    Args:
        observed: the covariates with their errors, one row per record.
        labels: 1 for members of the class, else 0.
        error_covariance: the covariance of the errors.
        initial: the coefficients to start from.
        penalty: the weight of the squared coefficients beside the mean loss (ridge regularisation).

    """
    rows = len(observed)

    def score(coefficients: Floats) -> Floats:
        slope = error_covariance @ coefficients[1:]
        sufficient = observed + labels[:, None] * slope
        linear = coefficients[0] + sufficient @ coefficients[1:] - coefficients[1:] @ slope / 2
        residuals = labels - expit(linear)
        out: Floats = np.append(residuals.sum(), sufficient.T @ residuals) / rows
        out[1:] -= penalty * coefficients[1:]
        return out

    result = root(score, initial, method="hybr", options={"maxfev": 400 * len(initial)})
    is_near = np.linalg.norm(result.x[1:] - initial[1:]) <= _NEAR * (np.linalg.norm(initial[1:]) + 0.1)
    return np.asarray(result.x) if result.success and is_near else None
