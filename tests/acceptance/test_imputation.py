"""Plausible originals of a copy: what any software estimates from them is right within its interval, and learners gain.

All draws are fixed, so that these tests have no false alarms.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

import sfumato as sf
from sfumato.errors import ManifestError, MiningError
from sfumato.experiments._data import adult_table
from sfumato.kernels import Floats
from sfumato.kernels.joint_model import JointModel
from sfumato.kernels.latent_class import Observed
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.imputation import combine, impute
from sfumato.mining.copies.plausible_originals import PlausibleOriginals
from sfumato.mining.imputed_classifier import ImputedClassifier
from sfumato.mining.imputed_regressor import ImputedRegressor
from sfumato.mining.moments import Moments

POLICY = """
dataset = "d"
[levels]
l = {level}
[columns]
age = "gaussian"
income = "gaussian"
score = "gaussian"
ward = "uniform"
smokes = "uniform"
site = "keep"
"""


def people(rows: int = 4000, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    age = draw.gamma(6, 8, rows)
    low = draw.random(rows) < 0.4
    return pa.table(
        {
            "age": age,
            "income": 2 * age + draw.normal(0, 20, rows),
            "score": np.where(low, draw.normal(-2, 1, rows), draw.normal(3, 1.5, rows)),
            "ward": np.array(list("abc"))[(age + 15 * draw.normal(size=rows) > 45) * 1 + (draw.random(rows) < 0.3)],
            "smokes": draw.random(rows) < np.where(low, 0.7, 0.2),
            "site": np.array(["north", "south"])[(draw.random(rows) < np.where(low, 0.8, 0.3)).astype(int)],
        }
    )


def released(table: pa.Table, level: float, number: int, text: str = POLICY) -> pa.Table:
    return (
        sf.Policy.loads(text.format(level=level))
        .fit(table)
        .release(table, "l", sf.Key.from_bytes(bytes([number] * 32)))
    )


def statistics(table: pa.Table) -> dict[str, float]:
    """Means, deviations, averages of groups and ranges, correlations, shares and coefficients."""
    numbers = {name: table.column(name).to_numpy() for name in ("age", "income", "score")}
    ward, smokes = (np.array(table.column(name).to_pylist()) for name in ("ward", "smokes"))
    found = {f"mean {name}": float(values.mean()) for name, values in numbers.items()}
    found |= {f"deviation {name}": float(values.std()) for name, values in numbers.items()}
    found |= {f"age in {one}": float(numbers["age"][ward == one].mean()) for one in "abc"}
    found |= {f"score if smokes is {one}": float(numbers["score"][smokes == one].mean()) for one in (True, False)}
    found["income of the old"] = float(numbers["income"][numbers["age"] > 60].mean())
    found["smokers with income"] = float((smokes & (numbers["income"] > 100)).mean())
    matrix = np.column_stack([*numbers.values(), smokes])
    found |= {f"correlation {i}{j}": float(np.corrcoef(matrix.T)[i, j]) for i in range(4) for j in range(i)}
    design = np.column_stack([np.ones(len(ward)), numbers["age"], numbers["score"], smokes])
    found |= {f"coefficient {i}": float(b) for i, b in enumerate(np.linalg.lstsq(design, numbers["income"])[0])}
    return found


def covered(level: float, keys: range, rows: int = 2500, m: int = 6) -> float:
    """The share of intervals that hold the truth."""
    table = people(rows)
    truth, hits = statistics(table), []
    for number in keys:
        drawn = [statistics(one) for one in impute(released(table, level, number), m, random_state=number)]
        for name, value in truth.items():
            found = combine([one[name] for one in drawn])
            hits.append(bool(found.low <= value <= found.high))
    return float(np.mean(hits))


def test_intervals_cover_the_truth() -> None:
    assert covered(0.7, range(2)) > 0.88


@pytest.mark.slow
@pytest.mark.parametrize(("level", "least"), [(0.9, 0.92), (0.7, 0.92), (0.5, 0.87)])
def test_intervals_cover_the_truth_at_about_the_nominal_rate(level: float, least: float) -> None:
    assert least < covered(level, range(26), 4000, 8) < 0.99


@pytest.mark.parametrize("fault", ["no draw", "posterior means"])
def test_planted_faults_are_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy itself, or the best estimate of each record, is no plausible original."""

    def draw(self: JointModel, shown: Observed, rng: np.random.Generator) -> Observed:
        units = self.records.units
        if fault == "no draw":
            return Observed(shown.numbers * units + 1e-3 * rng.normal(size=shown.numbers.shape), shown.codes)
        classes = self.classes.responsibilities(shown, self.records.channel)[0]
        return Observed(self.numbers(shown, classes), shown.codes)

    monkeypatch.setattr(JointModel, "draw", draw)
    assert covered(0.7, range(1)) < 0.7


def test_tables_look_like_the_original() -> None:
    """Types, missing values, whole numbers and bounds; and no manifest, since they are no copies."""
    rows = 600
    draw = np.random.default_rng(3)
    table = pa.table(
        {
            "id": np.arange(rows),
            "count": draw.poisson(4000, rows),
            "share": pa.array([None if i % 9 == 0 else float(x) for i, x in enumerate(draw.random(rows))]),
            "one": pa.array([None if i % 7 == 0 else "pq"[i % 2] for i in range(rows)]),
            "two": np.array(list("xyz"))[draw.integers(0, 3, rows)],
        }
    )
    policy = """
dataset = "d"
[levels]
l = {level}
[columns]
id = "id"
count = {{ role = "gaussian", integer = true }}
share = {{ role = "gaussian", clip = [0, 1] }}
one = {{ role = "uniform", joint = "g" }}
two = {{ role = "uniform", joint = "g" }}
"""
    copy = released(table, 0.7, 5, policy)
    first, second = impute(copy, 2)
    assert first.schema.types == copy.schema.types
    assert not first.equals(second)
    assert first.column("id").equals(copy.column("id"))
    values = np.asarray(first.column("share").drop_null())
    assert (values.min(), values.max()) == (0.0, 1.0)
    for name in table.column_names:
        assert first.column(name).null_count == table.column(name).null_count
    assert set(first.column("one").to_pylist()) == {None, "p", "q"}
    with pytest.raises(ManifestError):
        Moments().fit(first)


def test_special_values_are_drawn_exactly() -> None:
    """Although the model has them in common units, from which some return with another last digit."""
    draw, special = np.random.default_rng(10), [i / 10 for i in range(1, 12)]
    x = np.where(np.arange(2200) < 1980, np.array(special)[draw.integers(0, 11, 2200)], draw.normal(size=2200))
    text = f"""dataset = "d"
[levels]
l = 0.95
[columns]
x = {{ role = "gaussian", special = {[[value, 0.08] for value in special]} }}"""
    copy = sf.Policy.loads(text).fit(pa.table({"x": x})).release(pa.table({"x": x}), "l", sf.Key.from_bytes(bytes(32)))
    values = np.asarray(impute(copy, 2)[0].column("x"))
    assert min(int((values == one).sum()) for one in special) > 20
    opened = Copy.of(copy)
    originals = PlausibleOriginals.of(opened, ["x"])
    returned = originals._number(copy, "x", np.resize(np.nextafter(special, 2.0), 2200))
    assert set(returned.to_pylist()) == set(special)


def test_probabilities_are_those_of_the_original_classes() -> None:
    """Of a class that is shown at random in half of the records, a learner sees no more than three quarters."""
    draw = np.random.default_rng(9)
    x = draw.normal(size=3000)
    table = pa.table({"x": x, "y": np.array(["no", "yes"])[(x + 0.3 * draw.normal(size=3000) > 0) * 1]})
    text = 'dataset = "d"\n[levels]\nl = {level}\n[columns]\nx = "gaussian"\ny = "uniform"'
    model = ImputedClassifier(m=3).fit(released(table, 0.5, 3, text), "y")
    assert model.predict_proba(pa.table({"x": np.linspace(1.5, 2, 50)}))[:, 1].mean() > 0.9


def test_categories_alone_are_imputed() -> None:
    draw = np.random.default_rng(8)
    base = draw.integers(0, 3, 3000)
    other = (base + (draw.random(3000) < 0.2)) % 3
    table = pa.table({"x": np.array(list("abc"))[base], "y": np.array(list("uvw"))[other]})
    text = 'dataset = "d"\n[levels]\nl = {level}\n[columns]\nx = "uniform"\ny = "uniform"'
    copy = released(table, 0.5, 3, text)

    def together(one: pa.Table) -> float:
        return float(np.mean([x + y in ("au", "bv", "cw") for x, y in zip(*one.to_pydict().values(), strict=True)]))

    found = combine([together(one) for one in impute(copy, 5)])
    assert found.low < together(table) < found.high
    assert together(copy) < found.low


def test_rubins_rules() -> None:
    """An example by hand: between 1, within 2, five imputations."""
    estimates = [9.0, 10.0, 11.0, 10.0, 10.0]
    between = 1.2 * np.var(estimates, ddof=1)
    found = combine(estimates, [2.0] * 5, confidence=0.9)
    freedom = 4 * (1 + 2.0 / between) ** 2
    assert found.estimate == pytest.approx(10)
    assert found.missing_information == pytest.approx(between / (between + 2))
    from scipy.stats import t as student

    assert found.high - 10 == pytest.approx(student.ppf(0.95, freedom) * np.sqrt(between + 2))
    alone = combine(estimates)
    assert alone.high - 10 == pytest.approx(student.ppf(0.975, 4) * np.sqrt(between))
    rehearsed = combine(estimates, biases=[0.5] * 5)
    assert rehearsed.estimate == pytest.approx(9.5)
    assert rehearsed.high - rehearsed.low == pytest.approx(1.1 * (alone.high - alone.low))
    assert combine(estimates, biases=[0.0, 1.0]).high - 9.5 > rehearsed.high - 9.5
    for wrong in ({"estimates": [1.0]}, {"estimates": [1.0, 2.0], "confidence": 1.5}):
        with pytest.raises(MiningError):
            combine(**wrong)


@pytest.mark.parametrize(
    ("policy", "options", "reason"),
    [
        ('x = "copula"\ny = "gaussian"', {}, "needs no imputation"),
        ('x = { role = "gaussian", range = [0, 1] }\ny = "gaussian"', {}, "within a range"),
        ('x = "keep"\ny = "keep"', {}, "nothing to impute"),
        ('x = "gaussian"\ny = { role = "uniform", domain = { min = 0, max = 500 } }', {}, "501 categories"),
        ('x = "gaussian"\ny = "gaussian"', {"m": 1}, "at least two"),
        ('x = "gaussian"\ny = "gaussian"', {"columns": ["z"]}, "no column 'z'"),
    ],
)
def test_what_cannot_be_imputed_is_refused(policy: str, options: dict[str, Any], reason: str) -> None:
    table = pa.table({"x": np.linspace(0, 1, 600), "y": np.arange(600) % 500})
    copy = released(
        table,
        0.5,
        1,
        f'dataset = "d"\n[levels]\nl = {{level}}\n[columns]\n{policy.replace("{", "{{").replace("}", "}}")}',
    )
    with pytest.raises(MiningError, match=reason):
        impute(copy, **options)


def test_few_records_are_refused() -> None:
    with pytest.raises(MiningError, match="at least 200 records"):
        impute(released(people(100), 0.5, 1))


def encoded(table: pa.Table) -> Floats:
    ward = np.array(table.column("ward").to_pylist())
    numbers = [table.column(name).to_numpy() for name in ("age", "income", "score")]
    return np.column_stack([*numbers, np.array(table.column("smokes").to_pylist()), ward == "b", ward == "c"])


@pytest.mark.parametrize("role", ["keep", "uniform"])
def test_a_learner_is_better_than_on_the_copy_itself(role: str) -> None:
    """Classes that were perturbed included; and what is learned is for the original."""
    table, fresh = people(), people(seed=2)
    copy = released(table, 0.5, 7, POLICY.replace('site = "keep"', f'site = "{role}"'))
    truth = np.array(fresh.column("site").to_pylist()) == "south"
    naive = HistGradientBoostingClassifier(random_state=0)
    naive.fit(encoded(copy), np.array(copy.column("site").to_pylist()) == "south")
    best = ImputedClassifier(m=8).fit(copy, "site")
    ours = roc_auc_score(truth, best.predict_proba(fresh)[:, list(best.classes_).index("south")])
    assert ours > roc_auc_score(truth, naive.predict_proba(encoded(fresh))[:, 1])
    assert np.allclose(best.predict_proba(fresh).sum(axis=1), 1)


def test_any_learner_weights_and_targets() -> None:
    table, fresh = people(1500), people(1000, seed=2)
    copy = released(table, 0.8, 7)
    machine = ImputedClassifier(LinearSVC(), m=3).fit(copy, "site")
    assert np.mean(machine.predict(fresh) == np.array(fresh.column("site").to_pylist())) > 0.6
    none = np.where(np.array(copy.column("site").to_pylist()) == "south", 1e-9, 1.0)
    assert set(ImputedClassifier(m=2).fit(copy, "site", sample_weight=none).predict(fresh)) == {"north"}
    regression = ImputedRegressor(m=3).fit(copy, "income")
    assert regression.score(fresh.drop_columns(["income"]), fresh.column("income").to_numpy()) > 0.5
    outside = ImputedClassifier(m=2).fit(copy.drop_columns(["site"]), copy.column("site").to_pylist())
    assert outside.score(fresh, fresh.column("site").to_pylist()) > 0.6
    frame = np.column_stack([fresh.column(name).to_numpy() for name in ("age", "score")])
    plain = ImputedClassifier(manifest="original", m=2)
    assert cross_val_score(plain, frame, fresh.column("site").to_pylist(), cv=2).mean() > 0.6


@pytest.mark.slow
def test_adult_is_learned_nearly_as_well_as_from_the_original() -> None:
    """At every level at least as well as by boosting on the copy, and at 0.7 within 0.02 of the original."""
    table = adult_table()
    train, test = table.slice(0, 20_000), table.slice(30_000, 10_000)
    policy = sf.Policy.suggest(train, dataset="adult", plain_noise=True)
    kept = sf.Policy.loads('dataset="d"\n[levels]\nl=0.5\n[columns]\nx="keep"').columns["x"]
    scheme = dataclasses.replace(policy, columns={**policy.columns, "income": kept}).fit(train)
    truth = np.array(test.column("income").to_pylist()) == ">50K"

    def numbers(some: pa.Table) -> Floats:
        frame = some.drop_columns(["income"]).to_pandas()
        for name in frame.select_dtypes(exclude="number"):
            frame[name] = frame[name].map(
                {value: i for i, value in enumerate(sorted(set(train.column(name).to_pylist()) - {None}))}
            )
        return np.asarray(frame, np.float64)

    def measured(probabilities: Floats) -> tuple[float, float]:
        return float(roc_auc_score(truth, probabilities)), float(np.mean((probabilities > 0.5) == truth))

    def naive(some: pa.Table) -> tuple[float, float]:
        model = HistGradientBoostingClassifier(random_state=0)
        model.fit(numbers(some), np.array(some.column("income").to_pylist()) == ">50K")
        return measured(model.predict_proba(numbers(test))[:, 1])

    best = naive(train)
    for level in (0.9, 0.7, 0.5, 0.3, 0.1):
        copy = scheme.release(train, level, sf.Key.from_bytes(bytes(range(32))))
        ours = measured(ImputedClassifier(m=10).fit(copy, "income").predict_proba(test)[:, 1])
        assert ours[0] > naive(copy)[0], level
        assert ours[1] > max(naive(copy)[1], 1 - truth.mean()) - 0.005, level
        if level == 0.7:
            assert ours[0] > best[0] - 0.02
            assert ours[1] > best[1] - 0.02
