"""Learn from known records what copies tell about the others; no model of the noise is believed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.attacks import Attack, Belief, Categories, Estimate, Evidence, Guess, Records
from sfumato.attacks._parameters import at_least
from sfumato.attacks.evidence.simulation import simulated
from sfumato.errors import AttackError
from sfumato.kernels import Floats, Mask, Rows
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

_MOST = 50
"""Values of an attribute that a classifier is trained for."""


@dataclass(frozen=True, kw_only=True)
class Learned(Attack):
    """Gradient boosting on top of least squares, from all columns of all copies, public ones included.

    With known records it learns from their copies; with another sample of the population, from copies that it makes of
    it by the published models.
    """

    reference = "the data-processing inequality, put to the test: docs/guarantee.md"
    supports = frozenset({GaussianNoise.kind, UniformReplacement.kind})
    needs_known = True
    iterations: int = 15

    def __post_init__(self) -> None:
        at_least("iterations", self.iterations, 1)

    def prepare(self, evidence: Evidence) -> Guess:
        """Train one model a column."""
        lesson, truth = _lesson(evidence)
        seen = _features(lesson)
        columns = evidence.columns
        attributes = [parts[0] for parts in evidence.attributes().values() if parts[0].size <= _MOST]
        regressors = [_regressor(seen, truth.numbers([name])[:, 0], self.iterations) for name in columns]
        classifiers = [_classifier(seen, truth.codes[part.model.columns], self.iterations) for part in attributes]

        def guess(some: Evidence) -> Estimate:
            features = _features(some if lesson.public is not None else replace(some, public=None))
            values = [regressor(features) for regressor in regressors]
            beliefs = [_belief(part, *model, features) for part, model in zip(attributes, classifiers, strict=True)]
            found = np.column_stack(values) if values else np.empty((some.rows, 0))
            return Estimate(self.name, columns, found, tuple(beliefs))

        return guess


def _lesson(evidence: Evidence) -> tuple[Evidence, Records]:
    """What is seen of records whose truth is known, and that truth; a sample shows no public columns."""
    knowledge = evidence.knowledge
    if knowledge.known is not None and knowledge.places is not None:
        return evidence.take(knowledge.places), knowledge.known
    if knowledge.sample is None:
        raise AttackError("the attack 'learned' learns from records that it knows; declare some")
    return simulated(evidence, knowledge.sample), knowledge.sample


def _features(evidence: Evidence) -> Floats:
    parts = [part.values for part in evidence.numbers]
    parts += [part.codes[:, None].astype(np.float64) for part in evidence.categories]
    parts += [] if evidence.public is None else [evidence.public]
    return np.hstack(parts)


def _regressor(seen: Floats, truth: Floats, iterations: int) -> Any:
    """Least squares, and boosting for what it leaves."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415 - takes long to import

    there = ~np.isnan(truth)
    told = _told(seen[there])
    seen, truth = seen[there][:, told], truth[there]
    if len(truth) < 2 or not told.any():
        return lambda features: np.full(len(features), truth.mean() if len(truth) else np.nan)
    centre, units = np.nanmean(seen, axis=0), np.nanstd(seen, axis=0)
    units = np.where(units > 0, units, 1.0)

    def linear(features: Floats) -> Floats:
        return np.column_stack([np.nan_to_num((features - centre) / units), np.ones(len(features))])

    weights = np.linalg.lstsq(linear(seen), truth, rcond=1e-6)[0]
    rest = HistGradientBoostingRegressor(
        max_iter=iterations, learning_rate=0.2, max_leaf_nodes=15, early_stopping=False, random_state=0
    )
    rest.fit(seen, truth - linear(seen) @ weights)
    return lambda features: linear(features[:, told]) @ weights + rest.predict(features[:, told])


def _classifier(seen: Floats, truth: Rows, iterations: int) -> tuple[Any, Rows]:
    """The probability of each class that was met."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415

    there = truth >= 0
    classes: Rows = np.unique(truth[there])
    told = _told(seen[there])
    if len(classes) < 2 or not told.any():
        return lambda features: np.ones((len(features), len(classes))), classes
    rounds = max(iterations // max(len(classes) // 4, 1), 10)
    model = HistGradientBoostingClassifier(max_iter=rounds, max_leaf_nodes=15, early_stopping=False, random_state=0)
    model.fit(seen[there][:, told], truth[there])
    return lambda features: model.predict_proba(features[:, told]), classes


def _told(seen: Floats) -> Mask:
    """The columns that show anything of the records that are learnt from."""
    told: Mask = ~np.all(np.isnan(seen), axis=0)
    return told


def _belief(part: Categories, model: Any, classes: Rows, features: Floats) -> Belief:
    chance = model(features)
    prior = np.full(part.size, 1e-9)
    prior[classes] = 1 / max(len(classes), 1)
    values = np.broadcast_to(classes, chance.shape)
    return Belief(part.model, prior / prior.sum(), values, np.maximum(chance * len(classes), 1e-9))
