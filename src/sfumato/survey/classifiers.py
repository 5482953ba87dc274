"""Naive Bayes and decision trees (scikit-learn) from perturbed survey answers, corrected for the perturbation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.naive_bayes import BernoulliNB, CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from sfumato.kernels import Floats
from sfumato.survey.frequencies import unbiased_indicators
from sfumato.survey.guidance import CooccurrenceCounts
from sfumato.survey.perturbation import Integers

_SMALLEST_SHARE = 1e-3
"""The smallest share that an answer may have in a class: unbiased estimates can fall below 0."""


def naive_bayes_from_randomised(
    rows: Integers, retention: Floats, sizes: Sequence[int], classes: Floats
) -> CategoricalNB:
    """Naive Bayes from randomised response.

    Args:
        rows: perturbed answer codes.
        retention: for each row and item, the retention probability.
        classes: for each row, the weight of each class: one-hot labels, or the unbiased indicators of perturbed ones.

    """
    tables = []
    for index, size in enumerate(sizes):
        joint = classes.T @ unbiased_indicators(rows[:, index], retention[:, index], size)
        tables.append(class_conditional(joint))
    return categorical_naive_bayes(tables, classes.sum(0), sizes)


def class_conditional(joint: Floats) -> Floats:
    """The distribution of an answer in each class, from estimated joint counts of classes and answers."""
    totals = np.maximum(joint.sum(1, keepdims=True), 1.0)
    share = np.maximum(joint / totals, _SMALLEST_SHARE)
    distribution: Floats = share / share.sum(1, keepdims=True)
    return distribution


def categorical_naive_bayes(tables: list[Floats], counts: Floats, sizes: Sequence[int]) -> CategoricalNB:
    """A fitted `CategoricalNB` with the given class-conditional distributions."""
    model = CategoricalNB()
    model.fit(np.zeros((len(counts), len(sizes)), int), np.arange(len(counts)))  # sets what does not depend on data
    prior = np.maximum(counts, 1.0)
    model.class_log_prior_ = np.log(prior / prior.sum())
    model.class_count_ = prior
    model.category_count_ = [table * prior[:, None] for table in tables]
    model.feature_log_prob_ = [np.log(table) for table in tables]
    model.n_categories_ = np.array(sizes)
    return model


def naive_bayes_from_guided(counts: CooccurrenceCounts, sizes: Sequence[int], floor: float) -> Any:
    """Naive Bayes on the bits of guided rows; it needs only the counts that the collector keeps."""
    rows = np.maximum(counts.rows, 1)[:, None]
    sums = np.diagonal(counts.without_floor(floor), axis1=1, axis2=2)
    probability = (np.clip(sums, 0, rows) + 1) / (rows + 2)
    model = BernoulliNB()
    model.fit(np.zeros((len(probability), probability.shape[1]), int), np.arange(len(probability)))
    model.class_count_ = rows[:, 0].astype(float)
    model.class_log_prior_ = np.log(rows[:, 0] / rows.sum())
    model.feature_count_, model.feature_log_prob_ = probability * rows, np.log(probability)
    return _with_encoder(model, sizes)


def tree_from_guided(rows: Integers, labels: Integers, sizes: Sequence[int]) -> Any:
    """A decision tree on the bits of guided rows."""
    model = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=max(5, len(rows) // 200), random_state=0)
    return _with_encoder(model.fit(rows, labels), sizes)


def _with_encoder(model: Any, sizes: Sequence[int]) -> Any:
    """A pipeline that one-hot encodes rows of answer codes for a model of their bits."""
    encoder = OneHotEncoder(categories=[np.arange(size) for size in sizes], sparse_output=False, dtype=np.int64)
    encoder.fit(np.zeros((1, len(sizes)), int))
    return make_pipeline(encoder, model)


def predict_perturbed(model: CategoricalNB, rows: Integers, retention: Floats) -> Integers:
    """The classes that a naive Bayes model predicts for rows whose answers are themselves perturbed."""
    score = np.tile(model.class_log_prior_, (len(rows), 1))
    for index, table in enumerate(model.feature_log_prob_):
        distribution = np.exp(table)
        kept = retention[:, index, None]
        score += np.log(kept * distribution[:, rows[:, index]].T + (1 - kept) / distribution.shape[1])
    predicted: Integers = score.argmax(1)
    return predicted
