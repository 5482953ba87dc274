"""Multinomial regression on noisy labels: a label is the true one with a known probability, else any, uniformly.

The likelihood of a label is `p·P(label | inputs) + (1-p)/size` (forward correction: Patrini et al. 2017), so that what
is fitted is the distribution of the true label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from sfumato.kernels import Floats, Rows

_PENALTY = 6.0
"""The ridge penalty per record, which grows with the noise of the labels: as `1/p²`."""


@dataclass(frozen=True)
class LabelRegression:
    """The weight of each input, the last of which is constant, for each label."""

    weights: Floats
    prior: Floats
    """The distribution of the true label."""

    def probabilities(self, inputs: Floats) -> Floats:
        """The distribution of the true label given the inputs, one row per record."""
        found: Floats = _softmax(inputs @ self.weights)
        return found


def fit(inputs: Floats, labels: Rows, retention: float, prior: Floats, iterations: int) -> LabelRegression:
    """The penalised maximum-likelihood weights; the last input is constant and not penalised."""
    narrow = inputs.astype(np.float32)  # twice as fast, and noise is far larger than its rounding
    rows, size, width = np.arange(len(labels)), len(prior), inputs.shape[1]
    penalty = _PENALTY / (max(len(labels), 1) * retention**2)
    start = np.zeros((width, size))
    start[-1] = np.log(np.maximum(prior, 1e-12))
    if not len(labels):
        return LabelRegression(start, prior)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(width, size)
        probabilities = _softmax(narrow @ weights.astype(np.float32))
        likelihood = retention * probabilities[rows, labels] + (1 - retention) / size
        pull = retention * probabilities[rows, labels] / likelihood
        gradient = probabilities * pull[:, None]
        gradient[rows, labels] -= pull
        total = (narrow.T @ gradient).astype(np.float64) / len(labels)
        total[:-1] += penalty * weights[:-1]
        value = -float(np.log(likelihood).mean(dtype=np.float64)) + 0.5 * penalty * float((weights[:-1] ** 2).sum())
        return value, total.ravel()

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": iterations})
    return LabelRegression(found.x.reshape(width, size), prior)


def _softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
