"""What every miner must do, ours or a stranger's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests import offices

import sfumato as sf
from sfumato.errors import ManifestError
from sfumato.mining import MINERS

PARAMETERS: dict[str, dict[str, Any]] = {
    "density": {"columns": ["age"], "bins": 40},
    "frequencies": {"method": "likelihood"},
    "itemsets": {"min_support": 0.05},
    "linear-regression": {"confidence": 0.9},
    "logistic-regression": {"C": 2.0},
    "mixture": {"columns": ["age", "score"]},
    "moments": {"confidence": 0.9},
    "naive-bayes": {"on": "copy"},
    "pca": {"n_components": 2},
    "tree": {"reconstruction": "byclass"},
}


def test_every_miner_is_tested() -> None:
    assert set(MINERS.names()) == set(PARAMETERS)


@pytest.fixture(scope="module")
def original() -> pa.Table:
    return offices.table(2000)


@pytest.fixture(params=sorted(PARAMETERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(name: str) -> Any:
    return MINERS[name](**PARAMETERS[name])


def fitted(miner: Any, copy: Any) -> Any:
    """Fit it to a copy, with something to learn if it needs that."""
    if isinstance(miner, ClassifierMixin):
        return miner.fit(copy, "site")
    return miner.fit(copy, "income") if isinstance(miner, RegressorMixin) else miner.fit(copy)


def found(miner: Any) -> dict[str, Any]:
    """What was learnt."""
    return {key: value for key, value in vars(miner).items() if key.endswith("_")}


def same(one: Any, other: Any) -> bool:
    """Whether two answers are the same to the last bit, however deep."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and one.dtype != object:
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple | np.ndarray):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, pa.Table | pa.Schema):
        return bool(one.equals(other))
    if type(one).__module__ == "sklearn.tree._tree":
        return same(one.__getstate__(), other.__getstate__())
    if hasattr(one, "__dict__") and not isinstance(one, type) and not callable(one):
        return same(vars(one), vars(other))
    return callable(one) or one == other or one != one  # noqa: PLR0124 - that is how a NaN is told


def test_it_follows_the_conventions(name: str, original: pa.Table) -> None:
    miner = made(name)
    assert miner.reference
    assert miner.get_params().items() >= PARAMETERS[name].items()
    before = dict(miner.get_params())
    assert fitted(miner, offices.copy(original)) is miner
    assert miner.get_params() == before
    assert found(miner)
    assert clone(miner).get_params() == before


def test_the_same_copy_gives_the_same_answer(name: str, original: pa.Table) -> None:
    copy = offices.copy(original)
    one, other = fitted(made(name), copy), fitted(made(name), copy)
    assert same(found(one), found(other))


def test_a_coalition_gets_the_answer_of_its_best_member(name: str, original: pa.Table) -> None:
    """Nothing to gain from pooling, whoever mines."""
    best, other = offices.copy(original, "close"), offices.copy(original, "far")
    alone = found(fitted(made(name), best))
    assert same(found(fitted(made(name), [other, best])), alone)
    assert same(found(fitted(made(name), [best, best, other])), alone)


def test_another_answer_would_be_noticed(name: str, original: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the worst copy of a coalition is taken instead of the best."""
    best, other = offices.copy(original, "close"), offices.copy(original, "far")
    alone = found(fitted(made(name), best))
    turned = lambda items, **how: sorted(items, **how)[:: -1 if how else 1]  # noqa: E731
    monkeypatch.setattr("sfumato.mining.copies.copy.sorted", turned, raising=False)
    assert not same(found(fitted(made(name), [other, best])), alone)


def test_it_refuses_what_has_no_manifest(name: str, original: pa.Table, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    bare = tmp_path / "bare.parquet"
    pq.write_table(original, bare)
    with pytest.raises(ManifestError):
        fitted(made(name), bare)
    with pytest.raises(ManifestError):
        fitted(made(name), original)


def test_it_refuses_a_manifest_that_does_not_fit(name: str, original: pa.Table, tmp_path: Path) -> None:
    target = tmp_path / "copy.csv"
    sf.release_file(offices.policy().fit(original), original, target, "far", offices.key())
    lines = target.read_text().splitlines()
    target.write_text("\n".join(lines[:-10]) + "\n")
    with pytest.raises(ManifestError):
        fitted(made(name), target)


LEARNERS = [MINERS[name]() for name in sorted(PARAMETERS) if issubclass(MINERS[name], ClassifierMixin | RegressorMixin)]


@parametrize_with_checks(LEARNERS)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)
