"""What every estimator must do, ours or another author's: the suite of `sfumato.testing` on each member."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests import offices

import sfumato as sf
from sfumato import mining
from sfumato.errors import ManifestError
from sfumato.mining import MINERS
from sfumato.mining.features.imputed import ImputedLearner
from sfumato.mining.moments import Moments
from sfumato.testing import check_miner
from sfumato.testing.miners import fit


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "tree" else []) for name in MINERS]
)
def test_it_conforms(name: str) -> None:
    check_miner(MINERS[name])


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least faithful copy of a coalition is used instead of the most faithful."""
    reverse = lambda items, **options: sorted(items, **options)[:: -1 if options else 1]  # noqa: E731
    monkeypatch.setattr("sfumato.mining.copies.copy.sorted", reverse, raising=False)
    with pytest.raises(AssertionError, match="from several copies differs"):
        check_miner(Moments)


def test_every_estimator_and_function_can_be_imported_by_name() -> None:
    """From the package itself, which lists them without naming any of them."""
    names = [MINERS[name].__name__ for name in MINERS]
    assert {*names, "ask", "column", "count", "profile", "with_engine", "MINERS", "Miner"} <= set(dir(mining))
    assert set(names) <= set(mining.__all__) <= set(dir(mining))
    assert [getattr(mining, name) for name in names] == [MINERS[name] for name in MINERS]
    for name in ("Nothing", "nothing", "__wrapped__"):
        with pytest.raises(AttributeError):
            getattr(mining, name)


@pytest.mark.parametrize("name", MINERS)
def test_it_refuses_a_copy_that_does_not_match_its_manifest(name: str, tmp_path: Path) -> None:
    target, original = tmp_path / "copy.csv", offices.table(500)
    sf.release_file(offices.policy().fit(original), original, target, "far", offices.key())
    lines = target.read_text().splitlines()
    target.write_text("\n".join(lines[:-10]) + "\n")
    with pytest.raises(ManifestError):
        fit(MINERS[name](**MINERS[name].example), target)


@pytest.mark.parametrize("name", MINERS)
def test_it_refuses_records_without_a_manifest(name: str) -> None:
    """A data frame loses the manifest of its copy, and its records must not be taken as unperturbed."""
    table = offices.table(500)
    frame = offices.policy().fit(table).release(table, "far", offices.key()).to_pandas()
    supervised = issubclass(MINERS[name], ClassifierMixin | RegressorMixin)
    arguments = (frame[["age"]], frame["income"] > 0) if supervised else (frame,)
    with pytest.raises(ManifestError, match="manifest"):
        MINERS[name](**MINERS[name].example).fit(*arguments)


SUPERVISED = [
    made(manifest="original")
    for made in MINERS.members().values()
    if issubclass(made, ClassifierMixin | RegressorMixin)
]


SLOW = [made for made in SUPERVISED if isinstance(made, ImputedLearner)]
"""Those that fit another estimator, which takes its time."""


@parametrize_with_checks([made for made in SUPERVISED if made not in SLOW])  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(SLOW)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_of_imputed_learners(estimator: Any, check: Any) -> None:
    check(estimator)
