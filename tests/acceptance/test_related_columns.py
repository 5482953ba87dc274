"""Attacks that learn from columns which are related: public ones together, and codes that tell each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from tests.acceptance.test_joint_attacks import scored

import sfumato as sf
from sfumato.attacks import ATTACKS, Evidence, Knowledge, Records, _public_predictions, score
from sfumato.kernels import Floats
from sfumato.release.evidence import copy_evidence, original_records
from sfumato.release.manifest import Manifest


def related_by_public_columns(rows: int = 4000) -> pa.Table:
    """Trips whose length depends on two public stops together, on neither of them alone, and beside other columns."""
    rng = np.random.default_rng(14)
    start, end = rng.integers(0, 20, (2, rows))
    length = rng.gamma(4, 5, (20, 20))[start, end]
    stops = np.array([f"p{i:02}" for i in range(20)])
    return pa.table(
        {
            "start": stops[start],
            "end": stops[end],
            "hour": rng.integers(0, 24, rows),
            "length": length + rng.normal(0, 2, rows),
            "fare": 3 * length + rng.normal(0, 8, rows),
        }
    )


def with_public_columns(table: pa.Table) -> tuple[Evidence, Records]:
    return with_roles(
        table, {name: "gaussian" if name in ("length", "fare") else "keep" for name in table.column_names}
    )


def with_roles(table: pa.Table, roles: dict[str, str]) -> tuple[Evidence, Records]:
    """A copy at 0.5 as evidence, and the truth."""
    text = 'dataset="t"\norder="keep"\n[levels]\nl=0.5\n[columns]\n'
    accepted = {"uniform": '{ role = "uniform", domain = "observed" }'}  # codes, however many they are
    stated = {name: accepted.get(role, f'"{role}"') for name, role in roles.items()}
    policy = sf.Policy.loads(text + "\n".join(f"{name} = {role}" for name, role in stated.items()))
    copy = policy.fit(table).release(table, "l", sf.Key.from_bytes(bytes(range(32))))
    manifest = Manifest.of(copy)
    return copy_evidence(copy, manifest), original_records(table, manifest.models)


@pytest.mark.parametrize("name", ["latent-class", "smoothing"])
def test_public_columns_together_predict_numbers(name: str) -> None:
    """From the noisy numbers of other records: nobody is known, and no public column tells anything alone."""
    evidence, truth = with_public_columns(related_by_public_columns())
    linear = scored("bayes", evidence, truth)
    found = scored(name, evidence, truth)
    for column in ("length", "fare"):
        assert found.number(column).error.attack.estimate < linear.number(column).error.attack.estimate - 0.15


def test_predictions_that_see_the_record_itself_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: nothing is left out, so that predictions follow the noise."""
    evidence, truth = with_public_columns(related_by_public_columns(1500))
    before = scored("smoothing", evidence, truth).number("length").error.attack.estimate
    original = _public_predictions._learned

    def everyone(public: Floats, values: Floats, *options: object) -> object:
        return original(evidence.public, np.hstack([part.values for part in evidence.numbers]), *options)  # type: ignore[arg-type]

    monkeypatch.setattr(_public_predictions, "_learned", everyone)
    assert scored("smoothing", evidence, truth).number("length").error.attack.estimate > before + 0.02


def test_groups_within_groups_do_not_show_a_record_its_own_value() -> None:
    """Schools, grades and sections of fifty: a regression on the means of all others would read the record itself."""
    rng = np.random.default_rng(15)
    school, grade = rng.integers(0, 4, 6000), rng.integers(0, 3, 6000)
    grades = rng.normal(size=(4, 3))[school, grade] + rng.normal(size=6000)
    columns = {
        "start": school,
        "end": grade,
        "hour": school * 3 + grade,
        "length": grades,
        "fare": rng.normal(size=6000),
    }
    evidence, truth = with_public_columns(pa.table(columns))
    found = scored("smoothing", evidence, truth)
    assert found.number("length").error.attack.estimate < 0.45
    assert found.number("fare").error.attack.estimate < 0.52


def test_codes_of_many_categories_tell_each_other() -> None:
    """Towns with a postcode or more, a county, and practices that one in five does not go to; few are known."""
    rng = np.random.default_rng(16)
    town = rng.choice(300, 6000, p=rng.dirichlet(np.ones(300)))
    elsewhere = np.where(rng.random(6000) < 0.2, rng.integers(0, 300, 6000), town)
    columns = {
        "town": np.array([f"m{i:03}" for i in range(300)])[town],
        "postcode": np.array([f"z{i:03}" for i in range(600)])[town * 2 + rng.integers(0, 2, 6000)],
        "practice": np.array([f"p{i:03}" for i in range(150)])[elsewhere // 2],
        "county": np.array([f"c{i:02}" for i in range(30)])[np.where(rng.random(6000) < 0.95, town, elsewhere) // 10],
        "rent": rng.normal(size=300)[town] + rng.normal(0, 0.3, 6000),
    }
    roles = {name: "gaussian" if name == "rent" else "uniform" for name in columns}
    evidence, truth = with_roles(pa.table(columns), roles)
    known = np.arange(0, 6000, 10)
    informed = dataclasses.replace(evidence, knowledge=Knowledge(known=truth.take(known), known_rows=known))
    unknown = np.delete(np.arange(6000), known)
    before, after = (
        score(ATTACKS[name]().estimate(informed).take(unknown), truth.take(unknown))
        for name in ("known-density", "hidden-codes")
    )
    for column in ("town", "county"):
        reached = [one.category(column).success.attack.estimate for one in (before, after)]
        assert reached[1] > reached[0] + 0.05, (column, reached)
    assert after.number("rent").error.attack.estimate < before.number("rent").error.attack.estimate


@pytest.mark.parametrize("rows", [3, 30, 230])
def test_public_columns_of_few_records_stop_no_attack(rows: int) -> None:
    """Some columns have about as many values as neighbours need, and some parts of the records are empty."""
    rng = np.random.default_rng(17)
    columns = {"start": rng.integers(0, 52, rows), "end": np.zeros(rows), "hour": rng.normal(size=rows)}
    numbers = {name: rng.normal(size=rows) for name in ("length", "fare")}
    evidence, _ = with_public_columns(pa.table({**columns, **numbers}))
    for name in ("latent-class", "smoothing"):
        assert np.isfinite(ATTACKS[name]().estimate(evidence).values).all()
