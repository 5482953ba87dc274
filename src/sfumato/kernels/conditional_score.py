"""Logistic regression on columns with errors, whatever the law of the columns.

Given `Δ = W + y·Λβ`, the class does not depend on the unseen column: `P(y=1 | Δ) = H(α + βᵀΔ - βᵀΛβ/2)` for normal
errors of covariance `Λ` (Stefanski and Carroll 1987; Carroll et al. 2006, section 7.2). So `Σ (y - H)·(1, Δ) = 0` has
the true coefficients for a root, with no assumption on the distribution of what is behind `W`.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import root
from scipy.special import expit

from sfumato.kernels import Floats

_NEAR = 0.5
"""How far from the start, as a share of it, a root is believed: far out there are false ones."""


def solve(seen: Floats, labels: Floats, errors: Floats, start: Floats) -> Floats | None:
    """`(α, β)`, from columns of about unit size; none where no root is near the start."""
    rows = len(seen)

    def score(found: Floats) -> Floats:
        slope = errors @ found[1:]
        moved = seen + labels[:, None] * slope
        left = labels - expit(found[0] + moved @ found[1:] - found[1:] @ slope / 2)
        out: Floats = np.append(left.sum(), moved.T @ left) / rows
        return out

    answer = root(score, start, method="hybr", options={"maxfev": 400 * len(start)})
    near = np.linalg.norm(answer.x[1:] - start[1:]) <= _NEAR * (np.linalg.norm(start[1:]) + 0.1)
    return np.asarray(answer.x) if answer.success and near else None
