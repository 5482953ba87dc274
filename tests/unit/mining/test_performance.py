"""How good a model is on the original, estimated from the copy it was learned from.

All draws are fixed, so that these tests have no false alarms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.tree import DecisionTreeClassifier
from tests.statistical.awkward_tables import policy, table

import sfumato as sf
from sfumato.errors import MiningError
from sfumato.mining import ImputedClassifier, LinearRegression, NaiveBayes, performance
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.imputation import Combined, combine
from sfumato.mining.features import performance as module

KEY = sf.Key.from_bytes(bytes([5] * 32))
TREE = ImputedClassifier(DecisionTreeClassifier(max_depth=5), m=3)
FOLDS = 4


def truth(model: Any, copy: pa.Table, original: pa.Table, target: str, metric: str) -> float:
    """The score on the original of models that are fitted to the other folds of the copy."""
    everyone = np.arange(copy.num_rows)
    scores = []
    for part in np.array_split(np.random.default_rng(0).permutation(copy.num_rows), FOLDS):
        fitted = clone(model).fit(copy.take(pa.array(np.setdiff1d(everyone, part))), target)
        fold = original.take(pa.array(part))
        labels = np.array(fold.column(target).to_pylist())
        scores.append(get_scorer(metric)(fitted, fold.drop_columns([target]), labels))
    return float(np.mean(scores))


@pytest.mark.parametrize(
    ("kind", "level", "model", "target", "metric"),
    [
        ("zeros", 0.7, TREE, "ill", "accuracy"),
        pytest.param("curved", 0.5, TREE, "ill", "roc_auc", marks=pytest.mark.slow),
        ("heaped", 0.5, NaiveBayes(), "ill", "accuracy"),
        ("dependent categories", 0.7, LinearRegression(), "y", "r2"),
    ],
)
def test_the_score_on_the_original_is_within_the_interval(
    kind: str, level: float, model: Any, target: str, metric: str
) -> None:
    """And that on the copy itself, which anyone could compute, is not."""
    original = table(kind)
    copy = policy(original).fit(original).release(original, level, KEY)
    found = performance(model, copy, target, [metric], folds=FOLDS, m=10)[metric]
    right = truth(model, copy, original, target, metric)
    assert found.low < right < found.high
    assert abs(found.estimate - right) < 0.08
    assert not found.low < truth(model, copy, copy, target, metric) < found.high


def test_scores_on_the_copy_itself_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: plausible originals that are the copy."""
    original = table("zeros")
    copy = policy(original).fit(original).release(original, 0.5, KEY)

    def on_copy(shown: Copy, scores: Any, **_: Any) -> Combined:
        return combine([scores(pa.Table.from_batches(shown.source.batches()))] * 2)

    monkeypatch.setattr(module, "estimate", on_copy)
    found = performance(TREE, copy, "ill", ["accuracy"], folds=FOLDS)["accuracy"]
    assert not found.low <= truth(TREE, copy, original, "ill", "accuracy") <= found.high


def test_scores_are_named_bounded_and_compared() -> None:
    original = table("whole numbers")
    copy = policy(original).fit(original).release(original, 0.95, KEY)
    found = performance(NaiveBayes(), copy, "ill", m=3, folds=2)
    assert list(found) == ["accuracy", "roc_auc"]
    assert found["roc_auc"].baseline == 0.5
    assert 0.5 < found["accuracy"].baseline < found["accuracy"].estimate <= found["accuracy"].high <= 1
    assert list(performance(NaiveBayes(), copy, "ward", m=2, folds=2)) == ["accuracy"]
    smooth = table("curved")
    copy = policy(smooth).fit(smooth).release(smooth, 0.95, KEY)
    errors = performance(LinearRegression(), copy, "y", ["neg_mean_absolute_error"], m=2, folds=2)
    assert errors["neg_mean_absolute_error"].high <= 0


def test_a_column_that_nothing_was_done_to_has_an_exact_score() -> None:
    original = pa.table({"a": np.arange(400) % 7, "b": np.array(list("uv"))[(np.arange(400) % 7 > 3) * 1]})
    text = 'dataset = "d"\n[levels]\nl = 0.5\n[columns]\na = "keep"\nb = "keep"'
    copy = sf.Policy.loads(text).fit(original).release(original, "l", KEY)
    found = performance(NaiveBayes(), copy, "b", ["accuracy"], folds=2)["accuracy"]
    assert found.low == found.estimate == found.high


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"folds": 1}, "at least two folds"),
        ({"folds": 40}, "1,500 complete records"),
        ({"metrics": ["acuracy"]}, "'accuracy'"),
        ({"target": "nothing"}, "no column 'nothing'"),
    ],
)
def test_what_cannot_be_estimated_is_refused(options: dict[str, Any], reason: str) -> None:
    original = table("zeros")
    copy = policy(original).fit(original).release(original, 0.7, KEY)
    with pytest.raises(MiningError, match=reason):
        performance(NaiveBayes(), copy, **{"target": "ill", "m": 2, **options})


def test_an_original_needs_no_estimate() -> None:
    with pytest.raises(MiningError, match="cross_val_score"):
        performance(NaiveBayes(manifest="original"), table("zeros"), "ill")
