"""Surveys on the command line, from a definition to models, against a real service."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import joblib
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from tests.serving import serving, sqlite_vault

from sfumato.cli import main
from sfumato.survey.respondent import HttpConnection

Run = Callable[..., Result]
_START = 'title = "t"\nconsent = "c"\ndeadline = "2030-01-01"\n'
_ASKED = '[questions.q]\noptions = ["a", "b"]'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: str, code: int = 0) -> Result:
        found = CliRunner().invoke(main, list(words))
        assert found.exit_code == code, found.output
        return found

    return call


def test_from_a_definition_to_models(run: Run, tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path) as service:
        at = ("--vault", vault.location, "--key-file", str(tmp_path / "service.key"))
        url = ("--url", service.url)
        example = run("survey", "new", "trip", "--example").output
        (tmp_path / "trip.toml").write_text(example)
        assert (
            "careful ε 0.5 per question, 2 in total (strong protection)"
            in run("survey", "new", "trip", "trip.toml", *at).output
        )
        run("survey", "open", "trip", *at)
        answered = run("survey", "simulate", service.url, "trip", "--people", "60", "--json").output
        assert json.loads(answered)["counted"] == 60
        local = json.loads(run("survey", "status", "trip", "--json", *at).output)
        assert local["answers"] == 60
        environment = {"SFUMATO_TOKEN": vault.token(scopes=["read", "write"])["token"]}
        there = CliRunner().invoke(main, ["survey", "status", "trip", "--json", *url], env=environment)
        assert json.loads(there.output) == local
        assert re.search(r"car: yes +\d", run("survey", "status", "trip", *at).output)
        models = json.loads(run("survey", "model", "trip", "--out", "trip.joblib", "--json", *at).output)
        assert {one["model"] for one in models["qualities"]} == {"naive Bayes", "tree"}
        assert joblib.load("trip.joblib")["naive Bayes"].predict([[0, 1, 0, 0, 1, 2]]).shape == (1,)
        for name in ("answers.csv", "answers.parquet"):
            run("survey", "export", "trip", name, *at)
        assert pyarrow.csv.read_csv("answers.csv").num_rows == pyarrow.parquet.read_table("answers.parquet").num_rows
        _check_guided(run, tmp_path, service.url, at)
        _check_forged(run, service.url, at)
        run("survey", "close", "trip", *at)
        assert "closed" in run("survey", "list", *at).output
        assert "no survey" in run("survey", "status", "nowhere", *at, code=13).output


def _check_guided(run: Run, folder: Path, url: str, at: tuple[str, ...]) -> None:
    """People with default answers are counted, and the measures of zhang2005 are printed."""
    text = (folder / "trip.toml").read_text().replace('mode = "randomised"', 'mode = "guided"')
    (folder / "guided.toml").write_text(text + "[guided]\nbootstrap = 24\n")
    run("survey", "new", "guided", "guided.toml", *at)
    run("survey", "open", "guided", *at)
    answered = json.loads(run("survey", "simulate", url, "guided", "--people", "120", "--json").output)
    assert answered["counted"] > 40
    assert answered["clear"] == 24
    found = json.loads(run("survey", "status", "guided", "--json", *at).output)
    assert 0 < found["disclosure"] < 1
    assert 0 < found["error"] < 1
    assert "disclosure l_p" in run("survey", "status", "guided", *at).output


def _check_forged(run: Run, url: str, at: tuple[str, ...]) -> None:
    """Sixty forged rows at the most careful level raise an alarm; no share is a single point."""
    assert json.loads(run("survey", "status", "trip", "--json", *at).output)["alarms"] == []
    line = HttpConnection(url)
    version = line.request("GET", "/api/v1/respond/trip")[1]["version"]
    for number in range(60):
        body = {
            "ticket": f"{number:032x}",
            "version": version,
            "level": 0,
            "row": [0, number % 4, 0, 0, 0, 0, number % 3],
        }
        assert line.request("POST", "/api/v1/respond/trip/answers", body)[0] == 201
    found = json.loads(run("survey", "status", "trip", "--json", *at).output)
    assert any(one.startswith("ways: bicycle: ") for one in found["alarms"])
    assert all(one["high"] - one["low"] > 0.05 for one in found["shares"])
    lines = run("survey", "status", "trip", *at).output.splitlines()
    assert lines[1].startswith("ALARM ")  # before any number
    assert any(line.startswith("One forged answer changes a share by up to 13.4 points") for line in lines)
    assert run("survey", "model", "trip", *at).output.startswith("ALARM ")


def test_the_operator_of_a_guided_survey_is_warned(run: Run, tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    text = run("survey", "new", "x", "--example").output.replace('mode = "randomised"', 'mode = "guided"')
    (tmp_path / "x.toml").write_text(text)
    secret = tmp_path / "k.key"
    vault._secret.save(secret)  # type: ignore[union-attr]
    said = run("survey", "new", "x", "x.toml", "--vault", vault.location, "--key-file", str(secret)).output
    assert 'Prefer `mode = "randomised"`' in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("title = 3", "title must be text"),
        ("title = ", "TOML"),
        ('title = "t"', "must have a consent"),
        ('title = "t"\nconsent = "c"\ndeadline = "soon"\n[questions.q]\noptions = ["a", "b"]', "a deadline must be"),
        (_START + 'mode = "guidde"', "did you mean 'guided'"),
        (_START + "foo = 1", "no 'foo'"),
        (_START, "1 to 200 questions"),
        (_START + '[questions.q]\noptions = ["a"]', "must have options"),
        (_START + '[questions.q]\nkind = "number"\ncuts = [2, 1]', "cuts"),
        (
            _START + "[levels]\na = -1\n" + _ASKED,
            "epsilon of level a",
        ),
        (
            _START + "[levels]\na = 20\n" + _ASKED,
            "would be sent unchanged",
        ),
        (
            _START + 'class = "z"\n' + _ASKED,
            "the class must be",
        ),
        (
            _START + 'mode = "guided"\n' + _ASKED,
            "must name its class",
        ),
        (
            _START + '[guided]\nfloor = "x"\n' + _ASKED,
            "right types",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(run: Run, tmp_path: Path, wrong: str, said: str) -> None:
    (tmp_path / "x.toml").write_text(wrong)
    found = run("survey", "new", "x", "x.toml", code=1).output
    assert said in found
    assert "Traceback" not in found
