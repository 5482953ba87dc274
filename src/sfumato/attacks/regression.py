"""Regression attack: known records regressed on all copies, without relying on how the manifests relate the copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sfumato.attacks import Attack, Categories, Estimate, Evidence, FittedAttack
from sfumato.attacks.collusion import MAX_LOG, joint_posterior
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.attacks.evidence.simulation import training_set
from sfumato.kernels import Floats, Rows
from sfumato.kernels.column_moments import column_means
from sfumato.kernels.ridge import ridge_regression
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

_LARGEST_TRAINING_SET = 20_000
"""The largest number of known records from which the weights of categorical copies are estimated."""


@dataclass(frozen=True, kw_only=True)
class Regression(Attack):
    """Linear regression for numbers and conditional logistic regression for categories, on every copy.

    `llse` and `collusion` read from the manifests which copies lie on one path, and give no weight to those that a
    better copy should contain. This attack estimates the weight of every copy from known records, so that it finds what
    the copies disclose together even where a manifest is wrong.
    """

    reference = "li2012, section 3.3 and xiao2009, eq. 25, with the weights of the copies estimated from known records"
    supports = frozenset({GaussianNoise.kind, UniformReplacement.kind})
    imputes_missing = True
    unit_tolerance = 1e-3
    needs_known_records = True

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Estimate the weights of all columns of all copies."""
        if (found := training_set(evidence)) is None:
            raise self.lacks_known_records()
        training, truth = found
        columns, attributes = evidence.columns, evidence.attributes()
        regression = _linear_regression(_inputs(training), truth.numbers(columns)) if columns else None
        priors = {name: attribute_prior(parts[0], evidence.knowledge) for name, parts in attributes.items()}
        weights = {
            name: _log_ratios(parts, truth.codes[name], priors[name]) for name, parts in training.attributes().items()
        }

        def estimate(some: Evidence) -> Estimate:
            values = np.empty((some.rows, 0)) if regression is None else regression(_inputs(some))
            posteriors = [
                joint_posterior(parts, priors[name], weights[name]) for name, parts in some.attributes().items()
            ]
            return Estimate(self.name, columns, values, tuple(posteriors))

        return estimate


def _inputs(evidence: Evidence) -> Floats:
    """The numeric columns of all copies side by side, one row per record."""
    return np.hstack([part.values for part in evidence.numbers])


def _linear_regression(inputs: Floats, truth: Floats) -> Callable[[Floats], Floats]:
    """Ridge regression of each column of the original; a missing input counts as the mean of its column."""
    means = column_means(inputs)
    filled = np.where(np.isnan(inputs), means, inputs)
    present = ~np.isnan(truth)
    patterns, pattern = np.unique(present, axis=1, return_inverse=True)  # columns known in the same records, at once
    predictions = [
        ridge_regression(filled[rows], truth[rows][:, pattern == i]) if rows.any() else None
        for i, rows in enumerate(patterns.T)
    ]

    def predict(some: Floats) -> Floats:
        complete = np.where(np.isnan(some), means, some)
        out = np.full((len(some), truth.shape[1]), np.nan)
        for i, prediction in enumerate(predictions):
            if prediction is not None:
                out[:, pattern == i] = prediction(complete)
        return out

    return predict


def _log_ratios(parts: Sequence[Categories], truth: Rows, prior: Floats) -> Floats:
    """The maximum-likelihood weights `w` of the copies, where `P(v) ∝ prior(v)·exp(Σ w over the copies that show v)`.

    The posterior has this form for independent copies (xiao2009, eq. 25) and for copies on one path, where only the
    most faithful one has a weight.
    """
    known = np.flatnonzero(truth >= 0)[:_LARGEST_TRAINING_SET]
    shown: Rows = np.column_stack([part.codes[known] for part in parts])
    if not len(known):
        return np.zeros(len(parts))
    correct = (shown == truth[known][:, None]).astype(np.float64)
    same = ((shown[:, :, None] == shown[:, None, :]) & (shown >= 0)[:, :, None]).astype(np.float64)
    mass = np.where(shown >= 0, prior[shown], 0.0) / np.maximum(same.sum(axis=2), 1)  # a repeated category counts once

    def loss(weights: Floats) -> tuple[float, Floats]:
        ratios = np.exp(np.minimum(same @ weights, MAX_LOG / 2))
        total = 1 + (mass * (ratios - 1)).sum(axis=1)
        expected = np.einsum("ri,rij->rj", mass * ratios / total[:, None], same)
        return float((np.log(total) - correct @ weights).mean()), (expected - correct).mean(axis=0)

    fitted = minimize(loss, np.zeros(len(parts)), jac=True, method="L-BFGS-B", bounds=[(0, 40)] * len(parts))
    weights: Floats = fitted.x
    return weights
