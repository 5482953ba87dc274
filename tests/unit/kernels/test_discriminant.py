"""Discriminants: with many records of each category they are those of scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from sfumato.kernels.discriminant import most_probable


def test_it_agrees_with_scikit_learn_on_many_records() -> None:
    """Two categories at one centre, which only their covariances distinguish."""
    rng = np.random.default_rng(1)
    answers = rng.integers(0, 2, 40_000).astype(np.float64)
    taught = rng.normal(size=(40_000, 2)) * np.where(answers[:, None] == 1, [3.0, 0.3], [0.3, 3.0])
    some = rng.normal(size=(2000, 2)) * 2
    reference = QuadraticDiscriminantAnalysis().fit(taught, answers).predict(some)
    found = most_probable(taught, answers, some, 1)
    assert np.mean(found == reference) > 0.99
    assert np.mean(found == (np.abs(some[:, 0]) > np.abs(some[:, 1]))) > 0.98


def test_copies_of_one_record_are_one_record() -> None:
    """Taught nine times, few records are no more certain than taught once."""
    rng = np.random.default_rng(2)
    answers = np.repeat([3.0, 8.0], [40, 4])
    taught = rng.normal(size=(44, 3)) + (answers == 8)[:, None]
    some = rng.normal(size=(500, 3)) + 0.5
    once = most_probable(taught, answers, some, 1)
    often = most_probable(np.tile(taught, (9, 1)), np.tile(answers, 9), some, 9)
    assert np.array_equal(once, often)
    assert set(once) == {3.0, 8.0}
