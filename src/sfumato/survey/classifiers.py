"""Classifiers from blurred rows, corrected for the blur, as scikit-learn's own models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.naive_bayes import BernoulliNB, CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato.kernels import Floats
from sfumato.survey.frequencies import NORMAL, weights
from sfumato.survey.guidance import Tally
from sfumato.survey.perturbation import Integers

_LEAST = 1e-3
"""No answer is held to be rarer than this in a class: estimates may fall below 0."""


def bayes_from_randomised(rows: Integers, retention: Floats, sizes: Sequence[int], classes: Floats) -> CategoricalNB:
    """Naive Bayes from randomised response.

    Args:
        retention: for each row and item, the probability with which it was kept.
        classes: for each row, the weight of each class: a row of zeros and a one, or the inverted channel.

    """
    tables = []
    for index, size in enumerate(sizes):
        joint = classes.T @ weights(rows[:, index], retention[:, index], size)
        tables.append(_law(joint))
    return _categorical(tables, classes.sum(0), sizes)


def _law(joint: Floats) -> Floats:
    whole = np.maximum(joint.sum(1, keepdims=True), 1.0)
    share = np.maximum(joint / whole, _LEAST)
    law: Floats = share / share.sum(1, keepdims=True)
    return law


def _categorical(tables: list[Floats], counts: Floats, sizes: Sequence[int]) -> CategoricalNB:
    """A model of scikit-learn's with these laws instead of counts."""
    made = CategoricalNB()
    made.fit(np.zeros((len(counts), len(sizes)), int), np.arange(len(counts)))  # sets what does not depend on data
    prior = np.maximum(counts, 1.0)
    made.class_log_prior_ = np.log(prior / prior.sum())
    made.class_count_ = prior
    made.category_count_ = [table * prior[:, None] for table in tables]
    made.feature_log_prob_ = [np.log(table) for table in tables]
    made.n_categories_ = np.array(sizes)
    return made


def bayes_from_guided(tally: Tally, sizes: Sequence[int], floor: float) -> Any:
    """Naive Bayes from guided rows, bit by bit; it needs only the sums that the collector keeps."""
    counts = np.maximum(tally.rows, 1)[:, None]
    sums = np.diagonal(tally.unfloored(floor), axis1=1, axis2=2)
    chance = (np.clip(sums, 0, counts) + 1) / (counts + 2)
    model = BernoulliNB()
    model.fit(np.zeros((len(chance), chance.shape[1]), int), np.arange(len(chance)))
    model.class_count_ = counts[:, 0].astype(float)
    model.class_log_prior_ = np.log(counts[:, 0] / counts.sum())
    model.feature_count_, model.feature_log_prob_ = chance * counts, np.log(chance)
    return _on_answers(model, sizes)


def tree_from_guided(rows: Integers, labels: Integers, sizes: Sequence[int]) -> Any:
    """A decision tree on the bits of guided rows."""
    model = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=max(5, len(rows) // 200), random_state=0)
    return _on_answers(model.fit(rows, labels), sizes)


def _on_answers(model: Any, sizes: Sequence[int]) -> Any:
    """The same model, for rows of answers instead of bits."""
    encoder = OneHotEncoder(categories=[np.arange(size) for size in sizes], sparse_output=False, dtype=np.int64)
    encoder.fit(np.zeros((1, len(sizes)), int))
    return make_pipeline(encoder, model)


def bayes_of_blurred(model: CategoricalNB, rows: Integers, retention: Floats) -> Integers:
    """The classes that a model expects from answers which are themselves blurred."""
    score = np.tile(model.class_log_prior_, (len(rows), 1))
    for index, table in enumerate(model.feature_log_prob_):
        law = np.exp(table)
        kept = retention[:, index, None]
        score += np.log(kept * law[:, rows[:, index]].T + (1 - kept) / law.shape[1])
    expected: Integers = score.argmax(1)
    return expected


def unblurred_accuracy(expected: Integers, classes: Floats) -> tuple[float, float, float]:
    """How often a class was right, from rows whose own class is blurred: the mean weight of the expected class."""
    found = classes[np.arange(len(expected)), expected]
    around = NORMAL * found.std(ddof=1) / np.sqrt(len(found))
    accuracy, low, high = np.clip([found.mean(), found.mean() - around, found.mean() + around], 0, 1)
    return float(accuracy), float(low), float(high)
