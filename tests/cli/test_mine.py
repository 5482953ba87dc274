"""The `mine` command: profiles and SQL queries on the command line."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from tests import offices

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import ManifestError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table = offices.table(5000)
    sf.release_file(offices.policy().fit(table), table, "copy.parquet", "far", offices.key())
    sf.release_file(offices.policy(0.05, 0.01).fit(table), table, "low.csv", "far", offices.key())
    return tmp_path


def test_describing_a_copy(folder: Path) -> None:
    done = run("mine", "copy.parquet")
    assert done.exit_code == 0, done.output
    for text in ("income", "ward", "5,000 records of office", "What it does not support", "Next: sfumato mine"):
        assert text in done.stdout
    data = json.loads(run("mine", "copy.parquet", "--describe", "--json").stdout)
    assert data["fidelity"] == 0.5
    age = next(n for n in data["numbers"] if n["name"] == "age")
    assert age["mean"]["low"] < np.mean(offices.table(5000).column("age")) < age["mean"]["high"]
    assert set(age["quantiles"]) == {"0.05", "0.25", "0.5", "0.75", "0.95"}
    ward = next(c for c in data["categories"] if c["name"] == "ward")
    assert ward["frequencies"]["a"]["low"] < 0.5 < ward["frequencies"]["a"]["high"]
    assert 0 < ward["rows_for_count_within_10_percent"] < 5000


def test_the_page_has_figures_and_is_self_contained(folder: Path) -> None:
    done = run("mine", "copy.parquet", "--describe", "-o", "profile.html")
    assert done.exit_code == 0, done.output
    page = (folder / "profile.html").read_text()
    assert page.count("<svg") == 7  # relations, three numbers with noise, three categories
    assert "Strongest relations" in page
    assert "reliability" in page
    assert not re.search(r"""(src|href)=["']?http""", page)
    assert run("mine", "copy.parquet", "-o", "profile.html").exit_code == 0  # an earlier profile may be replaced
    (folder / "mine.html").write_text("mine")
    done = run("mine", "copy.parquet", "-o", "mine.html")
    assert done.exit_code == 1
    assert (folder / "mine.html").read_text() == "mine"


def test_public_names_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of as many texts as records would fill the page, and the memory."""
    monkeypatch.chdir(tmp_path)
    table = offices.table(1000).append_column("name", pa.array([f"person {i}" for i in range(1000)]))
    policy = offices.policy()
    columns = {**policy.columns, "name": policy.columns["site"]}
    scheme = dataclasses.replace(policy, columns=columns).fit(table)
    sf.release_file(scheme, table, "copy.parquet", "far", offices.key())
    found = json.loads(run("mine", "copy.parquet", "--json").stdout)
    assert "site" in {one["name"] for one in found["categories"]}
    assert "name" not in {one["name"] for one in found["categories"]}


def test_asking_a_question(folder: Path) -> None:
    done = run("mine", "copy.parquet", "select site, count(*) as n from copy where ward = 'a' group by site")
    assert done.exit_code == 0, done.output
    assert "north" in done.stdout
    assert " to " in done.stdout
    data = json.loads(run("mine", "copy.parquet", "select count(*) from copy where ward = 'a'", "--json").stdout)
    [row] = data["answer"]
    assert row["count_low"] < row["count"] < row["count_high"]


def test_a_question_with_another_table(folder: Path) -> None:
    (folder / "wards.csv").write_text("ward,floor\na,1\nb,1\nc,2\nd,2\n")
    table = offices.table(500)
    sf.release_file(offices.policy().fit(table), table, "few.parquet", "close", offices.key())
    question = "select floor, avg(age) as age from copy join wards using (ward) group by floor"
    done = run("mine", "few.parquet", question, "--table", "wards=wards.csv")
    assert done.exit_code == 0, done.output
    assert "20 plausible originals" in done.stdout
    data = json.loads(run("mine", "few.parquet", question, "--table", "wards=wards.csv", "--json").stdout)
    assert data["method"] == "imputation"
    assert [row["floor"] for row in data["answer"]] == [1, 2]
    assert (
        json.loads(run("mine", "copy.parquet", "select avg(age) a from t", "--json").stdout)["method"] == "correction"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["copy.parquet", "select avg(age) from copy join wards using (ward)"], 1, "the other tables must be given"),
        (["copy.parquet", "select count(*) from copy where age > 3 or income > 2"], 1, "many records may share"),
        (["copy.parquet", "select count(*) from copy", "--table", "wards"], 2, "NAME=FILE"),
        (["copy.parquet", "select max(age) from copy"], 1, "cannot be corrected"),
        (["low.csv", "select count(*) from copy where ward = 'a'"], 1, "more faithful copy"),
        (["nothing.parquet"], 11, "a file that exists"),
        (["copy.parquet", "select count(*) from copy", "--describe"], 2, "not both"),
        (["copy.parquet", "--confidence", "1"], 2, "confidence"),
        (["copy.parquet", "-o", "profile.pdf"], 1, ".html"),
    ],
)
def test_refusals(folder: Path, arguments: list[str], code: int, reason: str) -> None:
    done = run("mine", *arguments)
    assert done.exit_code == code, done.output
    assert reason in done.output


@pytest.mark.slow
def test_predicting_a_column(folder: Path) -> None:
    """On the original, by a model that is learned from the copy; its score, its interval and the baseline."""
    table = offices.table(300)
    sf.release_file(offices.policy().fit(table), table, "few.parquet", "close", offices.key())
    done = run("mine", "few.parquet", "--predict", "smokes")
    assert done.exit_code == 0, done.output
    assert re.search(r"accuracy\): 0\.\d+ \(0\.\d+ to [01]\.\d+\), without learning 0\.\d+", done.stdout)
    assert "ImputedClassifier().fit('few.parquet', 'smokes')" in done.stdout
    found = json.loads(run("mine", "few.parquet", "--predict", "income", "--json").stdout)["r2"]
    assert found["low"] <= found["estimate"] <= found["high"] <= 1
    assert "no column 'smoke'" in run("mine", "few.parquet", "--predict", "smoke").output
    assert run("mine", "few.parquet", "select 1", "--predict", "smokes").exit_code == 2


def test_a_low_trust_level_says_what_it_does_not_support(folder: Path) -> None:
    done = run("mine", "low.csv")
    assert done.exit_code == 0, done.output
    assert "frequencies cannot be estimated at this trust level" in done.stdout
    assert "not at this trust level" in done.stdout


def test_a_copy_that_was_changed_is_refused(folder: Path) -> None:
    table = pq.read_table("copy.parquet")
    pq.write_table(table.slice(1), "copy.parquet")
    done = run("mine", "copy.parquet")
    assert done.exit_code == ManifestError.exit_code
    assert "manifest" in done.output or "changed" in done.output
    pq.write_table(offices.table(100), "plain.parquet")
    assert "must carry its manifest" in run("mine", "plain.parquet").output


def test_answers_about_margins_say_between_which_values_they_are(folder: Path) -> None:
    """A sum of incomes leaves out how far the largest went, and no interval can know that."""
    draw = np.random.default_rng(1)
    income = np.round(draw.lognormal(10, 0.5, 3000), -1)
    income[:3] = 9_000_000
    table = pa.table({"id": np.arange(3000), "income": income, "town": draw.choice(["a", "b"], 3000)})
    text = 'dataset = "d"\n[levels]\nl = 0.5\n[columns]\nid = "id"\nincome = "copula"\ntown = "copula"'
    sf.release_file(sf.Policy.loads(text).fit(table), table, "margins.parquet", "l", offices.key())
    largest = max(sf.read_copy("margins.parquet").column("income").to_pylist())
    shown = run("mine", "margins.parquet", "select sum(Income) from copy").stdout  # SQL does not tell cases apart
    [low, high] = re.findall(r"income is between ([\d,.e+]+) and ([\d,.e+]+) in the copy", shown)[0]
    assert largest <= float(high.replace(",", "")) < 1_000_000
    assert float(low.replace(",", "")) >= 0
    assert "of the original may be outside" in shown
    assert "corrected for the noise" not in shown
    counted = run("mine", "margins.parquet", "select town, count(*) from copy group by town").stdout
    assert "that of the copy as it stands" in counted
    assert "corrected for the noise" in run("mine", "copy.parquet", "select avg(age) from copy").stdout
