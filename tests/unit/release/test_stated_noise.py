"""Foreign tables: with their noise stated, attacks, mining and audits work, and a wrong statement is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.audit.audit import audit
from sfumato.audit.states import State
from sfumato.cli import main
from sfumato.errors import ManifestError
from sfumato.release.manifest import Manifest, attach
from sfumato.release.stated_noise import StatedNoise, StatedRotation, stated_manifest

ROWS = 6000
WARDS = np.array(["A", "B", "C", "D"])


@pytest.fixture(scope="module")
def tables() -> tuple[pa.Table, pa.Table]:
    """A table, and what somebody else made of it: normal noise, and randomised response."""
    rng = np.random.default_rng(0)
    age, ward = rng.normal(50, 15, ROWS), rng.choice(4, ROWS, p=[0.5, 0.3, 0.15, 0.05])
    income = 300 * age + rng.normal(0, 3000, ROWS)
    original = pa.table(
        {"id": np.arange(ROWS), "age": age, "income": income, "ward": WARDS[ward], "year": [2026] * ROWS}
    )
    replaced = np.where(rng.random(ROWS) < 0.7, ward, rng.integers(0, 4, ROWS))
    noisy = {
        "age": age + rng.normal(0, 10, ROWS),
        "income": income + rng.normal(0, 4000, ROWS),
        "ward": WARDS[replaced],
    }
    return original, original.select(["id"]).append_column("year", original["year"]).join(
        pa.table({"id": np.arange(ROWS), **noisy}), "id"
    ).sort_by("id")


STATED = [
    StatedNoise.parse("age=gaussian:sd=10"),
    StatedNoise.parse("income=gaussian:sd=4000"),
    StatedNoise.parse("ward=uniform:retention=0.7"),
]


def copy_of(table: pa.Table, noises: list[StatedNoise], **options: Any) -> pa.Table:
    return attach(table, stated_manifest(table, noises, ids=["id"], **options))


def test_attacks_mining_and_audits_work_on_a_foreign_table(tables: tuple[pa.Table, pa.Table]) -> None:
    original, foreign = tables
    copy = copy_of(foreign, STATED)
    found = sf.score(sf.attack("llse", [copy]), original)
    naive = sf.score(sf.attack("ndr", [copy]), original)
    assert found.number("income").error.attack.high < naive.number("income").error.attack.low
    assert sf.score(sf.attack("collusion", [copy]), original).category("ward").success.attack.low > 0.7
    audited = audit(original, {"theirs": copy}, attacks=("llse", "collusion"))
    assert audited.soundness.alarms == ()
    assert audited.state is not State.UNSOUND


@pytest.mark.parametrize(
    "wrong",
    [
        [StatedNoise.parse("age=gaussian:sd=12"), *STATED[1:]],
        [*STATED[:2], StatedNoise.parse("ward=uniform:retention=0.8")],
    ],
)
def test_noise_that_is_not_as_stated_is_unsound(tables: tuple[pa.Table, pa.Table], wrong: list[StatedNoise]) -> None:
    original, foreign = tables
    found = audit(original, {"theirs": copy_of(foreign, wrong)}, attacks=("llse",), without=("measures", "utility"))
    assert found.state is State.UNSOUND


def test_correlated_noise_by_its_covariance(tables: tuple[pa.Table, pa.Table]) -> None:
    original, _ = tables
    root = np.array([[10.0, 0.0], [3000.0, 2000.0]])
    noise = np.random.default_rng(1).normal(size=(ROWS, 2)) @ root.T
    columns = {name: original[name].to_numpy() + noise[:, i] for i, name in enumerate(("age", "income"))}
    foreign = pa.table({"id": np.arange(ROWS), **columns})
    matrix = root @ root.T
    sound = copy_of(foreign, [], covariance=(["age", "income"], matrix))
    wrong = copy_of(foreign, [], covariance=(["age", "income"], np.diag(np.diag(matrix))))
    states = [
        audit(original, {"x": one}, attacks=("llse",), without=("measures", "utility")).state for one in (sound, wrong)
    ]
    assert states[0] is not State.UNSOUND
    assert states[1] is State.UNSOUND


def test_the_command_writes_a_manifest_beside_the_file(
    tables: tuple[pa.Table, pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    original, foreign = tables
    pq.write_table(original, "original.parquet")
    pa.csv.write_csv(foreign, "foreign.csv")
    options = [
        "--noise",
        "age=gaussian:sd=10",
        "--noise",
        "income=gaussian:sd=4000",
        "--noise",
        "ward=uniform:retention=0.7",
    ]
    done = CliRunner().invoke(main, ["declare", "foreign.csv", *options, "--id", "id"])
    assert done.exit_code == 0, done.output
    assert "Sfumato did not make it, and promises nothing about it" in done.output
    assert Manifest.of(Path("foreign.csv")).dataset == "foreign"
    attacked = CliRunner().invoke(main, ["attack", "llse", "foreign.csv", "--truth", "original.parquet", "--json"])
    assert attacked.exit_code == 0, attacked.output
    assert json.loads(attacked.stdout)["score"]["rows"] == ROWS
    mined = CliRunner().invoke(main, ["mine", "foreign.csv", "select count(*) from copy where ward = 'D'", "--json"])
    assert mined.exit_code == 0, mined.output
    [cell] = json.loads(mined.stdout)["answer"]
    truth = original["ward"].to_pylist().count("D")
    shown = foreign["ward"].to_pylist().count("D")
    assert cell["count_low"] <= truth <= cell["count_high"] < shown  # of which randomised response shows many more


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age=gaussian:retention=0.5", "must read like"),
        ("age=laplace:sd=3", "must read like"),
        ("age=gaussian:sd=-1", "above 0"),
        ("ward=uniform:retention=1.5", "between 0 and 1"),
        ("uniform:retention=0.5", "say which"),
    ],
)
def test_statements_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestError, match=message):
        StatedNoise.parse(text)


def test_statements_that_do_not_fit_the_table_are_refused(tables: tuple[pa.Table, pa.Table]) -> None:
    with pytest.raises(ManifestError, match="no column 'agee'; did you mean 'age'"):
        stated_manifest(tables[1], [StatedNoise.parse("agee=gaussian:sd=1")])
    with pytest.raises(ManifestError, match="needs a column of numbers"):
        stated_manifest(tables[1], [StatedNoise.parse("ward=gaussian:sd=1")])
    with pytest.raises(ManifestError, match="symmetric positive"):
        stated_manifest(tables[1], [], covariance=(["age"], np.array([[-1.0]])))


def test_a_stated_rotation_is_undone_by_known_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    records = rng.normal(size=(500, 3)) @ np.diag([1.0, 2.0, 3.0])
    mapped = records @ np.linalg.qr(rng.normal(size=(3, 3)))[0].T + [5.0, -2.0, 1.0]
    original = pa.table({"id": np.arange(500), **{name: records[:, i] for i, name in enumerate("abc")}})
    pq.write_table(pa.table({"id": np.arange(500), **{f"y{i}": mapped[:, i] for i in range(3)}}), "theirs.parquet")
    pq.write_table(original, "original.parquet")
    command = ["declare", "theirs.parquet", "--rotation", "y0,y1,y2=a,b,c", "--id", "id"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "a linear combination of 3 columns (rotation)" in done.output
    attack = ["attack", "known-input", "theirs.parquet", "--truth", "original.parquet", "--known", "10", "--json"]
    found = json.loads(CliRunner().invoke(main, attack).stdout)
    assert max(one["error"]["attack"]["estimate"] for one in found["score"]["numbers"]) < 1e-6
    for wrong in ("y0,y1", "=a", "y0,y1,y2=a,b"):
        with pytest.raises(ManifestError, match="a rotation must name its columns"):
            StatedRotation.parse(wrong)
    assert StatedRotation.parse("y0=a,b").model().kind == "projection"
