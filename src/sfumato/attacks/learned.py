"""Learned attack: supervised learning from known records, which does not rely on the models of the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.attacks import Attack, Categories, Estimate, Evidence, FittedAttack, Posterior
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks.evidence.simulation import training_set
from sfumato.kernels import Floats, Mask, Rows
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

_LARGEST_DOMAIN = 50
"""The largest number of categories of an attribute for which a classifier is trained."""


@dataclass(frozen=True, kw_only=True)
class Learned(Attack):
    """Gradient boosting on top of least squares, from all columns of all copies, public ones included.

    With known records it learns from their copies; with another sample of the population, from copies of it that are
    simulated with the published models.
    """

    reference = "the data-processing inequality, put to the test: docs/guarantee.md"
    cost = 3.5
    supports = frozenset({GaussianNoise.kind, UniformReplacement.kind})
    example = {"iterations": 20}
    imputes_missing = True
    unit_tolerance = 0.02  # trees break ties in another way
    needs_known_records = True
    iterations: int = 15
    """Boosting iterations."""

    def __post_init__(self) -> None:
        require_at_least("iterations", self.iterations, 1)

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Train one model per column."""
        if (found := training_set(evidence)) is None:
            raise self.lacks_known_records()
        training, truth = found
        inputs = training.features()
        columns = evidence.columns
        attributes = [parts[0] for parts in evidence.attributes().values() if parts[0].size <= _LARGEST_DOMAIN]
        regressors = [_regressor(inputs, truth.numbers([name])[:, 0], self.iterations) for name in columns]
        classifiers = [_classifier(inputs, truth.codes[part.model.columns], self.iterations) for part in attributes]
        uses_public = training.public is not None

        def estimate(some: Evidence) -> Estimate:
            features = (some if uses_public else replace(some, public_data=None)).features()
            values = [regressor(features) for regressor in regressors]
            posteriors = [
                _posterior(part, *model, features) for part, model in zip(attributes, classifiers, strict=True)
            ]
            stacked = np.column_stack(values) if values else np.empty((some.rows, 0))
            return Estimate(self.name, columns, stacked, tuple(posteriors))

        return estimate


def _regressor(inputs: Floats, truth: Floats, iterations: int) -> Any:
    """Least squares, and boosting of its residuals."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415 - takes long to import

    present = ~np.isnan(truth)
    used = _informative(inputs[present])
    inputs, truth = inputs[present][:, used], truth[present]
    if len(truth) < 2 or not used.any():
        return lambda features: np.full(len(features), truth.mean() if len(truth) else np.nan)
    centre, units = np.nanmean(inputs, axis=0), np.nanstd(inputs, axis=0)
    units = np.where(units > 0, units, 1.0)

    def design(features: Floats) -> Floats:
        return np.column_stack([np.nan_to_num((features - centre) / units), np.ones(len(features))])

    weights = np.linalg.lstsq(design(inputs), truth, rcond=1e-6)[0]
    residuals = HistGradientBoostingRegressor(
        max_iter=iterations, learning_rate=0.2, max_leaf_nodes=15, early_stopping=False, random_state=0
    )
    residuals.fit(inputs, truth - design(inputs) @ weights)
    return lambda features: design(features[:, used]) @ weights + residuals.predict(features[:, used])


def _classifier(inputs: Floats, truth: Rows, iterations: int) -> tuple[Any, Rows]:
    """A function that gives the probability of each class that occurs in the training set, and these classes."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415

    present = truth >= 0
    classes: Rows = np.unique(truth[present])
    used = _informative(inputs[present])
    if len(classes) < 2 or not used.any():
        return lambda features: np.ones((len(features), len(classes))), classes
    rounds = max(iterations // max(len(classes) // 4, 1), 10)
    model = HistGradientBoostingClassifier(max_iter=rounds, max_leaf_nodes=15, early_stopping=False, random_state=0)
    model.fit(inputs[present][:, used], truth[present])
    return lambda features: model.predict_proba(features[:, used]), classes


def _informative(inputs: Floats) -> Mask:
    """The columns that are not missing in all records of the training set."""
    used: Mask = ~np.all(np.isnan(inputs), axis=0)
    return used


def _posterior(part: Categories, model: Any, classes: Rows, features: Floats) -> Posterior:
    """The predicted probabilities as a posterior under a prior that is uniform over the classes."""
    probabilities = model(features)
    prior = np.full(part.size, 1e-9)
    prior[classes] = 1 / max(len(classes), 1)
    values = np.broadcast_to(classes, probabilities.shape)
    return Posterior(part.model, prior / prior.sum(), values, np.maximum(probabilities * len(classes), 1e-9))
