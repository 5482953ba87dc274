"""Classifiers: right for the original, and at home in scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests import offices

import sfumato as sf
from sfumato.errors import ManifestError, MiningError
from sfumato.mining import DecisionTree, LinearRegression, LogisticRegression, NaiveBayes

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
    """Two kinds that a number, a category and a plain column tell apart."""
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
    DecisionTree(together=1),
]


@pytest.mark.parametrize("miner", CLASSIFIERS, ids=lambda m: getattr(m, "reconstruction", type(m).__name__))
def test_numbers_and_categories_are_learnt_from_together(miner: Any, copy: pa.Table, fresh: pa.Table) -> None:
    """The best rule for this law is right for about 91 % of the original's records."""
    kinds = np.array(fresh.column("kind").to_pylist())
    right = np.mean(miner.fit(copy, "kind").predict(fresh) == kinds)
    assert right > (0.8 if getattr(miner, "reconstruction", "") in ("global", "local") else 0.88)
    assert miner.predict_proba(fresh).sum(axis=1) == pytest.approx(1)


def test_logistic_coefficients_are_not_flattened(copy: pa.Table) -> None:
    """For two normal kinds the slope of `x` is `2·1.2/1²`; the copy's own is less than half."""
    found = LogisticRegression(C=100).fit(copy, "kind")
    seen = np.column_stack([copy.column("x").to_numpy(), np.array(copy.column("ward").to_pylist()) == "a"])
    naive = Plain(C=100).fit(seen, copy.column("kind").to_pylist()).coef_[0]
    assert found.coef_[0][0] == pytest.approx(2.4, rel=0.2)
    assert naive[0] < 1.2
    odds = np.log(0.8 / 0.2) - np.log(0.3 / 0.7)
    assert -found.coef_[0][2] == pytest.approx(odds, rel=0.3)
    assert naive[1] < 0.7 * odds


def test_records_of_the_copy_are_judged_as_such(copy: pa.Table) -> None:
    """On records as the copy shows them, a classifier that knows so is better."""
    kinds = np.array(copy.column("kind").to_pylist())
    for kind in (NaiveBayes, LogisticRegression):
        aware, unaware = (np.mean(kind(on=on).fit(copy, "kind").predict(copy) == kinds) for on in ("copy", "original"))
        assert aware >= unaware - 0.005
        logs = [kind(on=on).fit(copy, "kind").predict_proba(copy) for on in ("copy", "original")]
        right = (kinds == "good").astype(int)
        scores = [np.log(np.maximum(p[np.arange(len(kinds)), right], 1e-12)).mean() for p in logs]
        assert scores[0] > scores[1]


def test_a_perturbed_class_is_inverted(fresh: pa.Table) -> None:
    table = people(20_000, 3)
    policy = sf.Policy.loads(POLICY.replace('kind = "keep"', 'kind = "uniform"'))
    copy = policy.fit(table).release(table, "l", offices.key())
    kinds = np.array(fresh.column("kind").to_pylist())
    found = NaiveBayes().fit(copy, "kind")
    assert np.mean(found.predict(fresh) == kinds) > 0.88
    plain = sf.Policy.loads(POLICY).fit(table).release(table, "l", offices.key())
    sure = NaiveBayes().fit(plain, "kind").predict_proba(fresh)
    assert np.abs(found.predict_proba(fresh) - sure).mean() < 0.06  # as it is, half of the classes are anything
    for miner in (DecisionTree(), LogisticRegression()):
        with pytest.raises(MiningError, match="NaiveBayes"):
            miner.fit(copy, "kind")


def test_frames_pipelines_and_searches(copy: pa.Table) -> None:
    frame, manifest = copy.slice(0, 3000).to_pandas(), sf.Manifest.of(copy)
    X, y = frame.drop(columns="kind"), frame["kind"]
    pipeline = make_pipeline(FunctionTransformer(), NaiveBayes(manifest=manifest, on="copy"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.75
    search = GridSearchCV(DecisionTree(manifest=manifest), {"together": [1, 3]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.6
    assert list(search.best_estimator_.feature_names_in_) == ["x", "z", "ward", "plain"]


def test_numbers_that_were_scaled_are_refused(copy: pa.Table) -> None:
    frame = copy.to_pandas()
    scaled = StandardScaler().set_output(transform="pandas").fit_transform(frame[["x", "z"]])
    with pytest.raises(ManifestError, match="as it was released"):
        NaiveBayes(manifest=sf.Manifest.of(copy)).fit(scaled, frame["kind"])


def test_bad_input_is_refused(copy: pa.Table, fresh: pa.Table) -> None:
    with pytest.raises(MiningError, match="no column"):
        NaiveBayes().fit(copy, "nobody")
    with pytest.raises(MiningError, match="every record"):
        NaiveBayes().fit(copy, ["good"])
    with pytest.raises(MiningError, match="reconstruction"):
        DecisionTree(reconstruction="magic").fit(copy, "kind")
    with pytest.raises(MiningError, match="'original' or 'copy'"):
        NaiveBayes(on="both").fit(copy, "kind")
    with pytest.raises(MiningError, match="Manifest"):
        NaiveBayes(manifest="manifest.json").fit(copy.to_pandas(), "kind")  # type: ignore[arg-type]
    taught = NaiveBayes().fit(copy, "kind")
    with pytest.raises(MiningError, match="is not there"):
        taught.predict(fresh.drop_columns(["x"]))
    with pytest.raises(MiningError, match="missing"):
        taught.predict(pd.DataFrame({"x": [None], "z": [0.0], "ward": ["a"], "plain": ["u"]}))


def test_categories_that_nobody_had_tell_nothing(copy: pa.Table) -> None:
    """As in cross-validation, where a fold may lack one."""
    record = pa.table({"x": [2.0], "z": [0.0], "ward": ["a"], "plain": ["w"]})
    for miner in (NaiveBayes(), DecisionTree(), LogisticRegression()):
        assert list(miner.fit(copy, "kind").predict(record)) == ["good"]


def test_columns_that_were_replaced_together_are_not_taken_apart() -> None:
    table = people(3000, 4)
    text = POLICY.replace('ward = "uniform"', 'ward = { role = "uniform", joint = "j" }')
    policy = sf.Policy.loads(text.replace('plain = "keep"', 'plain = { role = "uniform", joint = "j" }'))
    copy = policy.fit(table).release(table, "l", offices.key())
    for miner in (LogisticRegression(), DecisionTree()):
        with pytest.raises(MiningError, match="replaced together"):
            miner.fit(copy, "kind")
    part = copy.drop_columns(["plain"]).replace_schema_metadata(copy.schema.metadata)
    assert LogisticRegression().fit(part, "kind").classes_.tolist() == ["bad", "good"]


def test_dates_are_numbers_and_empty_copies_are_refused() -> None:
    days = pa.array(np.arange(2000) % 300, pa.int32()).cast(pa.date32())
    table = pa.table({"day": days, "late": (np.arange(2000) % 300 > 150).astype(str)})
    policy = sf.Policy.loads('dataset = "d"\n[levels]\nl = 0.9\n[columns]\nday = "gaussian"\nlate = "keep"')
    copy = policy.fit(table).release(table, "l", offices.key())
    assert (NaiveBayes().fit(copy, "late").predict(table) == table.column("late").to_pylist()).mean() > 0.9
    with pytest.raises(MiningError, match="has none"):
        NaiveBayes().fit(copy.slice(0, 0), "late")
    with pytest.raises(MiningError, match="numbers to explain"):
        LinearRegression().fit(copy, "late")


def test_a_copy_in_a_file_is_a_copy(copy: pa.Table, fresh: pa.Table, tmp_path: Path) -> None:
    table = people(4000, 5)
    target = tmp_path / "copy.csv"
    scheme = sf.Policy.loads(POLICY).fit(table)
    sf.release_file(scheme, table, target, "l", offices.key())
    of_file = NaiveBayes().fit(target, "kind").predict_proba(fresh)
    of_table = NaiveBayes().fit(scheme.release(table, "l", offices.key()), "kind").predict_proba(fresh)
    assert of_file == pytest.approx(of_table)
