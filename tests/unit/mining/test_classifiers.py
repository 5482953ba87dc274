"""Classifiers and regressions: accurate for the original, and compatible with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests import offices

import sfumato as sf
from sfumato.errors import ManifestError, MiningError
from sfumato.mining import DecisionTree, ImputedClassifier, LinearRegression, LogisticRegression, NaiveBayes

Array = Any

POLICY = """
dataset = "people"
[levels]
l = 0.5
[columns]
x = "gaussian"
z = "gaussian"
ward = "uniform"
plain = "keep"
kind = "keep"
"""


def people(rows: int, seed: int) -> pa.Table:
    """Two classes that differ in a numeric and a categorical column."""
    draw = np.random.default_rng(seed)
    kind = draw.random(rows) < 0.5
    return pa.table(
        {
            "x": np.where(kind, draw.normal(1.2, 1, rows), draw.normal(-1.2, 1, rows)),
            "z": draw.normal(0, 3, rows),
            "ward": np.where(draw.random(rows) < np.where(kind, 0.8, 0.3), "a", "b"),
            "plain": draw.choice(["u", "v"], rows),
            "kind": np.where(kind, "good", "bad"),
        }
    )


@pytest.fixture(scope="module")
def copy() -> pa.Table:
    table = people(20_000, 1)
    return sf.Policy.loads(POLICY).fit(table).release(table, "l", offices.key())


@pytest.fixture(scope="module")
def fresh() -> pa.Table:
    return people(5000, 2)


CLASSIFIERS = [
    NaiveBayes(),
    LogisticRegression(),
    *(DecisionTree(reconstruction=name) for name in ("byclass", "global", "local")),
    DecisionTree(joint_columns=1),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda m: getattr(m, "reconstruction", type(m).__name__))
def test_numeric_and_categorical_columns_are_learnt_from(classifier: Any, copy: pa.Table, fresh: pa.Table) -> None:
    """The Bayes classifier of this distribution has an accuracy of about 91 % on the original."""
    kinds = np.array(fresh.column("kind").to_pylist())
    accuracy = np.mean(classifier.fit(copy, "kind").predict(fresh) == kinds)
    assert accuracy > (0.8 if getattr(classifier, "reconstruction", "") in ("global", "local") else 0.88)
    assert classifier.predict_proba(fresh).sum(axis=1) == pytest.approx(1)


def test_logistic_coefficients_are_not_attenuated(copy: pa.Table) -> None:
    """For two normal classes the slope of `x` is `2·1.2/1²`; the uncorrected slope is less than half of it."""
    found = LogisticRegression(C=100).fit(copy, "kind")
    uncorrected = np.column_stack([copy.column("x").to_numpy(), np.array(copy.column("ward").to_pylist()) == "a"])
    naive = Plain(C=100).fit(uncorrected, copy.column("kind").to_pylist()).coef_[0]
    assert found.coef_[0][0] == pytest.approx(2.4, rel=0.2)
    assert naive[0] < 1.2
    odds = np.log(0.8 / 0.2) - np.log(0.3 / 0.7)
    assert -found.coef_[0][2] == pytest.approx(odds, rel=0.3)
    assert naive[1] < 0.7 * odds


@pytest.mark.parametrize("role", ["uniform", "keep"])
def test_logistic_regression_on_mixed_columns_is_not_worse_than_uncorrected(role: str) -> None:
    """Numbers and many rare categories: the area under the curve is at most 0.02 below naive training on the copy."""
    draw = np.random.default_rng(4)
    skills, skill = draw.normal(size=12), draw.choice(12, 9000, p=np.arange(1, 13) / 78)
    jobs, job = draw.normal(size=8), draw.choice(8, 9000)
    age, gain = draw.normal(size=9000), np.where(draw.random(9000) < 0.1, draw.lognormal(3, 1, 9000), 0.0)
    effect = age + 0.02 * gain + skills[skill] + jobs[job] + 0.1 * draw.normal(size=9000)
    kind = draw.random(9000) < 1 / (1 + np.exp(-effect))
    table = pa.table({"age": age, "twin": age + 0.1 * draw.normal(size=9000), "gain": gain})
    table = table.append_column("skill", pa.array([f"s{i}" for i in skill]))
    table = table.append_column("job", pa.array([f"j{i}" for i in job])).append_column("kind", pa.array(kind))
    text = f'''dataset = "d"
    [levels]
    a = 0.9
    b = 0.5
    c = 0.2
    [columns]
    age = "gaussian"
    twin = "gaussian"
    gain = "gaussian"
    skill = "{role}"
    job = "{role}"
    kind = "keep"'''
    original = _one_hot(table)
    for copy in sf.Policy.loads(text).fit(table).release_levels(table, list("abc"), offices.key()):
        corrected = LogisticRegression().fit(copy, "kind")
        naive = make_pipeline(StandardScaler(), Plain(max_iter=500)).fit(_one_hot(copy), kind)
        areas = [
            roc_auc_score(kind, s) for s in (corrected.decision_function(table), naive.decision_function(original))
        ]
        assert areas[0] > areas[1] - 0.02
        assert np.abs(corrected.coef_).max() < 50
        strict = LogisticRegression(C=1e-4).fit(copy, "kind")
        assert np.linalg.norm(strict.coef_[0][:2]) < 0.7 * np.linalg.norm(corrected.coef_[0][:2])


def _one_hot(table: pa.Table) -> Array:
    frame = table.drop_columns(["kind"]).to_pandas()
    return pd.get_dummies(frame, columns=["skill", "job"]).sort_index(axis=1).to_numpy(float)


def test_predictions_for_the_copy_allow_for_its_noise(copy: pa.Table) -> None:
    """On records of the copy, a classifier with `on="copy"` is better."""
    kinds = np.array(copy.column("kind").to_pylist())
    for classifier in (NaiveBayes, LogisticRegression):
        aware, unaware = (
            np.mean(classifier(on=on).fit(copy, "kind").predict(copy) == kinds) for on in ("copy", "original")
        )
        assert aware >= unaware - 0.005
        probabilities = [classifier(on=on).fit(copy, "kind").predict_proba(copy) for on in ("copy", "original")]
        labels = (kinds == "good").astype(int)
        scores = [np.log(np.maximum(p[np.arange(len(kinds)), labels], 1e-12)).mean() for p in probabilities]
        assert scores[0] > scores[1]


def test_a_perturbed_class_is_inverted(fresh: pa.Table) -> None:
    table = people(20_000, 3)
    policy = sf.Policy.loads(POLICY.replace('kind = "keep"', 'kind = "uniform"'))
    copy = policy.fit(table).release(table, "l", offices.key())
    kinds = np.array(fresh.column("kind").to_pylist())
    found = NaiveBayes().fit(copy, "kind")
    assert np.mean(found.predict(fresh) == kinds) > 0.88
    plain = sf.Policy.loads(POLICY).fit(table).release(table, "l", offices.key())
    exact = NaiveBayes().fit(plain, "kind").predict_proba(fresh)
    assert np.abs(found.predict_proba(fresh) - exact).mean() < 0.06  # half of the classes in the copy are random
    for classifier in (DecisionTree(), LogisticRegression()):
        with pytest.raises(MiningError, match="NaiveBayes"):
            classifier.fit(copy, "kind")


@pytest.mark.long
def test_data_frames_pipelines_and_grid_searches(copy: pa.Table) -> None:
    frame, manifest = copy.slice(0, 3000).to_pandas(), sf.Manifest.of(copy)
    X, y = frame.drop(columns="kind"), frame["kind"]
    pipeline = make_pipeline(FunctionTransformer(), NaiveBayes(manifest=manifest, on="copy"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.75
    search = GridSearchCV(DecisionTree(manifest=manifest), {"joint_columns": [1, 3]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.6
    assert list(search.best_estimator_.feature_names_in_) == ["x", "z", "ward", "plain"]


def test_scaled_values_are_refused(copy: pa.Table) -> None:
    frame = copy.to_pandas()
    scaled = StandardScaler().set_output(transform="pandas").fit_transform(frame[["x", "z"]])
    with pytest.raises(ManifestError, match="as it was released"):
        NaiveBayes(manifest=sf.Manifest.of(copy)).fit(scaled, frame["kind"])


def test_bad_input_is_refused(copy: pa.Table, fresh: pa.Table) -> None:
    with pytest.raises(MiningError, match="no column"):
        NaiveBayes().fit(copy, "nobody")
    with pytest.raises(MiningError, match="one value for every record"):
        NaiveBayes().fit(copy, ["good"])
    with pytest.raises(MiningError, match="reconstruction"):
        DecisionTree(reconstruction="magic").fit(copy, "kind")
    with pytest.raises(MiningError, match="'original' or 'copy'"):
        NaiveBayes(on="both").fit(copy, "kind")
    with pytest.raises(MiningError, match="Manifest"):
        NaiveBayes(manifest="manifest.json").fit(copy.to_pandas(), "kind")
    fitted = NaiveBayes().fit(copy, "kind")
    with pytest.raises(MiningError, match="'x' is missing"):
        fitted.predict(fresh.drop_columns(["x"]))
    with pytest.raises(MiningError, match="some values are missing"):
        fitted.predict(pd.DataFrame({"x": [None], "z": [0.0], "ward": ["a"], "plain": ["u"]}))


def test_categories_without_training_records_carry_no_information(copy: pa.Table) -> None:
    """In cross-validation a fold may lack a category."""
    record = pa.table({"x": [2.0], "z": [0.0], "ward": ["a"], "plain": ["w"]})
    for classifier in (NaiveBayes(), DecisionTree(), LogisticRegression()):
        assert list(classifier.fit(copy, "kind").predict(record)) == ["good"]


def test_jointly_perturbed_columns_are_not_used_separately() -> None:
    table = people(3000, 4)
    text = POLICY.replace('ward = "uniform"', 'ward = { role = "uniform", joint = "j" }')
    policy = sf.Policy.loads(text.replace('plain = "keep"', 'plain = { role = "uniform", joint = "j" }'))
    copy = policy.fit(table).release(table, "l", offices.key())
    for classifier in (LogisticRegression(), DecisionTree()):
        with pytest.raises(MiningError, match="perturbed jointly"):
            classifier.fit(copy, "kind")
    part = copy.drop_columns(["plain"]).replace_schema_metadata(copy.schema.metadata)
    assert LogisticRegression().fit(part, "kind").classes_.tolist() == ["bad", "good"]


def test_dates_are_numeric_and_empty_copies_are_refused() -> None:
    days = pa.array(np.arange(2000) % 300, pa.int32()).cast(pa.date32())
    table = pa.table({"day": days, "late": (np.arange(2000) % 300 > 150).astype(str)})
    policy = sf.Policy.loads('dataset = "d"\n[levels]\nl = 0.9\n[columns]\nday = "gaussian"\nlate = "keep"')
    copy = policy.fit(table).release(table, "l", offices.key())
    assert (NaiveBayes().fit(copy, "late").predict(table) == table.column("late").to_pylist()).mean() > 0.9
    with pytest.raises(MiningError, match="the copy has none"):
        NaiveBayes().fit(copy.slice(0, 0), "late")
    with pytest.raises(MiningError, match="target of a regression must be numeric"):
        LinearRegression().fit(copy, "late")


def test_a_copy_in_a_file_gives_the_same_result(copy: pa.Table, fresh: pa.Table, tmp_path: Path) -> None:
    table = people(4000, 5)
    target = tmp_path / "copy.csv"
    scheme = sf.Policy.loads(POLICY).fit(table)
    sf.release_file(scheme, table, target, "l", offices.key())
    of_file = NaiveBayes().fit(target, "kind").predict_proba(fresh)
    of_table = NaiveBayes().fit(scheme.release(table, "l", offices.key()), "kind").predict_proba(fresh)
    assert of_file == pytest.approx(of_table)


def test_categories_that_are_numbers_keep_their_order() -> None:
    """A stump can split numbers, and no single one of sixteen categories."""
    draw = np.random.default_rng(4)
    visits = draw.integers(0, 16, 2000)
    table = pa.table({"visits": visits, "ill": np.array(["no", "yes"])[(visits >= 8) * 1]})
    text = 'dataset="d"\n[levels]\nl=0.8\n[columns]\nvisits={role="uniform",domain={min=0,max=15}}\nill="keep"'
    copy = sf.Policy.loads(text).fit(table).release(table, "l", sf.Key.from_bytes(bytes(range(32))))
    stump = ImputedClassifier(DecisionTreeClassifier(max_depth=1), m=2).fit(copy, "ill")
    assert stump.score(table, table.column("ill").to_pylist()) > 0.95
