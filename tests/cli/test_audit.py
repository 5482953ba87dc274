"""Attacks and audits on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from tests import wards

import sfumato as sf
from sfumato.cli import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def ok(*arguments: str, code: int = 0) -> str:
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert "Next: " in done.stdout or "--json" in arguments
    return done.stdout


def as_json(*arguments: str, code: int = 0) -> Any:
    return json.loads(ok(*arguments, "--json", code=code))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vault with two recipients, and their copies."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(wards.table(3000), "ward.parquet")
    vault = sf.Vault.create("vault")
    vault.add(wards.policy(), "ward.parquet")
    for name, level in (("ann", "internal"), ("bob", "public")):
        vault.recipient(name)
        vault.grant(name, "ward", level)
        vault.release(name, "ward", f"{name}.parquet")
    return tmp_path


def test_an_attack_with_and_without_the_truth(workspace: Path) -> None:
    assert "3,000 records were estimated" in ok("attack", "llse", "ann.parquet", "bob.parquet")
    output = ok("attack", "llse", "ann.parquet", "bob.parquet", "--truth", "ward.parquet", "-o", "guess.parquet")
    assert "age: residual error" in output
    assert "records found within 5%: one of its columns" in output
    assert pq.read_table("guess.parquet").column_names == ["id", "age", "income"]
    found = as_json("attack", "llse", "ann.parquet", "--truth", "ward.parquet", "--perfect")
    error = found["score"]["numbers"][0]["error"]
    assert 0.17 < error["attack"]["low"] < error["attack"]["high"] < 0.23
    assert error["baseline"]["estimate"] == pytest.approx(1)
    learned = as_json("attack", "learned", "ann.parquet", "--truth", "ward.parquet", "--known", "0.2")
    assert learned["score"]["rows"] == 2400
    assert as_json("attack", "pca", "ann.parquet", "--option", "components=1")["records"] == 3000
    assert (
        "sample" not in ok("attack", "bayes", "ann.parquet", "--samples", "400", "--sample", "ward.parquet").lower()[:5]
    )


def test_all_attacks_are_listed(workspace: Path) -> None:
    assert set(as_json("attack", "--list")) == {
        *("ndr", "udr", "pca", "spectral", "bayes", "mixture", "llse"),
        *("average", "difference", "collusion", "vote", "learned", "smoothing", "latent-class", "noisy-labels"),
        *("known-input", "known-sample", "known-rows", "known-density", "hidden-groups", "regression", "ica"),
        *("repeated-records", "component-density", "hidden-codes"),
    }
    assert "li2012, section 4.2.2" in ok("attack", "--list")


def test_a_forecast(workspace: Path) -> None:
    found = as_json("attack", "--predict", "--level", "0.6", "--level", "0.4")
    assert found["numbers"][0]["residual_error"] == pytest.approx(0.4)
    assert "age" in ok("attack", "--predict", "ann.parquet", "bob.parquet")
    by_ladder = as_json("attack", "--predict", "--dataset", "ward")
    assert [number["column"] for number in by_ladder["numbers"]] == ["age", "income"]
    assert by_ladder["numbers"][0]["residual_error"] == pytest.approx(0.2, abs=0.001)
    some = as_json("attack", "--predict", "--dataset", "ward", "--level", "partner", "--level", "0.3")
    assert some["numbers"][0]["residual_error"] == pytest.approx(0.5, abs=0.001)
    assert run("attack", "--predict").exit_code == 2
    assert "a level must be a fidelity" in run("attack", "--predict", "--level", "high").stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("attack",), 2, "name an attack"),
        (("attack", "llse"), 2, "name an attack and at least one copy"),
        (("attack", "lsse", "ann.parquet"), 10, "did you mean 'llse'"),
        (("attack", "vote", "ann.parquet"), 1, "'vote' needs at least 2 copies, got 1"),
        (("attack", "bayes", "ward.parquet"), 11, "must carry its manifest"),
        (("attack", "bayes", "ann.parquet", "--perfect"), 2, "need the original; name it with --truth"),
        (("attack", "bayes", "ann.parquet", "--option", "shrink"), 2, "must be written like components=5"),
        (("attack", "bayes", "ann.parquet", "--option", "shrunk=1"), 1, "has no parameter 'shrunk'"),
        (("audit",), 2, "Missing argument"),
        (("audit", "ward", "other"), 2, "audit one dataset at a time"),
        (("audit", "wart"), 13, "did you mean 'ward'"),
        (("audit", "ward", "--colluders", "ann,eve"), 13, "no recipient called 'eve'"),
        (("audit", "ward", "-o", "nowhere/report.html"), 1, "a folder that exists"),
        (("audit", "ward", "-o", "ward.parquet"), 1, "must end in .html"),
        (("audit", "ward", "-o", "notes.html"), 1, "notes.html exists"),
        (("audit", "ward", "--colluders", " "), 2, "needs names"),
        (("audit", "--original", "other.parquet", "ann.parquet"), 1, "is it the right table?"),
        (("attack", "bayes", "ann.parquet", "-o", "ward.parquet"), 1, "ward.parquet exists"),
        (("attack", "bayes", "ann.parquet", "-o", "guess.csv"), 1, "must end in .parquet"),
        (("attack", "lsse", "nowhere.parquet"), 10, "did you mean 'llse'"),
        (("attack", "--predict", "ann.parquet", "--level", "0.5"), 2, "got both"),
        (("attack", "bayes", "ann.parquet", "--epsilon", "-1"), 2, "--epsilon"),
        (("audit", "ward", "--attack", "lsse"), 10, "did you mean 'llse'"),
        (("suggest", "ward.parquet", "--target", "age >= 3"), 10, "must read like 'income: rmse >= 5000'"),
        (("suggest", "ward.parquet", "--target", "age: success <= 0.5"), 10, "needs a column with the role uniform"),
        (("suggest", "ward.parquet", "--policy", "policy.toml"), 2, "name one"),
        (("suggest", "ward.parquet", "--role", "age=entiti"), 2, "a role of id, entity"),
        (("suggest", "ward.parquet", "--role", "aeg=keep"), 2, "no column of the table: 'aeg'; did you mean 'age'"),
    ],
)
def test_mistakes(workspace: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    Path("notes.html").write_text("mine")
    pq.write_table(wards.table().drop_columns(["id"]), "other.parquet")
    done = run(*arguments)
    assert done.exit_code == code
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert Path("notes.html").read_text() == "mine"


def test_an_audit_of_the_vault_with_its_report(workspace: Path) -> None:
    output = ok("audit", "ward", "--colluders", "ann, bob", "-o", "report.html", code=3)
    assert "AT RISK: collusion-resistant, but columns are readable or records can be singled out." in output
    assert "2 records are outliers that the noise does not hide" in output
    assert "Next: open report.html" in output
    report = Path("report.html").read_text()
    assert "Audit of ward" in report
    assert "ann (fidelity 0.8), bob (fidelity 0.2)" in report
    found = as_json("audit", "ward", "--attack", "bayes", "--attack", "collusion", code=3)
    assert (found["state"], found["passed"]) == ("at risk", False)
    assert {finding["subject"] for finding in found["findings"]} == {"age", "income"}
    assert found["soundness"]["alarms"] == []
    assert [score["attack"] for score in found["all_copies"]["scores"]] == ["bayes", "collusion"]


def test_an_audit_that_recovers_columns_fails_and_names_them_first(workspace: Path) -> None:
    table = pq.read_table("ward.parquet")
    policy = sf.Policy.loads(wards.POLICY.replace("0.8", "0.97"))
    pq.write_table(policy.fit(table).release(table, "internal", sf.Key.generate()), "bare.parquet")
    done = run("audit", "--original", "ward.parquet", "bare.parquet", "--attack", "llse")
    assert done.exit_code == 3
    assert "records can be singled out.\nDISCLOSED: an attack recovers more than 90% of 2 columns: " in done.stdout
    assert "Sound" not in done.stdout


def test_an_audit_of_files(workspace: Path) -> None:
    output = ok("audit", "--original", "ward.parquet", "ann.parquet", "bob.parquet", code=3)
    assert "Collusion-resistant: combining these copies adds no information" in output
    forged = pq.read_table("bob.parquet").replace_schema_metadata(pq.read_schema("ann.parquet").metadata)
    pq.write_table(forged, "forged.parquet")
    done = run("audit", "--original", "ward.parquet", "forged.parquet", "--attack", "bayes")
    assert done.exit_code == 4
    assert "UNSOUND: do not release these copies.\nDO NOT RELEASE" in done.stdout
    copy = pq.read_table("ann.parquet")
    pq.write_table(copy.set_column(2, "age", pc.add(copy.column("age"), 1e-3)), "touched.parquet")
    done = run("audit", "--original", "ward.parquet", "touched.parquet", "--attack", "bayes")
    assert "has been changed since it was released" in done.stdout
    assert "touched.parquet" in done.stdout


def test_a_role_is_stated_and_the_others_are_drafted_anew(workspace: Path) -> None:
    ok("suggest", "ward.parquet", "--quick", "--role", "diagnosis=entity", "-o", "policy.toml")
    roles = {name: column.role for name, column in sf.Policy.load("policy.toml").columns.items()}
    assert roles["diagnosis"] == "entity"
    assert set(roles.values()) <= {"id", "entity", "gaussian", "uniform"}  # copula has no noise that entities share


@pytest.mark.slow
def test_a_draft_that_meets_a_target(workspace: Path) -> None:
    output = ok("suggest", "ward.parquet", "--target", "age: error >= 0.3", "-o", "policy.toml")
    assert "age: error >= 0.3 holds up to fidelity 0." in output
    policy = sf.Policy.load("policy.toml")
    assert [str(target) for target in policy.targets] == ["age: error >= 0.3"]
    top = next(iter(policy.ladder)).fidelity
    assert 0.6 < top < 0.7
    policy.fit("ward.parquet").release("ward.parquet", top, sf.Key.from_bytes(bytes(range(32))))
    assert {column.role for column in policy.columns.values()} == {"id", "copula"}
    ok("suggest", "ward.parquet", "--plain-noise", "-o", "plain.toml")
    again = as_json("suggest", "ward.parquet", "--target", "diagnosis: success <= 0.8", "--policy", "plain.toml")
    assert again["levels"][0]["attack"] in ("collusion", "noisy-labels")


def test_an_attack_on_scores_says_so(workspace: Path) -> None:
    """An error of 0.5 is not half a year."""
    ok("suggest", "ward.parquet", "-o", "policy.toml")
    ok("key", "new")
    arguments = ("release", "--policy", "policy.toml", "--key-file", "sfumato.key", "--level", "partner")
    ok(*arguments, "ward.parquet", "copy.parquet")
    arranged = ("--arrange", "sfumato.key", "policy.toml")
    output = ok("attack", "llse", "copy.parquet", "--truth", "ward.parquet", *arranged)
    assert "the normal scores were estimated, whose variance is about 1" in output


def test_an_audit_with_a_public_table(workspace: Path) -> None:
    table = pq.read_table("ward.parquet")
    pq.write_table(table.select(["age", "diagnosis"]).rename_columns(["age", "other"]), "public.parquet")
    found = as_json("audit", "ward", "--attack", "llse", "--public", "public.parquet", code=3)
    measured = found["measures"]["records"][0]
    assert measured["quasi_linkage"] is not None
    assert measured["quasi"] == ["age"]
    assert {one["name"] for one in measured["quasi_inference"]}.isdisjoint({"age"})  # it is known to the attacker
    pq.write_table(table.select(["id"]).rename_columns(["person"]), "other.parquet")
    refused = run("audit", "ward", "--public", "other.parquet")
    assert (refused.exit_code, "shares none" in refused.output) == (2, True)


@pytest.mark.slow
def test_an_audit_with_a_map(workspace: Path) -> None:
    found = as_json("audit", "ward", "--attack", "llse", "--map", "-o", "map.html", code=3)
    assert len({point["fidelity"] for point in found["risk_utility"]}) > 3
    assert "risk and utility of levels" in Path("map.html").read_text().lower()


@pytest.mark.slow
def test_a_limit_is_said_in_a_sentence(workspace: Path) -> None:
    output = ok("suggest", "ward.parquet", "--limit", "0.6", "-o", "policy.toml")
    assert "no attack recovers more than 60% of any column (" in output
    assert "in the copy as it stands means hold to" in output
