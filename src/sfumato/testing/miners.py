"""The conformance suite of estimators: scikit-learn's conventions, refusals, and no gain from collusion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone

from sfumato.errors import ManifestError
from sfumato.keys.key import Key
from sfumato.mining import Miner
from sfumato.release.policy import Policy
from sfumato.release.scheme import TableScheme
from sfumato.testing._checks import refuses, require, run

ROWS = 2000
POLICY = """
dataset = "office"
[levels]
close = 0.8
far = 0.5
[columns]
person = "id"
age = "gaussian"
income = "gaussian"
score = "gaussian"
ward = { role = "uniform", domain = ["a", "b", "c", "d"] }
smokes = "uniform"
site = "keep"
hours = "keep"
"""
CLASSES, TARGET = "site", "income"
"""What a classifier and a regression learn to predict."""


def check_miner(miner: type[Miner]) -> None:
    """Run the conformance suite on an estimator class, with its own example of parameters."""
    run(miner.__name__, _CHECKS, miner)


def office() -> pa.Table:
    """A table with every kind of column: skewed ages, correlated incomes, scores from two components."""
    draw = np.random.default_rng(5)
    age, low = draw.gamma(6, 8, ROWS), draw.random(ROWS) < 0.4
    return pa.table(
        {
            "person": np.arange(ROWS),
            "age": age,
            "income": 2 * age + draw.normal(0, 20, ROWS),
            "score": np.where(low, draw.normal(-2, 1, ROWS), draw.normal(3, 1.5, ROWS)),
            "ward": draw.choice(["a", "b", "c", "d"], ROWS, p=[0.5, 0.3, 0.15, 0.05]),
            "smokes": draw.random(ROWS) < np.where(low, 0.7, 0.2),
            "site": draw.choice(["north", "south"], ROWS),
            "hours": draw.integers(10, 50, ROWS).astype(np.float64),
        }
    )


def office_copy(level: str) -> pa.Table:
    """A copy of the table at a level, always on the same path."""
    table = office()
    scheme: TableScheme = Policy.loads(POLICY).fit(table)
    return scheme.release(table, level, Key.from_bytes(bytes(32)))


def fit(miner: Any, copy: Any) -> Any:
    """Fit an estimator to a copy, with something to predict if it needs that."""
    if isinstance(miner, ClassifierMixin):
        return miner.fit(copy, CLASSES)
    return miner.fit(copy, TARGET) if isinstance(miner, RegressorMixin) else miner.fit(copy)


def fitted_values(miner: Any) -> dict[str, Any]:
    """The fitted attributes, whose names end in an underscore."""
    return {name: value for name, value in vars(miner).items() if name.endswith("_")}


def equal(one: Any, other: Any) -> bool:
    """Whether two results are equal to the last bit, at any depth."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and one.dtype != object:
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple | np.ndarray):
        return len(one) == len(other) and all(map(equal, one, other))
    return _equal_objects(one, other)


def _equal_objects(one: Any, other: Any) -> bool:
    if isinstance(one, pa.Table | pa.Schema):
        return bool(one.equals(other))
    if isinstance(one, np.random.Generator):
        return equal(one.bit_generator.state, other.bit_generator.state)
    if type(one).__module__ == "sklearn.tree._tree":
        return equal(one.__getstate__(), other.__getstate__())
    if hasattr(one, "__dict__") and not isinstance(one, type) and not callable(one):
        return equal(vars(one), vars(other))
    return callable(one) or one == other or one != one  # noqa: PLR0124 - a NaN differs from itself


def _it_follows_the_conventions(miner: type[Miner]) -> None:
    made = miner(**miner.example)
    require(made.reference, "`reference` must name the paper and equation")
    require(made.get_params().items() >= dict(miner.example).items(), "it does not keep its parameters")
    before = _parameters(made)
    require(fit(made, office_copy("far")) is made, "`fit` must return the estimator itself")
    require(_parameters(made) == before, "`fit` changes parameters")
    require(fitted_values(made), "`fit` learns nothing: fitted attributes end in an underscore")
    require(_parameters(clone(made)) == before, "a clone has other parameters")


def _parameters(made: Miner) -> dict[str, Any]:
    """All parameters; of another estimator among them, its parameters."""
    return {name: value for name, value in made.get_params().items() if not isinstance(value, BaseEstimator)}


def _the_same_copy_gives_the_same_answer(miner: type[Miner]) -> None:
    copy = office_copy("far")
    one, other = (fitted_values(fit(miner(**miner.example), copy)) for _ in range(2))
    require(equal(one, other), "two fits to one copy differ")


def _collusion_adds_nothing(miner: type[Miner]) -> None:
    """Recipients who combine copies of one path get the answer of the best copy."""
    best, other = office_copy("close"), office_copy("far")
    alone = fitted_values(fit(miner(**miner.example), best))
    for copies in ([other, best], [best, best, other]):
        together = fitted_values(fit(miner(**miner.example), copies))
        require(equal(together, alone), "the answer from several copies differs from that of the best one")
    require(not equal(fitted_values(fit(miner(**miner.example), other)), alone), "all levels give the same answer")


def _data_without_a_manifest_are_refused(miner: type[Miner]) -> None:
    refuses(ManifestError, lambda: fit(miner(**miner.example), office()), "it accepts a table without a manifest")


_CHECKS = (
    _it_follows_the_conventions,
    _the_same_copy_gives_the_same_answer,
    _collusion_adds_nothing,
    _data_without_a_manifest_are_refused,
)
